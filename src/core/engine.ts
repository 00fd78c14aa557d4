import { nodesOf } from './schedule/machine.ts'
import type { Node } from './schedule/machine.ts'
import { Membership } from './schedule/membership.ts'
import { Decisions } from './decisions.ts'
import type { EngineOptions } from './engine-options.ts'
import { markGrowing } from './data/growing.ts'
import type { Access, Datum, Version } from './data/datum.ts'
import { whyNeverRead } from './data/graph.ts'
import { rejectNestedCycle } from './data/nesting.ts'
import { Versions } from './data/versions.ts'
import type { AfterFailure, FailureFacts, Observer, RunEvent, TaskUsage } from './events.ts'
import { Instructions } from './instruction.ts'
import type { AccessRequest, Instruction } from './instruction.ts'
import { explain } from './io/explain.ts'
import { IoCore } from './io/io-core.ts'
import { Placement } from './schedule/placement.ts'
import { fifo } from './schedule/policy.ts'
import type { Policy } from './schedule/policy.ts'
import { Suitable } from './schedule/suitable.ts'
import { Readiness } from './schedule/readiness.ts'
import type { EngineParts } from './schedule/readiness.ts'
import { Cancellations } from './tasks/cancellations.ts'
import { Control } from './tasks/control.ts'
import type { Demand } from './tasks/demand.ts'
import { Endings } from './tasks/endings.ts'
import { createGroup, join, members } from './tasks/group.ts'
import type { Group } from './tasks/group.ts'
import type { Looks } from './tasks/looks.ts'
import { taskAgain } from './tasks/make-again.ts'
import { Losses } from './tasks/losses.ts'
import type { AfterLoss, LostWith } from './tasks/losses.ts'
import { snapshotOf } from './tasks/snapshot.ts'
import { type Measured, finishedEvent, tellSubmitted } from './tasks/submission.ts'
import { Task } from './tasks/task.ts'
import type { TaskSpec } from './tasks/task.ts'
import { returnText } from './why.ts'
import type { CancelWhy, ClosedBy, ReturnWhy } from './why.ts'

export type { AccessRequest, Instruction } from './instruction.ts'

/**
 * The engine decides, others do. What happened comes in through the methods below, each with the time; what
 * is to be done comes out of `decide`. There is no clock, no timer and no I/O here, so the real runtime and
 * the simulator drive the same code.
 */
export class Engine {
  readonly root: Group = createGroup('', null)
  readonly policy: Policy
  readonly nodes: Node[]
  /** Devices, budgets and what lies where; the runtime tells it what happens to files. */
  readonly io: IoCore
  readonly control: Control
  /** Told when nodes join, change and are lost. */
  readonly membership: Membership
  /** Set to see every change of state; null costs nothing. */
  observer: Observer | null
  readonly #placement: Placement
  readonly #readiness: Readiness
  readonly #versions: Versions
  readonly #cancellations: Cancellations
  readonly #endings: Endings
  readonly #losses = new Losses()
  readonly #instructions = new Instructions()
  readonly #decisions: Decisions
  #lastTask = 0
  readonly #taken = { sum: 0, count: 0 }
  readonly #suitable: Suitable
  /** Demands that the observer knows. */
  readonly #told = new Set<Demand>()

