import type { Datum } from '../core/data/datum.ts'
import type { Task } from '../core/tasks/task.ts'
import type { Slot } from '../model/capture/call.ts'
import type { Runtime } from './runtime.ts'

/** What it uses of the runtime. */
type Uses = Pick<Runtime, 'engine' | 'now' | 'schedule' | 'whenSettled'>

/**
 * Temporary files go after the last reader that can still come. Until it ends, the program may call another one; it says by
 * `removeFile` that it will not. What a task has called tasks to make may be read by more of them until that task has ended.
 */
export class Temporaries {
  readonly #runtime: Uses
  readonly #kept = new Set<Datum>()
  /** By the outermost task that called for them, if it has not ended. */
  readonly #nested = new Map<Task, Set<Datum>>()
  #isOver = false

  constructor(runtime: Uses) {
    this.#runtime = runtime
  }

  /** Comes before the task is submitted that writes them. */
  mark(slots: readonly Slot[], caller: Task | null): void {
    for (const { datum, mode } of slots) {
      if (mode === 'in' || datum.path === null) continue
      datum.temporary = true
      datum.aside = true
      if (caller) this.#keepFor(outermost(caller), datum)
      else this.#kept.add(datum)
    }
  }

  /** The program wants it at its path: there it stays. */
  wanted(datum: Datum): void {
    this.#kept.delete(datum)
    // Else the end of the run would not wait until it is there.
    datum.aside = false
  }

  /** The program calls no more tasks. */
  programEnded(): void {
    this.#isOver = true
    this.#remove(this.#kept)
  }

  #keepFor(task: Task, datum: Datum): void {
    const known = this.#nested.get(task)
    if (known) return void known.add(datum)
    const data = new Set([datum])
    this.#nested.set(task, data)
    const end = task.accesses.at(-1)?.write
    if (!end) return
    this.#runtime.whenSettled(end, () => {
      this.#nested.delete(task)
      for (const one of data) this.#kept.add(one)
      if (this.#isOver) this.#remove(this.#kept)
    })
  }

  #remove(data: Set<Datum>): void {
    const { engine } = this.#runtime
    for (const datum of data) if (!datum.removed) engine.remove(datum, this.#runtime.now())
    data.clear()
    this.#runtime.schedule()
  }
}

function outermost(task: Task): Task {
  let at = task
  while (at.parent) at = at.parent
  return at
}
