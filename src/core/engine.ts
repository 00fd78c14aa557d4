import { Team, Version, nearestValid } from './data.ts'
import { canFollow, isFollower, keepsWaiting, takeFollowers } from './flow.ts'
import type { Access, AccessMode, Datum } from './data.ts'
import type { AfterFailure, FailureFacts, Observer, TaskUsage } from './events.ts'
import { again, doomReason, isUnmade, othersRead } from './graph.ts'
import { createGroup, join, leave, members, miss, refusalOf } from './group.ts'
import type { Group, Refusal } from './group.ts'
import { explain } from './io/explain.ts'
import { IoCore } from './io/io-core.ts'
import type { IoOptions } from './io/io-core.ts'
import type { Move } from './io/task-io.ts'
import { Node } from './machine.ts'
import type { NodeDescription } from './machine.ts'
import { Placement } from './placement.ts'
import { fifo, scoreOf } from './policy.ts'
import type { Policy } from './policy.ts'
import { Task } from './task.ts'
import type { Demand } from './demand.ts'
import type { Kind, TaskSpec } from './task.ts'
import { rejectNestedCycle } from './nesting.ts'
import { finishedEvent, refuse, startedEvent, tellSubmitted } from './submission.ts'

/**
 * The engine decides, others do. What happened comes in through the methods below, each with the time; what
 * is to be done comes out of `decide`. There is no clock, no timer and no I/O here, so the real runtime and
 * the simulator drive the same code.
 */

export type Instruction =
  /** Run this attempt of the task on its node and lane; its files go to `task.io.device`, if that is set. */
  | { type: 'start'; task: Task }
  /** The blocked task may go on, on its lane. */
  | { type: 'resume'; task: Task }
  /** Stop the attempt; `stopped` is to be called when it has stopped. */
  | { type: 'stop'; task: Task }
  /** Nobody will read this version any more. */
  | { type: 'discard'; version: Version }
  /** Copy the version to another device, at no more than `move.rate`; `io.moved` or `io.moveFailed` answers. */
  | { type: 'move'; move: Move }
  /** The rate of a move has changed. */
  | { type: 'pace'; move: Move }
  /** A watched version is committed, failed or cancelled. */
  | { type: 'settled'; version: Version }
  /** A version whose readers are watched has none left. */
  | { type: 'unread'; version: Version }
  /** A watched group has no member left. */
  | { type: 'idle'; group: Group }

export interface AccessRequest {
  datum: Datum
  mode: AccessMode
}

export interface EngineOptions extends IoOptions {
  nodes: NodeDescription[]
  policy?: Policy
  observer?: Observer | null
  /** Bytes of what was made, of files and folders; 0 if nobody knows. */
  sizeOf?: (version: Version) => number
}

export class Engine {
  readonly root: Group = createGroup('', null)
  readonly policy: Policy
  readonly nodes: Node[]
  /** Devices, budgets and what lies where; the runtime tells it what happens to files. */
  readonly io: IoCore
  /** Set to see every change of state; null costs nothing. */
  observer: Observer | null
  readonly #placement: Placement
  #instructions: Instruction[] = []
  #lastTask = 0
  #turn = 0
  /** What was found to suit a node last: tasks come in runs of the same kind. */
  #suited: { kind: Kind | null; demand: Demand | null } = { kind: null, demand: null }
  /** The task whose end, or release, is being worked through: what becomes ready is released by it. */
  #ending: Task | null = null
  #closed: string | null = null
  /** Demands that the observer knows. */
  readonly #told = new Set<Demand>()
  readonly #sizeOf: (version: Version) => number
  /** What a policy of the user threw; it is thrown on when everything else is in order. */
  #fault: unknown = null
  /** There are `stop`s among the instructions. */
  #stops = false
  /** Cancellations to be carried out; a list, because a chain can be longer than the stack is deep. */
  readonly #doomed: { task: Task; cause: Task | null; reason: string }[] = []

