import type { Access } from '../data/datum.ts'
import type { Group } from './group.ts'
import type { TaskIo } from '../io/task-io.ts'
import { MillraceError } from '../errors.ts'
import { cancelText } from '../why.ts'
import type { CancelWhy } from '../why.ts'
import type { Demand } from './demand.ts'
import type { Form } from './form.ts'

export type OnFailure = 'retry' | 'fail' | 'ignore' | 'cancelSuccessors'

/** One way to carry out a kind of task, with what is known of its speed. */
export class Implementation {
  readonly name: string
  readonly tags: readonly string[]
  /** Set for further versions of a task, whose demand replaces the one of the call. */
  readonly demand: Demand | null
  /** Runs begun, and ended, on which `mean` is based. */
  begun = 0
  ended = 0
  /** Milliseconds: a moving average, and a peak that decays. */
  mean = 0
  peak = 0

  constructor(name: string, demand: Demand | null = null) {
    this.name = name
    this.demand = demand
    this.tags = demand?.tags ?? []
  }

  record(milliseconds: number): void {
    this.ended++
    const weight = Math.max(1 / this.ended, 0.1)
    this.mean += (milliseconds - this.mean) * weight
    this.peak = Math.max(milliseconds, this.peak * 0.99)
  }

  /** What the next run will probably take; infinite while nothing is known. */
  get estimate(): number {
    return this.ended === 0 ? Infinity : Math.max(this.mean, this.peak / 8)
  }
}

/** What `task()` or `command()` defined: all its tasks share name, form and statistics. */
export interface Kind {
  readonly id: number
  readonly name: string
  readonly form: Form
  readonly module: string
  readonly implementations: Implementation[]
  /** Has ended a thread under others: it waits for a lane of its own. */
  endsThreads?: boolean
  /** Its implementations differ in their number of CPUs only. */
  isMoldable?: boolean
  /** Of its last task. */
  terms?: Terms
}

/** What most tasks of a kind have in common, kept once for all of them. */
interface Terms {
  readonly kind: Kind
  readonly priority: number
  readonly demand: Demand
  readonly onFailure: OnFailure
  readonly timed: boolean
}

function termsOf({ kind, demand, priority = 0, onFailure = 'fail', timed = false }: TaskSpec): Terms {
  const last = kind.terms
  const isSame =
    last?.demand === demand &&
    last.priority === priority &&
    last.onFailure === onFailure &&
    last.timed === timed
  return isSame ? last : (kind.terms = { kind, priority, demand, onFailure, timed })
}

/** What most tasks never have; there are millions of them, and each is moved about in memory. */
interface Rare {
  label: string
  cause: Task | null
  why: CancelWhy | null
  error: unknown
  calls: Set<Task> | null
  bypassed: number
  near: number
}

/**
 * waiting    some input is not committed
 * ready      in the queue, waiting for resources
 * parked     ready, but another COMMUTATIVE task holds its datum
 * running    holds resources; it may still be second in a lane's queue
 * blocked    waits for tasks that it called, for room, or for values of a stream; holds no lane
 * stopping   cancelled while running; holds its lane until it has stopped
 * done, ignored, failed, cancelled: ended
 */
export type TaskState =
  | 'waiting'
  | 'ready'
  | 'parked'
  | 'running'
  | 'blocked'
  | 'stopping'
  | 'done'
  | 'ignored'
  | 'failed'
  | 'cancelled'

export const TASK_STATES: readonly TaskState[] = [
  'waiting',
  'ready',
  'parked',
  'running',
  'blocked',
  'stopping',
  'done',
  'ignored',
  'failed',
  'cancelled',
]

const LEGAL: Record<TaskState, readonly TaskState[]> = {
  waiting: ['ready', 'cancelled'],
  ready: ['running', 'parked', 'done', 'cancelled'],
  parked: ['ready', 'cancelled'],
  running: ['done', 'ignored', 'failed', 'ready', 'waiting', 'blocked', 'stopping'],
  blocked: ['running', 'done', 'failed', 'ignored', 'ready', 'waiting', 'stopping'],
  stopping: ['cancelled'],
  done: [],
  ignored: [],
  failed: [],
  cancelled: [],
}

/** The way that nearly all tasks go comes first, and needs no table. */
const isLegal = (from: TaskState, to: TaskState): boolean =>
  (from === 'ready' && to === 'running') ||
  (from === 'running' && to === 'done') ||
  (from === 'waiting' && to === 'ready') ||
  LEGAL[from].includes(to)

