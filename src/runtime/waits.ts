import type { Version } from '../core/data/datum.ts'
import type { Engine, Instruction } from '../core/engine.ts'
import type { Group } from '../core/tasks/group.ts'

type Waiting<K> = Map<K, (() => void)[]>

/** Callbacks for versions that settle or lose their last reader, and for groups that become idle. */
export class Waits {
  readonly #engine: Engine
  readonly #schedule: () => void
  readonly #hurry: (version: Version) => void
  readonly #settled: Waiting<Version> = new Map()
  readonly #unread: Waiting<Version> = new Map()
  /** The same for streams, which follow their values and hold up no other wait. */
  readonly #settledAside: Waiting<Version> = new Map()
  readonly #unreadAside: Waiting<Version> = new Map()
  readonly #idle: Waiting<Group> = new Map()

  /** `hurry` is called with versions that are waited for. */
  constructor(engine: Engine, schedule: () => void, hurry: (version: Version) => void) {
    this.#engine = engine
    this.#schedule = schedule
    this.#hurry = hurry
  }

  /** There are waiters other than streams. */
  get any(): boolean {
    return this.#settled.size + this.#unread.size + this.#idle.size > 0
  }

  settled(version: Version): Promise<void> {
    if (version.settled) return Promise.resolve()
    return new Promise(resolve => this.onSettled(version, resolve))
  }

  unread(version: Version): Promise<void> {
    if (version.readers === 0) return Promise.resolve()
    const watch = (): void => this.#engine.watchReaders(version)
    return new Promise(resolve => this.#add(this.#unread, version, watch, resolve))
  }

  idle(group: Group): Promise<void> {
    if (group.live === 0) return Promise.resolve()
    const watch = (): void => this.#engine.watchGroup(group)
    return new Promise(resolve => this.#add(this.#idle, group, watch, resolve))
  }

  /** Calls `go` while the instructions that settle the version are carried out. */
  onSettled(version: Version, go: () => void): void {
    if (version.settled) go()
    else this.#add(this.#settled, version, () => this.#watch(version), go)
  }

  onSettledAside(version: Version, go: () => void): void {
    if (version.settled) go()
    else this.#add(this.#settledAside, version, () => this.#watch(version), go)
  }

  onUnreadAside(version: Version, go: () => void): void {
    if (version.readers === 0) go()
    else this.#add(this.#unreadAside, version, () => this.#engine.watchReaders(version), go)
  }

  wake(instruction: Extract<Instruction, { type: 'settled' | 'unread' | 'idle' }>): void {
    switch (instruction.type) {
      case 'settled':
        wake(this.#settledAside, instruction.version)
        return wake(this.#settled, instruction.version)
      case 'unread':
        wake(this.#unreadAside, instruction.version)
        return wake(this.#unread, instruction.version)
      case 'idle':
        return wake(this.#idle, instruction.group)
    }
  }

  #watch(version: Version): void {
    this.#engine.watch(version)
    this.#hurry(version)
  }

  #add<K>(map: Waiting<K>, key: K, watch: () => void, go: () => void): void {
    const waiting = map.get(key)
    if (waiting) waiting.push(go)
    else {
      map.set(key, [go])
      watch()
    }
    this.#schedule()
  }
}

function wake<K>(map: Waiting<K>, key: K): void {
  const waiting = map.get(key)
  if (!waiting) return
  map.delete(key)
  for (const go of waiting) go()
}
