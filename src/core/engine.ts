import { Team, Version, nearestValid } from './data.ts'
import type { Access, AccessMode, Datum } from './data.ts'
import { MillraceError } from './errors.ts'
import type { AfterFailure, FailureFacts, Observer, RunEvent } from './events.ts'
import { Node } from './machine.ts'
import type { NodeDescription } from './machine.ts'
import { Placement } from './placement.ts'
import { fifo, scoreOf } from './policy.ts'
import type { Policy } from './policy.ts'
import { Task, createGroup } from './task.ts'
import type { Group, TaskSpec, TaskState } from './task.ts'
import { rejectNestedCycle } from './nesting.ts'

/**
 * The engine decides, others do. What happened comes in through the methods below, each with the time; what
 * is to be done comes out of `decide`. There is no clock, no timer and no I/O here, so the real runtime and
 * the simulator drive the same code.
 */

export type Instruction =
  /** Run this attempt of the task on its node and lane. */
  | { type: 'start'; task: Task }
  /** The blocked task may go on, on its lane. */
  | { type: 'resume'; task: Task }
  /** Stop the attempt; `stopped` is to be called when it has stopped. */
  | { type: 'stop'; task: Task }
  /** Nobody will read this version any more. */
  | { type: 'discard'; version: Version }
  /** A watched version is committed, failed or cancelled. */
  | { type: 'settled'; version: Version }
  /** A watched group has no member left. */
  | { type: 'idle'; group: Group }

export interface AccessRequest {
  datum: Datum
  mode: AccessMode
}

export interface EngineOptions {
  nodes: NodeDescription[]
  policy?: Policy
  observer?: Observer | null
}

const NO_GROUPS: readonly Group[] = []

export class Engine {
  readonly root: Group = createGroup('', null)
  readonly policy: Policy
  readonly nodes: Node[]
  /** Set to see every change of state; null costs nothing. */
  observer: Observer | null
  readonly #placement: Placement
  #instructions: Instruction[] = []
  #lastTask = 0
  #turn = 0
  /** The task whose end is being worked through: what it releases is released by it. */
  #ending: Task | null = null
  #closed: string | null = null
  /** Cancellations to be carried out; a list, because a chain can be longer than the stack is deep. */
  readonly #doomed: { task: Task; cause: Task | null; reason: string }[] = []

  constructor(options: EngineOptions) {
    this.nodes = options.nodes.map((node, index) => new Node(index, node))
    this.policy = options.policy ?? fifo
    this.observer = options.observer ?? null
    this.#placement = new Placement(this.nodes, this.policy)
  }

  // --- what happens ---

