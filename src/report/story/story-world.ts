import type { RunEvent } from '../../core/events.ts'
import { isMeant, labelOf, withLabel } from '../label.ts'

/** What a story needs to know of the other tasks: who they are, what they made, and when. */
export class StoryWorld {
  readonly #kinds = new Map<number, string>()
  readonly #kindOf = new Map<number, number>()
  readonly #labels = new Map<number, string>()
  readonly #makers = new Map<number, number | number[]>()
  readonly #endedAt = new Map<number, number>()
  readonly #committed = new Map<number, { at: number; bytes: number }>()
  readonly #found = new Map<number, number>()
  readonly #releasedAt = new Map<number, number>()
  #nodes: string[] = []
  #devices: readonly string[] = []
  lastTask = 0
  runEndedAt: number | null = null

  get taskCount(): number {
    return this.#kindOf.size
  }

  observe(event: RunEvent): void {
    switch (event.type) {
      case 'run-started':
        this.#nodes = event.nodes.map(node => node.name)
        this.#devices = (event.devices ?? []).map(device => device.name)
        break
      case 'node-joined':
        this.#nodes[event.node] = event.name
        break
      case 'kind-defined':
        this.#kinds.set(event.kind, event.name)
        break
      case 'submitted':
        this.#kindOf.set(event.task, event.kind)
        this.#label(event)
        this.lastTask = Math.max(this.lastTask, event.task)
        for (const version of event.writes) this.#addMaker(version, event.task)
        break
      case 'finished':
      case 'kept':
        this.#endedAt.set(event.task, event.at)
        break
      case 'released':
        if (!this.makersOf(event.version).includes(event.task)) this.#addMaker(event.version, event.task)
        this.#releasedAt.set(event.version, event.at)
        break
      case 'committed':
        this.#committed.set(event.version, event)
        break
      case 'found':
        this.#found.set(event.version, event.bytes)
        break
      case 'run-ended':
        this.runEndedAt = event.at
        break
      default:
        break
    }
  }

  #label(event: Extract<RunEvent, { type: 'submitted' }>): void {
    const label = labelOf(event)
    if (label !== '') this.#labels.set(event.task, label)
  }

  kindNames(): Iterable<string> {
    return this.#kinds.values()
  }

  kindNameOf(task: number): string | null {
    const kind = this.#kindOf.get(task)
    return kind === undefined ? null : (this.#kinds.get(kind) ?? `kind ${kind}`)
  }

  nameOf(task: number): string {
    return withLabel(`${this.kindNameOf(task) ?? 'task'}#${task}`, this.#labels.get(task) ?? '')
  }

  isMeant(asked: string, task: number): boolean {
    return isMeant(asked, this.kindNameOf(task) ?? '', this.#labels.get(task) ?? '')
  }

  deviceName(device: number): string {
    return this.#devices[device] ?? `device ${device}`
  }

  /** There are several nodes, so that a task can be on one or another. */
  get hasNodes(): boolean {
    return this.#nodes.length > 1
  }

  nodeName(node: number): string {
    return this.#nodes[node] ?? `node ${node}`
  }

  makersOf(version: number): number[] {
    const makers = this.#makers.get(version)
    return makers === undefined ? [] : typeof makers === 'number' ? [makers] : makers
  }

  bytesOf(version: number): number {
    return this.#committed.get(version)?.bytes ?? this.#found.get(version) ?? 0
  }

  /** When the version was there: when it was released or committed, if that was recorded, else when its makers ended. */
  madeAt(version: number): number | null {
    const released = this.#releasedAt.get(version)
    if (released !== undefined) return released
    const committed = this.#committed.get(version)
    if (committed) return committed.at
    const ends = this.makersOf(version).map(maker => this.#endedAt.get(maker) ?? null)
    if (ends.length === 0 || ends.includes(null)) return null
    return Math.max(...(ends as number[]))
  }

  #addMaker(version: number, task: number): void {
    const makers = this.#makers.get(version)
    if (makers === undefined) this.#makers.set(version, task)
    else if (typeof makers === 'number') this.#makers.set(version, [makers, task])
    else makers.push(task)
  }
}