  constructor(options: EngineOptions) {
    this.nodes = options.nodes.map((node, index) => new Node(index, node))
    this.policy = options.policy ?? fifo
    this.observer = options.observer ?? null
    this.#sizeOf = options.sizeOf ?? (() => 0)
    this.io = new IoCore(
      this.nodes,
      options.nodes,
      options,
      () => this.observer,
      version => this.#discardIfUnused(version),
    )
    this.#placement = new Placement(this.nodes, this.policy, this.io, this.#sizeOf)
  }

  // --- what happens ---

  submit(spec: TaskSpec, accesses: readonly AccessRequest[], now: number): Task {
    if (spec.demand !== this.#suited.demand || spec.kind !== this.#suited.kind) this.#checkSuits(spec)
    if (spec.demand.storage) this.io.check(spec, accesses)
    if (spec.parent) rejectNestedCycle(spec.parent, spec.kind.name, accesses)
    const task = new Task(++this.#lastTask, spec, now)
    if (accesses.length === 1) task.accesses = [this.#access(task, accesses[0] as AccessRequest, now)]
    else if (accesses.length > 0) this.#accessAll(task, accesses, now)
    const doom = this.#waitForInputs(task)
    this.io.bound?.submitted(task)
    task.queueable =
      (spec.kind.form === 'function' || spec.queues === true) &&
      !task.timed &&
      !spec.kind.endsThreads &&
      task.demand.cpus === 1 &&
      task.demand.memory === 0 &&
      !this.io.concerns(task) &&
      !task.accesses.some(({ mode, read }) => mode === 'commutative' || read?.flow)
    if (spec.parent) (spec.parent.calls ??= new Set()).add(task)
    join(task)
    this.#placement.added(task)
    if (this.observer) tellSubmitted(this.observer, task, this.#told, now)
    const refusal = this.#refusal(task.group)
    if (refusal) this.#doom(task, refusal.cause, refusal.reason)
    else if (doom) this.#doom(task, doom.cause, doomReason(doom))
    else if (task.missing === 0) this.#makeReady(task, now)
    this.#carryOutDoom(now)
    return task
  }

  /** Tells when the task really began, for tasks that queued on their lane. */
  started(task: Task, now: number): void {
    if (task.startedAt >= 0) return
    task.startedAt = now
    this.observer?.(startedEvent(task, this.#placement.demandOf(task).cpus, now))
  }

  /**
   * What the task made is in `value` of its versions by now, unless it is `stopping`: then nothing of it is
   * kept. `took` is given when it was measured where the task ran.
   */
  finished(task: Task, now: number, took = now - task.begunAt, usage: TaskUsage | null = null): void {
    if (task.state === 'stopping') return this.stopped(task, now)
    task.expect('done')
    this.started(task, now)
    task.implementation.record(took)
    this.#placement.record(task, took)
    this.#release(task, now, took)
    task.move('done', now)
    this.observer?.(finishedEvent(task, now, usage))
    this.#end(task, now)
    this.#carryOutDoom(now)
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
    this.#release(task, now, then === 'ignore' ? NOT_MEASURED : -1)
    task.error = error
    const { id, attempt } = task
    const more = { ...(log ? { log } : {}), ...(usage ? { usage } : {}) }
    this.observer?.({ type: 'failed', at: now, task: id, attempt, failure, next: then, ...more })
    this.dryUp(task)
    if (then === 'retry') {
      task.attempt++
      this.#queueAgain(task, now)
      this.#doomIfRefused(task)
    } else if (then === 'ignore') {
      task.move('ignored', now)
      this.#end(task, now)
    } else {
      task.move('failed', now)
      this.#end(task, now)
      if (then === 'fail') this.#failGroup(task.group, task)
    }
    this.#carryOutDoom(now)
  }

  /** The attempt was lost through no fault of the task; it does not count. */
  returned(task: Task, reason: string, now: number): void {
    if (task.state === 'stopping') return this.stopped(task, now)
    task.expect('ready', ['running', 'blocked'])
    // A version of a task that was being tried and told nothing is to be tried again.
    task.implementation.begun--
    this.#release(task, now)
    this.dryUp(task)
    this.observer?.({ type: 'returned', at: now, task: task.id, reason })
    this.#queueAgain(task, now)
    this.#doomIfRefused(task)
    this.#carryOutDoom(now)
  }

  /** The task waits for tasks that it called: it gives back what it holds. */
  blocked(task: Task, reason: string, now: number): void {
    if (task.state !== 'running') return
    this.started(task, now)
    this.#placement.release(task)
    if (task.io) this.io.blocked(task)
    task.move('blocked', now)
    this.observer?.({ type: 'blocked', at: now, task: task.id, reason })
  }

  /** What the blocked task waited for is there. It goes on when `decide` says `resume`. */
  unblocked(task: Task): void {
    if (task.state !== 'blocked') return
    if (task.demand.io) this.io.unblocked(task)
    else this.#placement.claim(task)
  }

  /** A task that `stop` named has stopped. */
  stopped(task: Task, now: number): void {
    task.expect('cancelled', ['stopping'])
    this.#release(task, now)
    const at = task.move('cancelled', now)
    this.observer?.({
      type: 'cancelled',
      at,
      task: task.id,
      cause: task.cause?.id ?? null,
      reason: task.reason,
    })
    for (const { read, write } of task.accesses) {
      if (write?.datum.inPlace) this.#lose(task, write, now)
      if (read) this.#readerEnded(read, now)
      read?.flow?.followers.delete(task)
    }
    this.#leave(task)
    this.#carryOutDoom(now)
  }

  /** The task has made this version, at `at`, and goes on: whoever waits for it may start. */
  release(task: Task, version: Version, at: number, now: number): void {
    if (version.state !== 'pending') return
    this.started(task, at)
    this.observer?.({ type: 'released', at, task: task.id, version: version.id })
    this.#ending = task
    this.commit(version, now)
    this.#ending = null
    this.#carryOutDoom(now)
  }

  /** A version that was to be released never comes, because of this task. */
  lose(version: Version, by: Task, now: number): void {
    if (version.state !== 'pending') return
    this.#spoil(version, by, now)
    this.#carryOutDoom(now)
  }

  /** An attempt of its producer has begun to write it, and it may be read as it grows. */
  flow(version: Version, now: number): void {
    if (version.state !== 'pending' || !version.flow || version.flow.open) return
    version.flow.open = true
    for (const task of takeFollowers(version)) {
      version.flow.followers.add(task)
      if (--task.missing === 0) this.#makeReady(task, now)
    }
    this.#carryOutDoom(now)
  }

  /** What was written so far is void; those who read it are brought back by `returned`. */
  dryUp(task: Task): void {
    for (const { write } of task.accesses) if (write?.flow) write.flow.open = false
  }

  /** Commits a version before its producer has ended. */
  commit(version: Version, now: number): void {
    if (version.state !== 'pending') return
    version.state = 'ready'
    version.producer = null
    this.#retireFrom(version.previous)
    version.previous = null
    if (version.datum.path !== null) {
      this.observer?.({ type: 'committed', at: now, version: version.id, bytes: this.#sizeOf(version) })
    }
    this.#settle(version, now)
    // Who follows nothing any more wants a CPU like everybody else.
    if (version.flow) {
      for (const task of version.flow.followers) if (!isFollower(task)) this.unblocked(task)
    }
  }

  get isClosed(): boolean {
    return this.#closed !== null
  }

  /** Nothing new starts; what has not started is cancelled. */
  close(reason: string, now: number): void {
    this.#closed = reason
    this.#cancelUnstarted(this.root, null, reason)
    this.#carryOutDoom(now)
  }

  cancel(group: Group, reason: string, now: number): void {
    group.cancelled = reason
    for (const task of members(group)) this.cancelTask(task, null, reason)
    this.#carryOutDoom(now)
  }

  cancelTask(task: Task, cause: Task | null, reason: string, now = -1): void {
    if (task.ended || task.state === 'stopping') return
    this.#doom(task, cause, reason)
    if (now >= 0) this.#carryOutDoom(now)
  }

  createGroup(name: string, parent: Group = this.root): Group {
    return createGroup(name, parent)
  }

  /** Nothing more is submitted to it; its last members may still be running. */
  closeGroup(group: Group): void {
    group.closed = true
    if (group.live === 0) group.parent?.children.delete(group)
  }

  /** The program has been told of the failure: what it calls from now on runs again. */
  acknowledge(group: Group): void {
    group.failure = null
  }

  /** The version that a reader outside the graph sees now; closes a team. */
  read(datum: Datum, now: number): Version {
    this.#closeTeam(datum.current, now)
    return datum.current
  }

  /** After the program was told of a failure, the datum is what it was before. */
  fallBack(datum: Datum): void {
    const valid = nearestValid(datum.current)
    // Versions that never came may have something in them, from members of a team that did end.
    for (let lost = datum.current; lost !== valid; lost = lost.previous as Version) this.#retire(lost)
    datum.current = valid
    valid.superseded = false
  }

  watch(version: Version): void {
    if (version.settled) this.#instructions.push({ type: 'settled', version })
    else version.watched = true
  }

  /** For in-place memory: the program may write there only after the tasks that read it. */
  watchReaders(version: Version): void {
    if (version.readers === 0) this.#instructions.push({ type: 'unread', version })
    else version.readersWatched = true
  }

  watchGroup(group: Group): void {
    if (group.live === 0) this.#instructions.push({ type: 'idle', group })
    else group.watched = true
  }

  /** The main program gives the datum a value of its own. */
  write(datum: Datum, value: unknown, now: number): Version {
    this.#closeTeam(datum.current, now)
    const before = datum.current
    const version = new Version(datum, null)
    version.state = 'ready'
    version.value = value
    datum.current = version
    this.#retireFrom(before)
    return version
  }

  /** The program will not use the datum again. */
  remove(datum: Datum, now: number): void {
    this.#closeTeam(datum.current, now)
    datum.removed = true
    this.io.bound?.removed(datum.current)
    this.#retireFrom(datum.current)
  }

  /** Tasks that have been submitted. */
  get taskCount(): number {
    return this.#lastTask
  }

  // --- what is to be done ---

  decide(now: number): Instruction[] {
    const start = (task: Task): void => {
      task.move('running', now)
      if (this.io.moves.prefetches) this.io.moves.want(task, -1)
      this.io.bound?.started(task)
      this.#instructions.push({ type: 'start', task })
    }
    const resume = (task: Task): void => {
      task.move('running', now)
      this.observer?.({ type: 'resumed', at: now, task: task.id, node: task.node, lane: task.lane })
      this.#instructions.push({ type: 'resume', task })
    }
    const park = (task: Task): void => {
      task.move('parked', now)
      this.#wakeParked(task, now)
    }
    this.#placement.decide({ now, start, resume, park, instruct: one => this.#instructions.push(one) })
    if (this.#instructions.length === 0) return EMPTY
    let instructions = this.#instructions
    this.#instructions = []
    if (this.#stops) {
      // Some may have ended by themselves since.
      instructions = instructions.filter(one => one.type !== 'stop' || one.task.state === 'stopping')
      this.#stops = false
    }
    return instructions
  }

  /** Why the task is where it is, in one sentence. */
  explain(task: Task): string {
    return explain(task, this.io)
  }

  get readyCount(): number {
    return this.#placement.queue.size + this.io.queue.size
  }

  // --- inside ---

  /** A function of its own: what a function encloses is made anew at each call, also where it is not used. */
  #accessAll(task: Task, accesses: readonly AccessRequest[], now: number): void {
    task.accesses = accesses.map(request => this.#access(task, request, now))
  }

  #access(task: Task, { datum, mode: asked }: AccessRequest, now: number): Access {
    const { current } = datum
    const mode = datum.inPlace && asked === 'out' ? 'inout' : asked
    datum.users?.add(task)
    if (current.producer === task || current.team?.newest === task) return again(current, mode)
    if (mode === 'concurrent' || mode === 'commutative') {
      let version = current
      let team = current.team
      if (!team || team.closed || team.mode !== mode) {
        this.#closeTeam(current, now)
        team = new Team(mode, current)
        version = this.#newVersion(datum)
        version.team = team
      }
      team.tasks.add(task)
      team.newest = task
      team.live++
      return { mode, read: team.base, write: version }
    }
    this.#closeTeam(current, now)
    if (mode === 'in') return { mode, read: current, write: null }
    // A result is made for the task that makes it, and needs no version before that.
    const version = mode === 'out' && isUnmade(current) ? current : this.#newVersion(datum)
    version.producer = task
    return { mode, read: mode === 'inout' ? current : null, write: version }
  }

  /** Returns an input that will never come, if there is one. */
  #waitForInputs(task: Task): Version | null {
    let doom: Version | null = null
    for (const { read } of task.accesses) {
      if (!read) continue
      read.readers++
      if (read.flow?.open && canFollow(task)) read.flow.followers.add(task)
      if (keepsWaiting(task, read)) {
        if (read.waiters) read.waiters.push(task)
        else read.waiters = [task]
        task.missing++
      } else if (read.state === 'failed' || read.state === 'cancelled') doom = read
    }
    for (const { write } of task.accesses) if (write?.datum.inPlace) this.#afterReaders(task, write)
    return doom
  }

  #newVersion(datum: Datum): Version {
    const before = datum.current
    const version = new Version(datum, before)
    datum.current = version
    before.superseded = true
    return version
  }

  /** Retires this version and all before it; what is obsolete already has nothing left before it. */
  #retireFrom(version: Version | null): void {
    for (let at = version; at && !at.obsolete; at = at.previous) this.#retire(at)
  }

  /** Nothing can fall back to this version; once its readers have ended, nobody needs it. */
  #retire(version: Version): void {
    version.superseded = true
    version.obsolete = true
    this.#discardIfUnused(version)
  }

  #discardIfUnused(version: Version): void {
    if (version.obsolete && version.readers === 0 && version.settled && version.value !== undefined) {
      // What is on its way to another device is discarded when it has arrived.
      if (version.place?.move) return
      this.#instructions.push({ type: 'discard', version })
    }
  }

  #afterReaders(task: Task, write: Version): void {
    const older = write.team ? write.team.base : write.previous
    if (older && !older.afterReaders?.includes(task) && othersRead(older, task)) {
      ;(older.afterReaders ??= []).push(task)
      task.missing++
    }
  }

  #closeTeam(version: Version, now: number): void {
    const { team } = version
    if (!team || team.closed) return
    team.closed = true
    if (team.live === 0) this.#settleTeam(version, team, now)
  }

  #settleTeam(version: Version, team: Team, now: number): void {
    // Nobody asks for the team again, and it holds on to the version that it started from.
    version.team = null
    if (team.failed) this.#spoil(version, team.failed, now)
    else this.commit(version, now)
  }