  submit(spec: TaskSpec, accesses: readonly AccessRequest[], now: number): Task {
    if (!this.nodes.some(node => this.#suits(node, spec))) this.#refuse(spec)
    if (spec.parent) rejectNestedCycle(spec.parent, spec.kind.name, accesses)
    const task = new Task(++this.#lastTask, spec, now)
    let doom: Version | null = null
    for (const { datum, mode } of accesses) {
      const access = this.#access(task, datum, datum.inPlace && mode === 'out' ? 'inout' : mode)
      task.accesses.push(access)
      const { read, write } = access
      if (read) {
        read.readers++
        if (read.state === 'pending') {
          ;(read.waiters ??= []).push(task)
          task.missing++
        } else if (read.state !== 'ready') doom = read
      }
      if (datum.inPlace && write) this.#afterReaders(task, write)
    }
    task.queueable =
      spec.kind.form === 'function' &&
      !task.timed &&
      task.demand.cpus === 1 &&
      task.demand.memory === 0 &&
      !task.accesses.some(access => access.mode === 'commutative')
    this.#join(task)
    if (this.observer) this.#emitSubmitted(task, now)
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
    this.observer?.({
      type: 'started',
      at: now,
      task: task.id,
      attempt: task.attempt,
      node: task.node,
      lane: task.lane,
      cpus: this.#placement.demandOf(task).cpus,
      ...(task.kind.implementations.length > 1 ? { implementation: task.implementation.name } : {}),
    })
  }

  /** `took` is given when it was measured where the task ran. */
  finished(task: Task, now: number, took = now - task.startedAt): void {
    if (task.state === 'stopping') return this.stopped(task, now)
    this.started(task, now)
    task.implementation.record(took)
    this.#release(task, now)
    task.move('done', now)
    this.observer?.({ type: 'finished', at: now, task: task.id, attempt: task.attempt })
    this.#end(task, now)
  }

  /** What a failure of this task would lead to; lets the runtime prepare what `ignore` keeps. */
  afterFailure(task: Task): AfterFailure {
    if (task.attempt <= task.retries) return 'retry'
    return task.onFailure === 'retry' ? 'fail' : task.onFailure
  }

  failed(task: Task, failure: FailureFacts, error: unknown, now: number, log?: string): void {
    if (task.state === 'stopping') return this.stopped(task, now)
    this.started(task, now)
    const then = this.afterFailure(task)
    this.#release(task, now)
    task.error = error
    this.observer?.({
      type: 'failed',
      at: now,
      task: task.id,
      attempt: task.attempt,
      failure,
      next: then,
      ...(log ? { log } : {}),
    })
    if (then === 'retry') {
      task.attempt++
      this.#queueAgain(task, now)
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
    this.#release(task, now)
    this.observer?.({ type: 'returned', at: now, task: task.id, reason })
    this.#queueAgain(task, now)
    const refusal = this.#refusal(task.group)
    if (refusal) this.#doom(task, refusal.cause, refusal.reason)
    this.#carryOutDoom(now)
  }

  /** The task waits for tasks that it called: it gives back what it holds. */
  blocked(task: Task, reason: string, now: number): void {
    if (task.state !== 'running') return
    this.started(task, now)
    this.#placement.release(task)
    task.move('blocked', now)
    this.observer?.({ type: 'blocked', at: now, task: task.id, reason })
  }

  /** What the blocked task waited for is there. It goes on when `decide` says `resume`. */
  unblocked(task: Task): void {
    if (task.state === 'blocked') this.#placement.claim(task)
  }

  /** A task that `stop` named has stopped. */
  stopped(task: Task, now: number): void {
    this.#release(task, now)
    task.move('cancelled', now)
    this.observer?.({
      type: 'cancelled',
      at: now,
      task: task.id,
      cause: task.cause?.id ?? null,
      reason: task.reason,
    })
    this.#leave(task)
    for (const access of task.accesses) if (access.read) this.#readerEnded(access.read, now)
  }

  /** Commits a version before its producer has ended. */
  commit(version: Version, now: number): void {
    if (version.state !== 'pending') return
    version.state = 'ready'
    version.producer = null
    for (let older = version.previous; older; older = older.previous) this.#retire(older)
    version.previous = null
    if (version.datum.path !== null) {
      this.observer?.({ type: 'committed', at: now, version: version.id, bytes: 0 })
    }
    this.#settle(version, now)
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

  closeGroup(group: Group): void {
    group.parent?.children.delete(group)
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
    datum.current = nearestValid(datum.current)
    datum.current.superseded = false
  }

  watch(version: Version): void {
    if (version.settled) this.#instructions.push({ type: 'settled', version })
    else version.watched = true
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
    for (let older: Version | null = before; older; older = older.previous) this.#retire(older)
    return version
  }

  /** The program will not use the datum again. */
  remove(datum: Datum, now: number): void {
    this.#closeTeam(datum.current, now)
    datum.removed = true
    for (let older: Version | null = datum.current; older; older = older.previous) this.#retire(older)
  }

  // --- what is to be done ---

  decide(now: number): Instruction[] {
    this.#placement.decide(
      task => {
        task.move('running', now)
        this.#instructions.push({ type: 'start', task })
      },
      task => {
        task.move('running', now)
        this.observer?.({ type: 'resumed', at: now, task: task.id, node: task.node, lane: task.lane })
        this.#instructions.push({ type: 'resume', task })
      },
      task => task.move('parked', now),
    )
    if (this.#instructions.length === 0) return EMPTY
    const instructions = this.#instructions
    this.#instructions = []
    return instructions
  }

  get readyCount(): number {
    return this.#placement.queue.size
  }

  // --- inside ---

  #access(task: Task, datum: Datum, mode: AccessMode): Access {
    const { current } = datum
    if (mode === 'concurrent' || mode === 'commutative') {
      let version = current
      let team = current.team
      if (!team || team.closed || team.mode !== mode) {
        this.#closeTeam(current, 0)
        team = new Team(mode, current)
        version = this.#newVersion(datum)
        version.team = team
      }
      team.members++
      team.live++
      return { mode, read: team.base, write: version }
    }
    this.#closeTeam(current, 0)
    if (mode === 'in') return { mode, read: current, write: null }
    const version = this.#newVersion(datum)
    version.producer = task
    return { mode, read: mode === 'inout' ? current : null, write: version }
  }

  #newVersion(datum: Datum): Version {
    const before = datum.current
    const version = new Version(datum, before)
    datum.current = version
    before.superseded = true
    return version
  }

  /** Nothing can fall back to this version; once its readers have ended, nobody needs it. */
  #retire(version: Version): void {
    version.superseded = true
    version.obsolete = true
    this.#discardIfUnused(version)
  }

  #discardIfUnused(version: Version): void {
    if (version.obsolete && version.readers === 0 && version.settled && version.value !== undefined) {
      this.#instructions.push({ type: 'discard', version })
    }
  }

  #afterReaders(task: Task, write: Version): void {
    const older = write.team ? write.team.base : write.previous
    if (older && othersRead(older, task)) {
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
    if (team.failed) {
      version.state =
        team.failed.state === 'cancelled' || team.failed.state === 'stopping' ? 'cancelled' : 'failed'
      version.cause = team.failed
      this.#settle(version, now)
    } else this.commit(version, now)
  }

  #makeReady(task: Task, now: number): void {
    task.move('ready', now)
    task.turn = ++this.#turn
    task.score = scoreOf(this.policy, task, { now, turn: task.turn, releasedBy: this.#ending })
    this.observer?.({ type: 'ready', at: now, task: task.id })
    this.#placement.enqueue(task, this.#ending)
  }

  #queueAgain(task: Task, now: number): void {
    task.startedAt = -1
    task.move('ready', now)
    task.turn = ++this.#turn
    this.#placement.enqueue(task, null)
  }

  #release(task: Task, now: number): void {
    if (task.state === 'blocked') this.#placement.forgetBlocked(task)
    else this.#placement.release(task)
    for (const parked of this.#placement.releaseTokens(task)) {
      parked.move('ready', now)
      this.#placement.enqueue(parked, null)
    }
  }