  constructor(options: EngineOptions) {
    const sizeOf = options.sizeOf ?? (() => 0)
    this.nodes = nodesOf(options.nodes)
    this.policy = options.policy ?? fifo
    this.observer = options.observer ?? null
    this.io = new IoCore(
      this.nodes,
      options.nodes,
      options,
      () => this.observer,
      version => this.#versions.discardIfUnused(version),
    )
    this.#suitable = new Suitable(this.nodes, options.mayGrow ?? false)
    this.#placement = new Placement(this.nodes, this.policy, this.io, sizeOf, this.#suitable.mayGrow)
    const parts: EngineParts = {
      observed: this,
      nodes: this.nodes,
      policy: this.policy,
      io: this.io,
      placement: this.#placement,
      instructions: this.#instructions,
    }
    this.#readiness = new Readiness(parts)
    this.#cancellations = new Cancellations(this.#placement)
    this.#versions = new Versions(parts, this.#readiness, this.#cancellations, sizeOf)
    this.#endings = new Endings(parts, this.#readiness, this.#versions, this.#cancellations)
    this.#decisions = new Decisions(parts, this.#readiness)
    this.membership = new Membership(
      this.nodes,
      this.root,
      parts,
      this.#suitable,
      this.#cancellations,
      this.#endings,
    )
    this.control = new Control(this.root, this.#placement, this.looks)
  }

  // --- what happens ---

  submit(spec: TaskSpec, accesses: readonly AccessRequest[], now: number): Task {
    // In a run that is closed, as where all nodes were lost, it is cancelled, whatever it asks for.
    if (!this.isClosed) this.#suitable.check(spec)
    if (spec.demand.storage) this.io.check(spec, accesses)
    if (spec.parent) rejectNestedCycle(spec.parent, spec.kind.name, accesses)
    const task = new Task(++this.#lastTask, spec, now)
    if (accesses.length === 1)
      task.accesses = [this.#versions.access(task, accesses[0] as AccessRequest, now)]
    else if (accesses.length > 0) this.#accessAll(task, accesses, now)
    for (let i = 0; i < accesses.length; i++) if (accesses[i]?.grows) markGrowing(task.accesses[i] as Access)
    if (spec.parent) (spec.parent.calls ??= new Set()).add(task)
    return this.#admit(task, spec.queues === true, now)
  }

  /** Versions that the task had made are lost and still needed: a task like it makes them again, of the same inputs. */
  makeAgain(done: Task, lost: readonly Version[], now: number): Task {
    const task = taskAgain(++this.#lastTask, done, now)
    for (const version of lost) this.#versions.unmake(version, task)
    this.#admit(task, done.queueable, now)
    this.membership.cancelIfHomeless(task, now)
    return task
  }

  /** The version is kept as if a task read it, until `letGo`. */
  hold(version: Version): void {
    version.readers++
  }

  letGo(version: Version, now: number): void {
    this.#versions.readerEnded(version, now)
  }

  #admit(task: Task, queues: boolean, now: number): Task {
    const doom = this.#versions.waitForInputs(task)
    this.io.bound?.submitted(task)
    task.queueable = this.#placement.lanes.mayQueue(task, queues)
    join(task)
    this.#placement.added(task)
    if (this.observer) tellSubmitted(this.observer, task, this.#told, now)
    if (!this.#cancellations.addIfRefused(task)) {
      if (doom) this.#cancellations.add(task, doom.cause, whyNeverRead(doom))
      else if (task.missing === 0) this.#readiness.ready(task, now)
    }
    this.#endings.cancelAll(now)
    return task
  }

  /** Tells when the task really began, for tasks that queued on their lane. */
  started(task: Task, now: number): void {
    this.#readiness.started(task, now)
  }

  /**
   * What the task made is in `value` of its versions by now, unless it is `stopping`: then nothing of it is
   * kept. `took` is given when it was measured where the task ran.
   */
  finished(task: Task, now: number, took = now - task.begunAt, measured?: Measured): void {
    if (task.state === 'stopping') return this.stopped(task, now)
    task.expect('done', ['running', 'blocked'])
    this.started(task, now)
    task.implementation.record(took)
    this.#taken.sum += took
    this.#taken.count++
    this.#placement.record(task, took)
    this.#endings.release(task, now, took)
    task.move('done', now)
    this.observer?.(finishedEvent(task, now, measured))
    this.#endings.end(task, now)
    this.#endings.cancelAll(now)
  }

  /** Asks for results that are known from before. */
  get looks(): Looks {
    return this.#readiness.looks
  }

  /** Its results are known and in `value` of its versions: it does not run. False when it was cancelled meanwhile. */
  answered(task: Task, now: number): boolean {
    if (!this.looks.end(task)) return false
    const at = task.move('done', now)
    this.observer?.({ type: 'kept', at, task: task.id })
    this.#endings.end(task, now)
    this.#endings.cancelAll(now)
    return true
  }

  /** Its results are not known: it runs. */
  unanswered(task: Task, now: number): void {
    if (this.looks.end(task)) this.#readiness.queue(task, now)
  }

  /** What a failure of this task would lead to; lets the runtime prepare what `ignore` keeps. */
  afterFailure(task: Task): AfterFailure {
    if (task.attempt <= task.retries) return 'retry'
    return task.onFailure === 'retry' ? 'fail' : task.onFailure
  }

  failed(
    task: Task,
    failure: FailureFacts,
    error: unknown,
    now: number,
    log?: string,
    usage: TaskUsage | null = null,
  ): void {
    if (task.state === 'stopping') return this.stopped(task, now)
    task.expect('failed')
    this.started(task, now)
    const then = this.afterFailure(task)
    this.#endings.release(task, now, then === 'ignore' ? NOT_MEASURED : -1)
    task.error = error
    const facts = { task: task.id, attempt: task.attempt, failure, next: then }
    const more = { ...(log ? { log } : {}), ...(usage ? { usage } : {}) }
    this.observer?.({ type: 'failed', at: now, ...facts, ...more })
    this.stopGrowth(task)
    if (then === 'retry') {
      task.attempt++
      this.#readiness.again(task, now)
      this.#cancellations.addIfRefused(task)
    } else if (then === 'ignore') {
      task.move('ignored', now)
      this.#endings.end(task, now)
    } else {
      task.move('failed', now)
      this.#endings.end(task, now)
      if (then === 'fail') this.#cancellations.failGroup(task.group, task)
    }
    this.#endings.cancelAll(now)
  }

  /** The attempt was lost through no fault of the task; it does not count. */
  returned(task: Task, why: ReturnWhy, now: number): void {
    if (task.state === 'stopping') return this.stopped(task, now)
    task.expect('ready', ['running', 'blocked'])
    // A version of a task that was being tried and told nothing is to be tried again.
    task.implementation.begun--
    this.#endings.release(task, now)
    this.stopGrowth(task)
    this.observer?.({ type: 'returned', at: now, task: task.id, reason: returnText(why), why: why.kind })
    this.#readiness.again(task, now)
    this.#cancellations.addIfRefused(task)
    this.#endings.cancelAll(now)
  }

  /**
   * All that was heard of the lane until `now` has been told. If its task takes longer than expected, those that wait behind
   * it are recalled. Returns whether it does.
   */
  laneSilent(node: number, lane: number, now: number): boolean {
    const [at, silent] = [this.nodes[node], this.nodes[node]?.lanes[lane]]
    return at !== undefined && silent !== undefined && this.#placement.lanes.recalls.silent(at, silent, now)
  }

  /** Nodes with lanes on which tasks wait behind another: those lanes can be silent. */
  crowdedNodes(): ReadonlySet<Node> {
    const { recalls } = this.#placement.lanes
    recalls.prune()
    return recalls.crowded
  }

  /** Tasks that `recall` named stay on their lanes for now, because more was heard of these; it may name them again. */
  kept(tasks: readonly Task[]): void {
    this.#placement.lanes.recalls.kept(tasks)
  }

  /** An attempt was lost; tells what to do. `culprit` is the task that is known to be the reason, if one is. */
  afterLoss(task: Task, lostWith: LostWith, culprit: Task | null = null): AfterLoss {
    return this.#losses.after(task, lostWith, culprit)
  }

  /** What the attempt was given cannot be given again, or no attempt can begin: there is no further one. */
  lastAttempt(task: Task): void {
    task.giveUpRetries()
  }

  /** The task waits for tasks that it called: it gives back what it holds. */
  blocked(task: Task, reason: string, now: number): void {
    if (task.state !== 'running') return
    this.started(task, now)
    this.#placement.release(task, now, true)
    if (task.io) this.io.blocked(task)
    task.move('blocked', now)
    this.observer?.({ type: 'blocked', at: now, task: task.id, reason })
  }

  /** What the blocked task waited for is there. It goes on when `decide` says `resume`. */
  unblocked(task: Task): void {
    this.#readiness.unblocked(task)
  }

  /** A task that `stop` named has stopped. */
  stopped(task: Task, now: number): void {
    this.#endings.stopped(task, now)
    this.#endings.cancelAll(now)
  }

  /** The task has made this version, at `at`, and goes on: tasks that wait for it may start. */
  release(task: Task, version: Version, at: number, now: number): void {
    if (version.state !== 'pending') return
    this.started(task, at)
    this.observer?.({ type: 'released', at, task: task.id, version: version.id })
    this.#readiness.releasedBy = task
    this.#versions.commit(version, now)
    this.#readiness.releasedBy = null
    this.#endings.cancelAll(now)
  }

  /** A version that was to be released never comes, because of this task. */
  lose(version: Version, by: Task, now: number): void {
    if (version.state !== 'pending') return
    this.#versions.spoil(version, by, now)
    this.#endings.cancelAll(now)
  }

  /** An attempt of its producer has begun to write it, and it may be read as it grows. */
  grows(version: Version, now: number): void {
    this.#versions.grows(version, now)
    this.#endings.cancelAll(now)
  }

  /** What was written so far is void; its readers come back by `returned`. */
  stopGrowth(task: Task): void {
    for (const { write } of task.accesses) if (write?.growth) write.growth.open = false
  }

  /** Commits a version before its producer has ended. */
  commit(version: Version, now: number): void {
    this.#versions.commit(version, now)
  }

  get isClosed(): boolean {
    return this.#cancellations.isClosed
  }

  /** Nothing new starts; what has not started is cancelled. */
  close(by: ClosedBy, now: number): void {
    this.#cancellations.addUnstarted(this.root, null, this.#cancellations.close(by))
    this.#endings.cancelAll(now)
  }

  cancel(group: Group, why: CancelWhy, now: number): void {
    group.cancelled = why
    for (const task of members(group)) this.cancelTask(task, null, why)
    this.#endings.cancelAll(now)
  }

  cancelTask(task: Task, cause: Task | null, why: CancelWhy, now = -1): void {
    if (task.ended || task.state === 'stopping') return
    this.#cancellations.add(task, cause, why)
    if (now >= 0) this.#endings.cancelAll(now)
  }

  createGroup(name: string, parent: Group = this.root): Group {
    return createGroup(name, parent)
  }

  /** Nothing more is submitted to it; its last members may still be running. */
  closeGroup(group: Group): void {
    group.closed = true
    if (group.live === 0) group.parent?.children.delete(group)
  }

  /** The program has seen the failure: what it calls from now on runs again. */
  acknowledge(group: Group): void {
    group.failure = null
  }

  /** The version that a reader outside the graph sees now; closes a team. */
  read(datum: Datum, now: number): Version {
    this.#versions.closeTeam(datum.current, now)
    return datum.current
  }

  /** After the program has seen a failure, the datum is what it was before. */
  fallBack(datum: Datum): void {
    this.#versions.fallBack(datum)
  }

  watch(version: Version): void {
    this.#versions.watch(version)
  }

  /** For in-place memory: the program may write there only after the tasks that read it. */
  watchReaders(version: Version): void {
    this.#versions.watchReaders(version)
  }

  watchGroup(group: Group): void {
    if (group.live === 0) this.#instructions.push({ type: 'idle', group })
    else group.watched = true
  }

  /** The main program gives the datum a value of its own. */
  write(datum: Datum, value: unknown, now: number): Version {
    return this.#versions.write(datum, value, now)
  }

  /** The program will not use the datum again. */
  remove(datum: Datum, now: number): void {
    this.#versions.closeTeam(datum.current, now)
    datum.removed = true
    this.io.bound?.removed(datum.current)
    this.#versions.retireFrom(datum.current)
  }

  /** Tasks that have been submitted. */
  get taskCount(): number {
    return this.#lastTask
  }

  // --- what is to be done ---

  decide(now: number): Instruction[] {
    return this.#decisions.take(now)
  }

  /** Why the task is where it is, in one sentence. */
  explain(task: Task): string {
    return explain(task, this.io)
  }

  /** Events that bring an observer which joins now up to date, as far as tasks are concerned that have not ended. */
  snapshot(): RunEvent[] {
    return snapshotOf(this.root, task => task.attemptDemand.cpus)
  }

  /** What a task took on average; null while none has ended well. Milliseconds. */
  get meanTaskMs(): number | null {
    return this.#taken.count === 0 ? null : this.#taken.sum / this.#taken.count
  }

  get readyCount(): number {
    return this.#placement.queue.size + this.io.queue.size
  }

  /** A function of its own: what a function encloses is made anew at each call, also where it is not used. */
  #accessAll(task: Task, accesses: readonly AccessRequest[], now: number): void {
    task.accesses = accesses.map(request => this.#versions.access(task, request, now))
  }
}

/** Kept, but its time says nothing. */
const NOT_MEASURED = Infinity
