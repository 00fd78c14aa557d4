import type { Version } from '../core/data/datum.ts'
import type { Engine } from '../core/engine.ts'
import type { Task } from '../core/tasks/task.ts'
import type { Node } from '../core/schedule/machine.ts'
import type { ModelDevice } from './machine/device.ts'
import type { Stores } from './machine/stores.ts'

/**
 * What lies on disks of nodes, and which task made it: what is lost with a node and still needed is made again by its producer, of the
 * same inputs, and so are inputs that are gone. What was there before the run is not lost, nor are values without bytes, which travel
 * with their tasks.
 */
export class Lineage {
  readonly #engine: Engine
  readonly #stores: Stores
  readonly #makers = new WeakMap<Version, Task>()
  readonly #on = new Map<number, Set<Version>>()
  /** Versions that a task has read. */
  readonly #read = new WeakSet<Version>()
  /** Nodes that will end soon. */
  readonly #leaving = new Set<number>()
  #turn = 0
  /** Tasks that made again what was lost. */
  remade = 0

  constructor(engine: Engine, stores: Stores) {
    this.#engine = engine
    this.#stores = stores
  }

  /** The task has ended well. */
  made(task: Task): void {
    for (const { read, write } of task.accesses) {
      if (read) this.#read.add(read)
      if (!write || write.team) continue
      this.#makers.set(write, task)
      const node = this.#stores.placeOf(write.id)?.node ?? null
      if (node === null) continue
      this.#addTo(node, write)
      if (this.#leaving.has(node)) this.#move(write, node)
    }
  }

  /** The node will end: what is needed of what only it has is copied to others, one after the other. */
  leave(node: number): void {
    this.#leaving.add(node)
    for (const version of this.#on.get(node) ?? []) if (this.#isNeeded(version)) this.#move(version, node)
  }

  #move(version: Version, node: number): void {
    const from = this.#stores.placeOf(version.id)
    const to = this.#refuge()
    if (!from || !to || typeof version.value !== 'number') return
    const arrived = (): void => {
      if (version.value === undefined || this.#stores.placeOf(version.id) !== from) return
      this.#on.get(node)?.delete(version)
      this.#stores.put(version.id, to)
      if (to.node !== null) this.#addTo(to.node, version)
    }
    this.#stores.copy(from, to, version.value, { ring: arrived })
  }

  /** The disk of the next node that stays. */
  #refuge(): ModelDevice | null {
    const { nodes } = this.#engine
    for (let tried = 0; tried < nodes.length; tried++) {
      const { index, isLost, isPaused } = nodes[++this.#turn % nodes.length] as Node
      const device = isLost || isPaused ? null : this.#stores.home(index)
      if (device) return device
    }
    return null
  }

  #addTo(node: number, version: Version): void {
    const on = this.#on.get(node)
    if (on) on.add(version)
    else this.#on.set(node, new Set([version]))
  }

  /** Nothing needs it any more; but it may be needed again, to remake a version that was made of it. */
  discarded(version: Version): void {
    const node = this.#stores.placeOf(version.id)?.node ?? null
    if (node !== null) this.#on.get(node)?.delete(version)
  }

  /** All that is on disks of the node is gone. */
  lose(node: number, now: number): void {
    const gone = this.#on.get(node) ?? []
    this.#on.delete(node)
    for (const version of gone) {
      // What is being moved arrives.
      if (version.place?.move || this.#stores.placeOf(version.id)?.node !== node) continue
      this.#stores.forget(version.id)
      this.#engine.io.gone(version)
      version.value = undefined
    }
    for (const version of gone) if (isGone(version) && this.#isNeeded(version)) this.#makeAgain(version, now)
  }

  /** A task that has not ended reads it, or it is a result, which no task was to read. */
  #isNeeded(version: Version): boolean {
    if (version.readers > 0) return true
    return !this.#read.has(version) && !version.obsolete && !version.datum.temporary
  }

  #makeAgain(wanted: Version, now: number): void {
    const open = [wanted]
    for (let version = open.pop(); version; version = open.pop()) {
      const maker = this.#makers.get(version)
      if (!maker || !isGone(version)) continue
      const lost = maker.accesses.flatMap(({ write }) => (write && isGone(write) ? [write] : []))
      for (const { read } of maker.accesses) if (read && isGone(read)) open.push(read)
      this.remade++
      this.#engine.makeAgain(maker, lost, now)
    }
  }
}

/** It was made, and is nowhere now. */
const isGone = ({ state, value }: Version): boolean => state === 'ready' && value === undefined
