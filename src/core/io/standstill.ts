import type { Observer } from '../events.ts'
import type { Task } from '../tasks/task.ts'
import type { IoCore } from './io-core.ts'
import type { TaskIo } from './task-io.ts'
import { bytesText } from './words.ts'

/**
 * Room that only the program could free may be held for ever: it waits for a task, and the task for room. Then one task
 * starts beyond the bound, or beyond the capacity of its device, and a warning says so. The driver decides when that is: it
 * knows whether the program may still do something by itself.
 */
export class Standstill {
  readonly #io: IoCore
  readonly #observer: () => Observer | null
  /** Ready tasks that have CPUs and ask for room; those that have started or ended are left out late. */
  readonly computing = new Set<Task>()
  /** Kinds that the warning was given for, each once. */
  readonly #told = new Set<string>()

  constructor(io: IoCore, observer: () => Observer | null) {
    this.#io = io
    this.#observer = observer
  }

  /** Nothing runs, moves or is being deleted, and tasks are ready that lack nothing but room. */
  get isThere(): boolean {
    const { storage, moves, bound } = this.#io
    if (storage.nodes.some(({ node, taken }) => taken > 0 || node.freeLanes < node.cpus)) return false
    if (moves.active.size > 0 || bound?.isFreeing) return false
    return this.#firstHeld() !== null
  }

  /** One task starts without room; false if none waits for room. */
  letOneGo(now: number): boolean {
    const task = this.#firstHeld()
    if (!task) return false
    const { bound, storage } = this.#io
    this.#warn(task, now)
    bound?.exempt(task)
    if (task.io && storage.lacksRoom(task, task.io)) task.io.ignoresRoom = true
    return true
  }

  #firstHeld(): Task | null {
    const { bound, queue, storage } = this.#io
    const held = bound?.firstHeld()
    if (held) return held
    for (const { tree } of queue.filled) {
      const first = tree.first(null, null)?.first
      if (first?.io && storage.lacksRoom(first, first.io)) return first
    }
    for (const task of this.computing) {
      if (task.state !== 'ready') this.computing.delete(task)
      else if (storage.lacksRoom(task, task.io as TaskIo)) return task
    }
    return null
  }

  #warn(task: Task, at: number): void {
    const { kind, io, name } = task
    const { bound, storage } = this.#io
    const isBound = bound !== null && !bound.allows(task)
    const device = isBound ? null : io?.pinned
    const key = `${kind.id} ${device?.name ?? ''}`
    if (this.#told.has(key)) return
    this.#told.add(key)
    const why = isBound
      ? `temporary data take ${bytesText(bound.alive)} of ${bytesText(bound.limit)}`
      : `${device?.name ?? 'every device'} has no room for ${bytesText(storage.sizeOf(task))} more`
    const hint = isBound
      ? 'call removeFile after the last reader of a file, or raise maxIntermediate'
      : 'call removeFile after the last reader of a file, or raise its capacity'
    const text = `${name} starts beyond what is allowed: ${why}, and nothing that runs or could start will free any; ${hint}`
    this.#observer()?.({ type: 'note', at, level: 'warning', text })
  }
}
