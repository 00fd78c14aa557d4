import type { RunEvent } from '../../core/events.ts'
import type { Plan, PlanRule } from '../../stream/board/plan.ts'
import { ruleFinder } from '../../stream/board/plan.ts'
import type { Snapshot, WaitLine } from '../../stream/board/snapshot.ts'

type StreamEvent = Extract<RunEvent, { type: 'stream' }>

/** Makes an event of each file whenever it has changed from one look at the board to the next. */
export class FileEvents {
  readonly #find: (path: string) => PlanRule | undefined
  readonly #consumers = new Map<string, readonly string[]>()
  /** By path, what the last event said. */
  readonly #said = new Map<string, string>()
  readonly #observe: (event: StreamEvent) => void

  constructor(plan: Plan, observe: (event: StreamEvent) => void) {
    this.#find = ruleFinder(plan)
    this.#observe = observe
  }

  look(snapshot: Snapshot, at: number): void {
    const waits = new Map<string, WaitLine[]>()
    for (const wait of snapshot.waits) waits.set(wait.path, [...(waits.get(wait.path) ?? []), wait])
    for (const { kind, path, state, written, size, producers } of snapshot.files) {
      if (kind !== 'file') continue
      const readers = this.#readers(path, waits.get(path) ?? [])
      const bytes = size ?? written ?? 0
      const text = JSON.stringify([state, bytes, producers, readers])
      if (this.#said.get(path) === text) continue
      this.#said.set(path, text)
      this.#observe({ type: 'stream', at, path, state, bytes, producers, readers })
    }
  }

  #readers(path: string, waits: readonly WaitLine[]): StreamEvent['readers'] {
    let consumers = this.#consumers.get(path)
    if (!consumers) this.#consumers.set(path, (consumers = this.#find(path)?.consumers ?? []))
    const waiting = new Map(waits.map(({ step, sentence }) => [step ?? 'a process', sentence]))
    return [...new Set([...consumers, ...waiting.keys()])].map(name => ({
      name,
      waits: waiting.get(name) ?? null,
    }))
  }
}