  /** Settles what the task made and lets go of what it read. */
  #end(task: Task, now: number): void {
    const good = task.state === 'done' || task.state === 'ignored'
    this.#ending = task
    for (const { read, write } of task.accesses) {
      if (write) {
        const { team } = write
        if (team) {
          team.live--
          if (!good) team.failed ??= task
          if (team.closed && team.live === 0) this.#settleTeam(write, team, now)
        } else if (good) this.commit(write, now)
        else if (write.state === 'pending') {
          write.state = task.state === 'failed' ? 'failed' : 'cancelled'
          write.cause = task.state === 'failed' ? task : (task.cause ?? task)
          this.#settle(write, now)
        }
      }
      if (read) this.#readerEnded(read, now)
    }
    this.#ending = null
    this.#leave(task)
    this.#carryOutDoom(now)
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
    const { afterReaders } = version
    if (afterReaders) {
      version.afterReaders = afterReaders.filter(writer => {
        if (othersRead(version, writer)) return true
        if (writer.state === 'waiting' && --writer.missing === 0) this.#makeReady(writer, now)
        return false
      })
      if (version.afterReaders.length === 0) version.afterReaders = null
    }
    this.#discardIfUnused(version)
  }

  #doom(task: Task, cause: Task | null, reason: string): void {
    this.#doomed.push({ task, cause, reason })
  }

  #carryOutDoom(now: number): void {
    for (let doomed = this.#doomed.pop(); doomed; doomed = this.#doomed.pop()) {
      const { task, cause, reason } = doomed
      if (task.ended || task.state === 'stopping') continue
      task.cause = cause
      task.reason = reason
      if (task.state === 'running' || task.state === 'blocked') this.#stopRunning(task, now)
      else this.#cancelWaiting(task, now)
    }
  }

  #cancelWaiting(task: Task, now: number): void {
    if (task.state === 'ready') this.#placement.forget()
    if (task.state === 'parked') this.#placement.unpark(task)
    task.move('cancelled', now)
    this.observer?.({
      type: 'cancelled',
      at: now,
      task: task.id,
      cause: task.cause?.id ?? null,
      reason: task.reason,
    })
    this.#end(task, now)
  }

  /** What it was to make is settled now; its lane and its inputs stay held until it has really stopped. */
  #stopRunning(task: Task, now: number): void {
    if (task.state === 'blocked') this.#placement.holdBlocked(task)
    task.move('stopping', now)
    this.#instructions.push({ type: 'stop', task })
    for (const { write } of task.accesses) {
      if (!write) continue
      const { team } = write
      if (team) {
        team.live--
        team.failed ??= task
        if (team.closed && team.live === 0) this.#settleTeam(write, team, now)
      } else if (write.state === 'pending') {
        write.state = 'cancelled'
        write.cause = task.cause ?? task
        this.#settle(write, now)
      }
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
      }
    }
  }

  /** Why a task that is submitted to this group now must not run. */
  #refusal(group: Group): { cause: Task | null; reason: string } | null {
    if (this.#closed) return { cause: null, reason: this.#closed }
    for (let at: Group | null = group; at; at = at.parent) {
      if (at.failure) return { cause: at.failure, reason: `${at.failure.name} failed` }
      if (at.cancelled) return { cause: null, reason: at.cancelled }
    }
    return null
  }

  #join(task: Task): void {
    const { group } = task
    task.next = group.first
    if (group.first) group.first.before = task
    group.first = task
    for (let at: Group | null = group; at; at = at.parent) at.live++
  }

  #leave(task: Task): void {
    const { group } = task
    if (task.before) task.before.next = task.next
    else group.first = task.next
    if (task.next) task.next.before = task.before
    task.next = task.before = null
    for (let at: Group | null = group; at; at = at.parent) {
      at.live--
      if (at.live === 0 && at.watched) {
        at.watched = false
        this.#instructions.push({ type: 'idle', group: at })
      }
    }
  }

  #suits(node: Node, { kind, demand }: TaskSpec): boolean {
    return (
      node.suits(demand) || kind.implementations.some(({ demand: own }) => own !== null && node.suits(own))
    )
  }

  #refuse({ kind, demand }: TaskSpec): never {
    const most = (pick: (node: Node) => number): number => Math.max(...this.nodes.map(pick))
    const { cpus, memory, tags } = demand
    let wrong = `tags [${tags.join(', ')}], but no node has all of them`
    if (memory > most(node => node.memory)) {
      wrong = `${memory} bytes of memory, but the largest node has ${most(node => node.memory)}`
    }
    if (cpus > most(node => node.cpus)) {
      wrong = `${cpus} CPUs, but the largest node has ${most(node => node.cpus)}`
    }
    throw new MillraceError('MR_CONSTRAINT', `task ${kind.name} asks for ${wrong}`)
  }

  #emitSubmitted(task: Task, now: number): void {
    const reads: number[] = []
    const writes: number[] = []
    let files: { version: number; path: string }[] | undefined
    for (const { read, write } of task.accesses) {
      if (read) reads.push(read.id)
      if (write) writes.push(write.id)
      const path = (write ?? read)?.datum.path
      if (path == null) continue
      files ??= []
      if (read) files.push({ version: read.id, path })
      if (write) files.push({ version: write.id, path })
    }
    const event: RunEvent = {
      type: 'submitted',
      at: now,
      task: task.id,
      kind: task.kind.id,
      parent: task.parent?.id ?? null,
      group: task.group.name === '' ? null : task.group.name,
      priority: task.priority,
      reads,
      writes,
    }
    if (files) event.files = files
    this.observer?.(event)
  }
}

const EMPTY: Instruction[] = []

/** Whether tasks other than this writer, and other than its team, still read the version. */
function othersRead(version: Version, writer: Task): boolean {
  let own = 0
  for (const { read, write } of writer.accesses) {
    if (read === version) own = write?.team ? write.team.live : 1
  }
  return version.readers > own
}

function doomReason(version: Version): string {
  const { cause } = version
  if (!cause) return 'something that it needs was cancelled'
  const what: Partial<Record<TaskState, string>> = { failed: 'failed' }
  return `${cause.name} ${what[cause.state] ?? 'was cancelled'}`
}

/** All live members of a group and of the groups inside it. */
function* members(group: Group): Generator<Task> {
  for (let task = group.first, next: Task | null; task; task = next) {
    next = task.next
    yield task
  }
  const inside = group.children.size > 0 ? [...group.children] : NO_GROUPS
  for (const child of inside) yield* members(child)
}