  #makeReady(task: Task, now: number): void {
    const at = task.move('ready', now)
    if (this.io.moves.prefetches) this.io.moves.want(task, 1)
    task.turn = ++this.#turn
    // The default treats all alike, and is asked for every task.
    if (this.policy !== fifo) this.#score(task, now)
    this.observer?.({ type: 'ready', at, task: task.id })
    if (isFollower(task)) this.#follow(task, now)
    else this.#placement.enqueue(task, this.#ending)
  }

  /** Starts it at once, and without a CPU; its node is the one where the data are. */
  #follow(task: Task, now: number): void {
    task.node = this.nodes.findIndex(node => this.#suits(node, task))
    task.lane = task.id % (this.nodes[task.node]?.lanes.length ?? 1)
    task.move('running', now)
    this.#instructions.push({ type: 'start', task })
    this.started(task, now)
    task.move('blocked', now)
    this.observer?.({
      type: 'blocked',
      at: now,
      task: task.id,
      reason: 'it reads what is still being written',
    })
  }

  #score(task: Task, now: number): void {
    try {
      task.score = scoreOf(this.policy, task, { now, turn: task.turn, releasedBy: this.#ending })
    } catch (error) {
      this.#fault ??= error
    }
  }

  /** It keeps its turn: it was in the queue before, where an entry of it may even be left. */
  #queueAgain(task: Task, now: number): void {
    task.startedAt = -1
    this.io.bound?.again(task)
    const missing = task.accesses.filter(({ read }) => read && keepsWaiting(task, read))
    if (missing.length > 0) {
      task.missing = missing.length
      for (const { read } of missing) if (read) (read.waiters ??= []).push(task)
      task.move('waiting', now)
      return
    }
    task.move('ready', now)
    for (const { read } of task.accesses) if (read?.flow?.open) read.flow.followers.add(task)
    if (isFollower(task)) this.#follow(task, now)
    else this.#placement.enqueue(task, null)
  }

  /** `took` is negative if nothing of the attempt is kept. */
  #release(task: Task, now: number, took = -1): void {
    if (task.io) this.io.ended(task, took, now)
    if (task.state === 'blocked') this.#placement.forgetBlocked(task)
    else this.#placement.release(task)
    this.#placement.releaseTokens(task)
    this.#wakeParked(task, now)
  }

  /** Lets the next one try for each COMMUTATIVE datum that this task does not hold or want any more. */
  #wakeParked(task: Task, now: number): void {
    if (task.queueable) return
    for (const { write } of task.accesses) {
      const next = write?.team && this.#placement.nextParked(write.team)
      if (!next) continue
      next.move('ready', now)
      this.#placement.enqueue(next, null)
    }
  }

  /** Settles what the task made and lets go of what it read. */
  #end(task: Task, now: number): void {
    const good = task.state === 'done' || task.state === 'ignored'
    this.#ending = task
    for (const { read, write } of task.accesses) {
      if (write) {
        if (!good) this.#lose(task, write, now)
        else if (write.team) this.#memberEnded(task, write, write.team, now)
        else this.commit(write, now)
      }
      if (read) this.#readerEnded(read, now)
      read?.flow?.followers.delete(task)
    }
    this.#ending = null
    this.#leave(task)
  }

  #memberEnded(task: Task, version: Version, team: Team, now: number): void {
    team.tasks.delete(task)
    team.live--
    if (team.closed && team.live === 0) this.#settleTeam(version, team, now)
  }

  /** The task will not make this version, or its part of it. */
  #lose(task: Task, write: Version, now: number): void {
    const { team } = write
    if (team) {
      team.failed ??= task
      this.#memberEnded(task, write, team, now)
    } else if (write.state === 'pending') this.#spoil(write, task, now)
  }

  /** The version never comes because of this task, or of what it was cancelled for. */
  #spoil(version: Version, by: Task, now: number): void {
    version.state = by.state === 'failed' ? 'failed' : 'cancelled'
    version.cause = by.state === 'failed' ? by : (by.cause ?? by)
    // Whoever waits for it is told which task was to make it.
    version.producer = by
    if (version.flow) {
      for (const task of version.flow.followers) this.#doom(task, version.cause, doomReason(version))
    }
    this.#settle(version, now)
  }

  #settle(version: Version, now: number): void {
    if (version.watched) {
      version.watched = false
      this.#instructions.push({ type: 'settled', version })
    }
    const { waiters } = version
    version.waiters = null
    if (waiters) {
      for (const task of waiters) {
        if (task.state !== 'waiting') continue
        if (version.state !== 'ready') this.#doom(task, version.cause, doomReason(version))
        else if (--task.missing === 0) this.#makeReady(task, now)
      }
    }
    this.#discardIfUnused(version)
  }

  #readerEnded(version: Version, now: number): void {
    version.readers--
    if (version.readers === 0 && version.place) this.io.unread(version)
    const { afterReaders } = version
    if (afterReaders) {
      version.afterReaders = afterReaders.filter(writer => {
        if (othersRead(version, writer)) return true
        if (writer.state === 'waiting' && --writer.missing === 0) this.#makeReady(writer, now)
        return false
      })
      if (version.afterReaders.length === 0) version.afterReaders = null
    }
    if (version.readers === 0 && version.readersWatched) {
      version.readersWatched = false
      this.#instructions.push({ type: 'unread', version })
    }
    this.#discardIfUnused(version)
  }

  #doom(task: Task, cause: Task | null, reason: string): void {
    this.#doomed.push({ task, cause, reason })
  }

  /** Comes last in whatever happens. */
  #carryOutDoom(now: number): void {
    for (let doomed = this.#doomed.pop(); doomed; doomed = this.#doomed.pop()) {
      const { task, cause, reason } = doomed
      if (task.ended || task.state === 'stopping') continue
      task.cause = cause
      task.reason = reason
      if (task.state === 'running' || task.state === 'blocked') this.#stopRunning(task, now)
      else this.#cancelWaiting(task, now)
    }
    if (this.#fault === null) return
    const fault = this.#fault
    this.#fault = null
    throw fault
  }

  #cancelWaiting(task: Task, now: number): void {
    const wasReady = task.state === 'ready'
    if (wasReady) this.#placement.forget(task)
    const at = task.move('cancelled', now)
    if (wasReady) this.#wakeParked(task, now)
    if (task.reason === this.#closed) miss(task)
    this.observer?.({
      type: 'cancelled',
      at,
      task: task.id,
      cause: task.cause?.id ?? null,
      reason: task.reason,
    })
    this.#end(task, now)
  }

  /**
   * What it was to make is settled now; its lane and its inputs stay held until it has really stopped. So
   * does memory that it writes in place: nobody may look at it before.
   */
  #stopRunning(task: Task, now: number): void {
    if (task.state === 'blocked') this.#placement.holdBlocked(task)
    task.move('stopping', now)
    this.#instructions.push({ type: 'stop', task })
    this.#stops = true
    for (const { write } of task.accesses) {
      if (write && !write.datum.inPlace) this.#lose(task, write, now)
    }
  }

  #failGroup(group: Group, failure: Task): void {
    group.failure ??= failure
    this.#cancelUnstarted(group, failure, `${failure.name} failed`)
  }

  #cancelUnstarted(group: Group, cause: Task | null, reason: string): void {
    for (const task of members(group)) {
      if (task.state === 'waiting' || task.state === 'ready' || task.state === 'parked') {
        this.#doom(task, cause, reason)
      } else if (task.state === 'running' && task.queueable) this.#placement.recall(task)
    }
  }

  #refusal(group: Group): Refusal | null {
    return this.#closed === null ? refusalOf(group) : { cause: null, reason: this.#closed }
  }

  /** A task that comes back to the queue is as new to its group as one that is submitted now. */
  #doomIfRefused(task: Task): void {
    const refusal = this.#refusal(task.group)
    if (refusal) this.#doom(task, refusal.cause, refusal.reason)
  }

  #leave(task: Task): void {
    task.parent?.calls?.delete(task)
    this.io.bound?.ended(task)
    for (const { read, write } of task.accesses) (write ?? read)?.datum.users?.delete(task)
    leave(task, this.#tellIdle)
  }

  readonly #tellIdle = (group: Group): void => {
    this.#instructions.push({ type: 'idle', group })
  }

  #checkSuits(spec: TaskSpec): void {
    if (!this.nodes.some(node => this.#suits(node, spec))) refuse(spec, this.nodes)
    this.#suited = { kind: spec.kind, demand: spec.demand }
  }

  #suits(node: Node, { kind, demand }: Pick<TaskSpec, 'kind' | 'demand'>): boolean {
    return (
      node.suits(demand) || kind.implementations.some(({ demand: own }) => own !== null && node.suits(own))
    )
  }
}

const EMPTY: Instruction[] = []
/** Kept, but its time says nothing. */
const NOT_MEASURED = Infinity
