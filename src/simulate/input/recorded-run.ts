import { MillraceError } from '../../core/errors.ts'
import { hadNotBegun } from '../../core/why.ts'
import type { DemandFacts, Outcome, RunEvent, TaskUsage } from '../../core/events.ts'
import { readJournal } from '../../report/journal/reader.ts'

export type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** A task as the journal of a run tells of it. Times are in milliseconds. */
export interface RecordedTask {
  readonly id: number
  readonly kind: number
  readonly priority: number
  readonly label: string
  readonly reads: readonly number[]
  readonly writes: readonly number[]
  /** What it had made before its end, and how long after its beginning; also what had no name at its call. */
  released: Map<number, number> | null
  readonly demand: number | null
  /** The task at whose end the program probably waited before this call. */
  readonly after: number | null
  /** Since that, or since the call before. */
  readonly gap: number
  readyAt: number
  startedAt: number
  endedAt: number
  /** For which its CPU was free, nothing was missing, and it had not begun: it was being brought there. */
  delay: number
  /** While it waited for tasks that it had called it did nothing. */
  blocked: number
  blockedAt: number
  cpus: number
  isIo: boolean
  /** Where its files went, or where it read, for tasks that the core gave a device. */
  device: number | null
  usage: TaskUsage | null
}

export interface RecordedMove {
  readonly from: number
  readonly to: number
  readonly bytes: number
  readonly startedAt: number
  endedAt: number
}

/** A file as it was read or written in the run. */
export interface RecordedFile {
  path: string | null
  bytes: number
  /** The device that it lay on, as far as the core knew. */
  device: number | null
}

export interface RecordedRun {
  readonly facts: Of<'run-started'>
  readonly kinds: Map<number, Of<'kind-defined'>>
  readonly demands: Map<number, DemandFacts>
  /** Those that ended well, in the order of their calls. */
  readonly tasks: RecordedTask[]
  readonly moves: RecordedMove[]
  /** By version. */
  readonly files: Map<number, RecordedFile>
  /** Tasks that did not end well, and attempts of others that did not: these are not replayed. */
  readonly left: number
  readonly lost: number
  /** How the run ended; null if its journal does not say. */
  readonly outcome: Outcome | null
}

/** A call so soon after the end of a task, and so late after the call before, was waiting for that end. */
const SOON = 2

/** Starting a thread and bringing a task there takes no longer; what is above was something else. Milliseconds. */
const LONGEST_START = 250

export async function readRecordedRun(path: string): Promise<RecordedRun> {
  const reader = new RunReader()
  for await (const event of readJournal(path)) reader.observe(event)
  return reader.run(path)
}

/** Takes events in their order. */
export class RunReader {
  #facts: Of<'run-started'> | null = null
  readonly #kinds = new Map<number, Of<'kind-defined'>>()
  readonly #demands = new Map<number, DemandFacts>()
  readonly #tasks = new Map<number, RecordedTask>()
  readonly #moves = new Map<number, RecordedMove>()
  readonly #files = new Map<number, RecordedFile>()
  /** Where tasks run, and since when nothing does there. */
  readonly #lanes = new Map<number, string>()
  readonly #freeAt = new Map<string, number>()
  #hasWide = false
  #lost = 0
  #outcome: Outcome | null = null
  #lastCall = 0
  #lastEnd: { task: number; at: number } | null = null

