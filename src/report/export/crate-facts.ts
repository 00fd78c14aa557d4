import type { Outcome, RunEvent } from '../../core/events.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

export interface CrateTask {
  id: number
  kind: number
  reads: readonly number[]
  writes: readonly number[]
  startedAt: number
  endedAt: number
  error: string | null
}

/** Tasks with files that are described one by one; a larger crate is of no use. */
const MOST_TASKS = 10_000

/** What a crate needs of a run: which files were read and made, by whom and when. */
export class CrateFacts {
  run: Of<'run-started'> | null = null
  outcome: Outcome | null = null
  message: string | null = null
  latest = 0
  readonly kinds = new Map<number, Of<'kind-defined'>>()
  readonly paths = new Map<number, string>()
  /** Tasks that read or make files, and have ended. */
  readonly tasks: CrateTask[] = []
  readonly #open = new Map<number, CrateTask>()
  readonly #made = new Set<number>()
  readonly #read = new Set<number>()

  observe(event: RunEvent): void {
    this.latest = Math.max(this.latest, event.at)
    switch (event.type) {
      case 'run-started':
        this.run = event
        break
      case 'kind-defined':
        this.kinds.set(event.kind, event)
        break
      case 'submitted':
        this.#submit(event)
        break
      case 'started': {
        const task = this.#open.get(event.task)
        if (task) task.startedAt = event.at
        break
      }
      case 'finished':
        if (event.kept) this.#open.delete(event.task)
        else this.#end(event.task, event.at, null)
        break
      case 'failed':
        if (event.next !== 'retry')
          this.#end(event.task, event.at, `${event.failure.name}: ${event.failure.message}`)
        break
      case 'cancelled':
        this.#open.delete(event.task)
        break
      case 'run-ended':
        this.outcome = event.outcome
        this.message = event.message ?? null
        break
      default:
    }
  }

  /** Files that were read and that no task made. */
  inputs(): string[] {
    return this.#unique([...this.#read].filter(version => !this.#made.has(version)))
  }

  outputs(): string[] {
    return this.#unique([...this.#made])
  }

  #unique(versions: readonly number[]): string[] {
    return [...new Set(versions.flatMap(version => this.paths.get(version) ?? []))].sort()
  }

  #submit({ task, kind, reads, writes, files }: Of<'submitted'>): void {
    if (!files || files.length === 0) return
    for (const { version, path } of files) this.paths.set(version, path)
    this.#open.set(task, { id: task, kind, reads, writes, startedAt: 0, endedAt: 0, error: null })
  }

  #end(id: number, at: number, error: string | null): void {
    const task = this.#open.get(id)
    if (!task) return
    this.#open.delete(id)
    for (const version of task.reads) this.#read.add(version)
    if (error === null) for (const version of task.writes) this.#made.add(version)
    if (this.tasks.length < MOST_TASKS) this.tasks.push({ ...task, endedAt: at, error })
  }
}