const READY = TASK_STATES.indexOf('ready')
const RUNNING = TASK_STATES.indexOf('running')
const codeOf = (state: TaskState): number =>
  state === 'ready' ? READY : state === 'running' ? RUNNING : TASK_STATES.indexOf(state)

export interface TaskSpec {
  kind: Kind
  group: Group
  parent?: Task | null
  priority?: number
  demand: Demand
  onFailure?: OnFailure
  retries?: number
  /** A task that is stopped after a time cannot queue behind others, because its start must be known. */
  timed?: boolean
  /** A command that may queue on a lane. Functions always may. */
  queues?: boolean
  /** Tells it from others of its kind. */
  label?: string
  /** The node that it was assigned to when the graph was divided among nodes. */
  near?: number
  payload?: unknown
}

/** Among times and past states: none yet. */
const NOT_YET = -1
/** Places in the times of a task. */
const SUBMITTED = 0
const STARTED = 1
const CHARGE = 2
const PAST = 3

function setPast(times: number[], at: number, state: TaskState, since: number): void {
  times[at] = codeOf(state)
  times[at + 1] = since
}

const NO_ACCESSES: readonly Access[] = []

export class Task {
  readonly id: number
  #terms: Terms
  readonly group: Group
  readonly parent: Task | null
  #retries: number
  /** What the runtime keeps for it; the core never looks inside. */
  payload: unknown

  state: TaskState = 'waiting'
  accesses: readonly Access[] = NO_ACCESSES
  /** Inputs that are not there yet. */
  missing = 0
  attempt = 1
  implementation: Implementation
  node = -1
  /** Lanes of I/O tasks are numbered after those of the CPUs. */
  lane = -1
  /** For I/O tasks, and for tasks that ask for storage: where, and how much of it. */
  io: TaskIo | null = null
  score = 0
  /** Distance from the end of the graph, for policies that go by it; see `Ranks`. */
  rank = 0
  /** May wait in a lane's queue behind other short tasks: it needs one CPU and nothing else. */
  queueable = false
  /** Order of becoming ready. */
  turn = 0
  /**
   * From its first change of state on: numbers that are no integers, which would each be an object of their own. First three
   * of them, by name, then the states after the first one and before this one, and when each began, in turn.
   */
  #times: number[] | null = null
  #rare: Rare | null = null

  /** Neighbours in the list of its group's members. */
  next: Task | null = null
  before: Task | null = null
  /** When its state began. */
  since: number

  constructor(id: number, spec: TaskSpec, now: number) {
    this.id = id
    this.#terms = termsOf(spec)
    this.group = spec.group
    this.parent = spec.parent ?? null
    this.#retries = spec.retries ?? 0
    this.payload = spec.payload
    this.implementation = spec.kind.implementations[0] as Implementation
    this.since = now
    if (spec.label) this.#more.label = spec.label
    if (spec.near !== undefined) this.near = spec.near
  }

  get kind(): Kind {
    return this.#terms.kind
  }
  get priority(): number {
    return this.#terms.priority
  }
  /** It must be in no queue: those are ordered by it. */
  prioritize(priority: number): void {
    this.#terms = { ...this.#terms, priority }
  }
  get demand(): Demand {
    return this.#terms.demand
  }
  /** What an attempt asks for: the implementation that was chosen may ask for something else than the task. */
  get attemptDemand(): Demand {
    return this.implementation.demand ?? this.#terms.demand
  }
  get onFailure(): OnFailure {
    return this.#terms.onFailure
  }
  get timed(): boolean {
    return this.#terms.timed
  }

  /** Further attempts; none for a task that cannot begin again. */
  get retries(): number {
    return this.#retries
  }

  /** There is no attempt after this one. */
  giveUpRetries(): void {
    this.#retries = Math.min(this.#retries, this.attempt - 1)
  }

  get name(): string {
    return `${this.kind.name}#${this.id}`
  }

  /** What tells it from others of its kind, if its definition says. */
  get label(): string {
    return this.#rare === null ? '' : this.#rare.label
  }

  /** Its name, and what tells it from others of its kind. */
  get title(): string {
    return this.label === '' ? this.name : `${this.name} ${this.label}`
  }