  run(path: string): RecordedRun {
    const tasks = [...this.#tasks.values()].filter(({ endedAt }) => endedAt >= 0)
    // Which CPUs a task holds beside its first is not recorded: others may have waited for these.
    if (this.#hasWide) for (const task of tasks) task.delay = 0
    if (this.#facts && tasks.length > 0) {
      return {
        facts: this.#facts,
        kinds: this.#kinds,
        demands: this.#demands,
        tasks,
        moves: [...this.#moves.values()].filter(({ endedAt }) => endedAt >= 0),
        files: this.#files,
        left: this.#tasks.size - tasks.length,
        lost: this.#lost,
        outcome: this.#outcome,
      }
    }
    throw new MillraceError('MR_SIMULATION', `the journal ${path} has no task that ended well`, {
      hint: 'Name a run of which tasks ended well: `millrace runs` lists them.',
    })
  }

  observe(event: RunEvent): void {
    switch (event.type) {
      case 'run-started':
        this.#facts = event
        break
      case 'kind-defined':
        this.#kinds.set(event.kind, event)
        break
      case 'demand-defined':
        this.#demands.set(event.demand, event)
        break
      case 'submitted':
        this.#submitted(event)
        break
      case 'ready':
        this.#ready(event)
        break
      case 'started':
        this.#started(event)
        break
      case 'blocked':
      case 'resumed':
        this.#paused(event)
        break
      case 'released':
        this.#released(event)
        break
      case 'committed':
      case 'found':
        this.#file(event.version).bytes = event.bytes
        break
      case 'finished':
        this.#finished(event)
        break
      case 'failed':
      case 'returned':
        if (event.type === 'failed' || !hadNotBegun(event)) this.#lost++
        this.#leave(event.task, event.at)
        break
      case 'kept':
      case 'cancelled':
        this.#leave(event.task, event.at)
        break
      case 'run-ended':
        this.#outcome = event.outcome
        break
      case 'move':
        this.#moved(event)
        break
      default:
    }
  }

  #submitted({ task, kind, priority, reads, writes, at, files, demand, label }: Of<'submitted'>): void {
    const end = this.#lastEnd
    const hasWaited = end && end.at >= this.#lastCall && at - end.at < SOON && at - this.#lastCall > SOON
    const since = hasWaited ? end.at : this.#lastCall
    for (const { version, path } of files ?? []) this.#file(version).path = path
    this.#tasks.set(task, {
      id: task,
      kind,
      priority,
      label: label ?? '',
      reads,
      writes,
      released: null,
      demand: demand ?? null,
      after: hasWaited ? end.task : null,
      gap: Math.max(0, at - since),
      readyAt: at,
      startedAt: -1,
      endedAt: -1,
      delay: 0,
      blocked: 0,
      blockedAt: -1,
      cpus: 1,
      isIo: false,
      device: null,
      usage: null,
    })
    this.#lastCall = at
  }

  #ready({ task, at }: Of<'ready'>): void {
    const one = this.#tasks.get(task)
    if (one) one.readyAt = at
  }

  /** Of several attempts the last counts. */
  #started({ task, at, cpus, device, node, lane }: Of<'started'>): void {
    const one = this.#tasks.get(task)
    if (!one) return
    const place = `${node} ${lane}`
    this.#lanes.set(task, place)
    if (cpus > 1) this.#hasWide = true
    const free = Math.max(one.readyAt, this.#freeAt.get(place) ?? 0)
    // A task that asks for more than a CPU may have waited for that.
    one.delay = one.demand === null ? Math.min(LONGEST_START, Math.max(0, at - free)) : 0
    Object.assign(one, { startedAt: at, blocked: 0, blockedAt: -1, released: null, device: device ?? null })
    one.isIo = cpus === 0
    one.cpus = cpus || 1
    if (device === undefined) return
    for (const version of one.writes) this.#file(version).device = device
  }

  /** A task that waits for others leaves its CPU to them, and goes on where there is one. */
  #paused(event: Of<'blocked'> | Of<'resumed'>): void {
    const { task, at } = event
    const one = this.#tasks.get(task)
    if (!one) return
    if (event.type === 'blocked') {
      one.blockedAt = at
      return this.#leave(task, at)
    }
    this.#lanes.set(task, `${event.node} ${event.lane}`)
    this.#goOn(one, at)
  }

  #goOn(one: RecordedTask, at: number): void {
    if (one.blockedAt < 0) return
    one.blocked += at - one.blockedAt
    one.blockedAt = -1
  }

  /** The task is not on its CPU any more, however it came to that. */
  #leave(task: number, at: number): void {
    const lane = this.#lanes.get(task)
    if (lane !== undefined) this.#freeAt.set(lane, at)
    this.#lanes.delete(task)
  }

  #released({ task, at, version }: Of<'released'>): void {
    const one = this.#tasks.get(task)
    if (!one || one.startedAt < 0) return
    one.released ??= new Map()
    one.released.set(version, at - one.startedAt - one.blocked)
  }

  #finished({ task, at, usage }: Of<'finished'>): void {
    const one = this.#tasks.get(task)
    if (one) {
      this.#goOn(one, at)
      one.startedAt = one.startedAt < 0 ? at : one.startedAt
      one.endedAt = at
      one.usage = usage ?? null
    }
    this.#leave(task, at)
    this.#lastEnd = { task, at }
  }

  #moved({ move, phase, version, from, to, bytes, at }: Of<'move'>): void {
    if (phase === 'started') this.#moves.set(move, { from, to, bytes, startedAt: at, endedAt: -1 })
    if (phase !== 'done') return
    const one = this.#moves.get(move)
    if (one) one.endedAt = at
    this.#file(version).device = to
  }

  #file(version: number): RecordedFile {
    let file = this.#files.get(version)
    if (!file) this.#files.set(version, (file = { path: null, bytes: 0, device: null }))
    return file
  }
}
