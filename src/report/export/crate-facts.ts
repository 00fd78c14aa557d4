import type { Outcome, RunEvent } from '../../core/events.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

export interface CrateTask {
  id: number
  kind: number
  reads: number[]
  writes: number[]
  startedAt: number
  endedAt: number
  ended: boolean
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
  readonly #tasks: CrateTask[] = []
  /** Programs whose calls name no files: those of a coordination file are such, and events name their files. */
  readonly #programs = new Set<CrateTask>()
  readonly #programsOf = new Map<string, CrateTask[]>()
  /** Files that only such events name; their versions have numbers below 0. */
  readonly #streamed = new Set<string>()
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
      case 'stream':
        if (event.state === 'committed') this.#passedOn(event)
        break
      case 'run-ended':
        this.outcome = event.outcome
        this.message = event.message ?? null
        break
      default:
    }
  }

  /** Tasks that read or make files, and have ended. */
  get tasks(): CrateTask[] {
    const withFiles = [...this.#programs].filter(
      task => task.ended && task.reads.length + task.writes.length > 0,
    )
    return [...this.#tasks, ...withFiles].slice(0, MOST_TASKS)
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
    const fresh = { id: task, kind, startedAt: 0, endedAt: 0, ended: false, error: null }
    if (files && files.length > 0) {
      for (const { version, path } of files) this.paths.set(version, path)
      this.#open.set(task, { ...fresh, reads: [...reads], writes: [...writes] })
      return
    }
    const { name, form } = this.kinds.get(kind) ?? {}
    if (name === undefined || form !== 'command' || this.#programs.size >= MOST_TASKS) return
    const program: CrateTask = { ...fresh, reads: [], writes: [] }
    this.#programs.add(program)
    const ofName = this.#programsOf.get(name)
    if (ofName) ofName.push(program)
    else this.#programsOf.set(name, [program])
    this.#open.set(task, program)
  }

  /** Programs passed a file on while it grew, and no call names it. */
  #passedOn({ path, producers, readers }: Of<'stream'>): void {
    const tasksOf = (names: readonly string[]): CrateTask[] =>
      names.flatMap(name => this.#programsOf.get(name) ?? [])
    const makers = tasksOf(producers)
    // It is told again when its readers change.
    if (makers.length === 0 || this.#streamed.has(path)) return
    this.#streamed.add(path)
    const version = -this.#streamed.size
    this.paths.set(version, path)
    this.#made.add(version)
    for (const task of makers) task.writes.push(version)
    for (const task of tasksOf(readers.map(({ name }) => name))) task.reads.push(version)
  }

  #end(id: number, at: number, error: string | null): void {
    const task = this.#open.get(id)
    if (!task) return
    this.#open.delete(id)
    Object.assign(task, { endedAt: at, ended: true, error })
    for (const version of task.reads) this.#read.add(version)
    if (error === null) for (const version of task.writes) this.#made.add(version)
    if (!this.#programs.has(task) && this.#tasks.length < MOST_TASKS) this.#tasks.push(task)
  }
}