  /** The failed task because of which it was cancelled. */
  get cause(): Task | null {
    return this.#rare === null ? null : this.#rare.cause
  }
  set cause(task: Task | null) {
    if (this.#rare || task) this.#more.cause = task
  }

  /** Why it was cancelled. */
  get why(): CancelWhy | null {
    return this.#rare === null ? null : this.#rare.why
  }
  set why(why: CancelWhy | null) {
    if (this.#rare || why) this.#more.why = why
  }

  /** The same in words; empty for a task that is not cancelled. */
  get reason(): string {
    const { why } = this
    return why === null ? '' : cancelText(why)
  }

  get error(): unknown {
    return this.#rare === null ? undefined : this.#rare.error
  }
  set error(error: unknown) {
    if (this.#rare || error !== undefined) this.#more.error = error
  }

  /** Tasks that it called and that have not ended. */
  get calls(): Set<Task> | null {
    return this.#rare === null ? null : this.#rare.calls
  }
  set calls(tasks: Set<Task> | null) {
    if (this.#rare || tasks) this.#more.calls = tasks
  }

  /** How often a task of lower rank was started past it because it did not fit. */
  get bypassed(): number {
    return this.#rare === null ? 0 : this.#rare.bypassed
  }
  set bypassed(times: number) {
    if (this.#rare || times > 0) this.#more.bypassed = times
  }

  /** The node that it waits for because the graph was divided among nodes; negative: none. It may run elsewhere. */
  get near(): number {
    return this.#rare === null ? -1 : this.#rare.near
  }
  set near(node: number) {
    if (this.#rare || node >= 0) this.#more.near = node
  }

  get #more(): Rare {
    return (this.#rare ??= {
      label: '',
      cause: null,
      why: null,
      error: undefined,
      calls: null,
      bypassed: 0,
      near: -1,
    })
  }

  get ended(): boolean {
    const { state } = this
    return state === 'done' || state === 'ignored' || state === 'failed' || state === 'cancelled'
  }

  /** When it was called. */
  get submittedAt(): number {
    return this.#times === null ? this.since : (this.#times[SUBMITTED] as number)
  }

  /** When it began; negative before. */
  get startedAt(): number {
    return this.#times === null ? NOT_YET : (this.#times[STARTED] as number)
  }
  set startedAt(at: number) {
    if (this.#times) this.#times[STARTED] = at
  }

  /** Milliseconds that its lane is charged for it. */
  get charge(): number {
    return this.#times === null ? 0 : (this.#times[CHARGE] as number)
  }
  set charge(milliseconds: number) {
    if (this.#times) this.#times[CHARGE] = milliseconds
  }

  /** When it began, or was told to. */
  get begunAt(): number {
    return this.startedAt >= 0 ? this.startedAt : this.since
  }

  /** Throws with the story so far if the task cannot go there: before anything is changed on the way. */
  expect(to: TaskState, from: readonly TaskState[] = TASK_STATES): void {
    const { state } = this
    if (isLegal(state, to) && (from === TASK_STATES || from.includes(state))) return
    throw new MillraceError(
      'MR_INTERNAL',
      `${this.name} cannot go from ${this.state} to ${to}. Its story: ${this.story()}`,
    )
  }

  /**
   * The only place where the state changes; what is not legal throws. Returns the time of it: threads report
   * in batches, so what happens to one task may come a little earlier than what happened to another, but
   * the story of each goes forward.
   */
  move(to: TaskState, now: number): number {
    const { state, since } = this
    const times = this.#times
    if (!isLegal(state, to)) this.expect(to)
    // Room for the way that nearly all tasks go, and for no more: arrays that are pushed to have room for a dozen.
    if (!times) this.#times = [since, NOT_YET, 0, NOT_YET, 0, NOT_YET, 0]
    else if (times[PAST] === NOT_YET) setPast(times, PAST, state, since)
    else if (times[PAST + 2] === NOT_YET) setPast(times, PAST + 2, state, since)
    else times.push(codeOf(state), since)
    this.state = to
    const at = Math.max(now, since)
    this.since = at
    return at
  }

  story(): string {
    const times = this.#times
    const parts = [`${TASK_STATES[0]} at ${this.submittedAt.toFixed(3)} ms`]
    for (let i = PAST; times && i < times.length && times[i] !== NOT_YET; i += 2) {
      parts.push(`${TASK_STATES[times[i] as number]} at ${(times[i + 1] as number).toFixed(3)} ms`)
    }
    if (times) parts.push(`${this.state} at ${this.since.toFixed(3)} ms`)
    return parts.join(', ')
  }
}
