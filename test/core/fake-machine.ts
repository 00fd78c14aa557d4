import assert from 'node:assert/strict'
import { Datum, source } from '../../src/core/data/datum.ts'
import type { Access, Version } from '../../src/core/data/datum.ts'
import { Engine } from '../../src/core/engine.ts'
import type { AccessRequest, Instruction } from '../../src/core/engine.ts'
import type { RunEvent } from '../../src/core/events.ts'
import type { NodeDescription } from '../../src/core/schedule/machine.ts'
import type { Policy } from '../../src/core/schedule/policy.ts'
import type { Group } from '../../src/core/tasks/group.ts'
import type { Task, TaskSpec } from '../../src/core/tasks/task.ts'
import { lost } from '../../src/core/why.ts'
import type { ReturnWhy } from '../../src/core/why.ts'
import { Heap } from '../../src/general/heap.ts'
import { checkMachine } from './invariants.ts'
import { Storyline } from './storyline.ts'
import { Random } from './random.ts'
import { effect, fresh, plus, show } from './values.ts'
import type { Value } from './values.ts'

/**
 * An executor with a virtual clock. It carries out what the engine says, as threads would, and checks on
 * every step that what it is told makes sense. Memory is real enough: each version has a box; all versions
 * of in-place data share one, which a writer spoils while it runs.
 */

/** Where a value lies. */
export class Box {
  value: Value | null
  readers = new Set<Task>()
  writers = new Map<Task, Version>()

  constructor(value: Value | null) {
    this.value = value
  }
}

/** What a task does when it runs; kept in its payload. */
export interface Work {
  uid: string
  /** So many attempts fail. */
  failures: number
  short: boolean
  /** Number of the access whose version is committed half way, or -1. */
  early: number
  /** Makes calls inside; to be waited for before the task goes on. Returns null if it makes none. */
  inside: ((task: Task) => Inside) | null
}

/** The coordinator is gone, in the middle of whatever it did. */
export class Killed extends Error {}

/** It remembers for which tasks it has said that there is only one node. */
export type PlayedPolicy = Policy & { only?: (task: Task) => number | undefined }

/** Results of earlier runs, where a program is resumed. */
export interface Kept {
  wants(task: Task): boolean
  /** What each of its accesses made, by what it reads; null when that is not known. */
  find(uid: string, inputs: readonly string[]): readonly (Value | null)[] | null
  keep(uid: string, inputs: readonly string[], made: readonly (Value | null)[]): void
}

export interface Inside {
  group: Group
  data: Datum[]
}

/** One attempt, from `start` until the engine has been told how it ended. */
interface Attempt {
  task: Task
  begun: boolean
  beganAt: number
  over: boolean
  stopping: boolean
  inputs: string[]
  /** How many of them are its own, not given by calls inside. */
  own: number
  /** Per access: what a COMMUTATIVE or in-place writer found. */
  found: (Value | null)[]
  inside: Inside | null
  /** Runs when the attempt may go on after it was blocked. */
  goOn: (() => void) | null
}

interface Planned {
  at: number
  order: number
  run: () => void
}

const workOf = (task: Task): Work => task.payload as Work

const boxOf = (version: Version): Box => {
  assert(version.value instanceof Box, `version ${version.id} has no value (${version.state})`)
  return version.value
}

/** What a task will read, as it is when it is ready. */
const inputsOf = (task: Task): string[] =>
  task.accesses.flatMap(({ read }) => (read ? [show(boxOf(read).value as Value)] : []))

export class FakeMachine {
  readonly engine: Engine
  readonly random: Random
  readonly tasks: Task[] = []
  readonly discarded = new Set<Version>()
  readonly versions = new Set<Version>()
  readonly settled = new Set<Version>()
  readonly watched = new Set<Version>()
  readonly idle = new Set<Group>()
  readonly attempts = new Map<Task, Attempt>()
  readonly story = new Storyline()
  now = 0
  /** Tasks that were taken back from their lanes. */
  recalled = 0
  recallsToKeep = 20
  /** Deaths of threads still to come, so that every program ends. */
  deaths: number
  readonly #planned = new Heap<Planned>((a, b) => a.at < b.at || (a.at === b.at && a.order < b.order))
  #order = 0
  /** In-place data: the value that a version had before it was overwritten. */
  readonly #saved = new Map<Version, Value>()
  readonly #waitingInside = new Map<Group, Task>()
  readonly #kept: Kept | null
  #steps: number
  readonly #early = new Map<Version, Value>()
  /** Tasks that did not run, because their results were known. */
  readonly answered = new Set<Task>()

  readonly #onlyNode: PlayedPolicy['only']

  constructor(options: {
    nodes: NodeDescription[]
    policy?: PlayedPolicy
    seed: number
    deaths?: number
    kept?: Kept | null
    /** It is killed after so many. */
    steps?: number
  }) {
    this.random = new Random(options.seed)
    this.deaths = options.deaths ?? 0
    this.#kept = options.kept ?? null
    this.#onlyNode = options.policy?.only
    this.#steps = options.steps ?? Infinity
    this.engine = new Engine({
      nodes: options.nodes,
      ...(options.policy ? { policy: options.policy } : {}),
      observer: event => this.#observe(event),
    })
    const { kept } = options
    if (kept) this.engine.looks.wants = task => kept.wants(task)
  }

  #observe(event: RunEvent): void {
    this.story.add(event)
  }

  // --- what a program does ---

  datum(inPlace: boolean, path: string | null, value: string): Datum {
    const datum = new Datum(path, inPlace)
    datum.current.value = new Box(fresh(value))
    this.versions.add(datum.current)
    return datum
  }

  /** A datum that the next task makes, and that has no value before. */
  result(): Datum {
    return new Datum(null, false, false)
  }

  submit(spec: TaskSpec, accesses: AccessRequest[]): Task {
    const task = this.engine.submit(spec, accesses, this.now)
    this.tasks.push(task)
    for (const { datum } of accesses) this.versions.add(datum.current)
    for (const { write } of task.accesses) if (write) this.versions.add(write)
    return task
  }

  write(datum: Datum, value: string): void {
    this.versions.add(this.engine.write(datum, new Box(fresh(value)), this.now))
  }

  fallBack(datum: Datum): void {
    this.engine.fallBack(datum)
    const before = this.#saved.get(datum.current)
    if (!datum.inPlace || !before) return
    const box = boxOf(datum.current)
    assert.equal(box.writers.size, 0, 'the datum fell back while a task still wrote it')
    box.value = before
  }

  watch(version: Version): void {
    this.watched.add(version)
    this.engine.watch(version)
  }

  /** Whether the clock has something to go on for. */
  get alive(): boolean {
    return this.#planned.size > 0
  }

  /** Lets time pass until something happens, and lets the engine decide. */
  step(): void {
    if (this.#steps-- <= 0) throw new Killed()
    const next = this.#planned.pop()
    assert(next, this.deadlock('nothing is going to happen'))
    this.now = Math.max(this.now, next.at)
    next.run()
    if (this.random.chance(0.1)) this.#lookAtLanes()
    // Reports come in batches: now and then several of them before the engine is asked.
    if (this.random.chance(0.3) && this.#planned.size > 0) return
    this.turn()
  }

  /** Asks the engine what to do until it wants nothing more. */
  turn(): void {
    for (let rounds = 0; ; rounds++) {
      assert(rounds < 10_000, 'the engine goes on giving instructions')
      const instructions = this.engine.decide(this.now)
      for (const one of instructions) this.#perform(one)
      this.#beginHeads()
      checkMachine(this)
      if (instructions.length === 0) break
    }
  }

  #lookAtLanes(): void {
    for (const node of this.engine.nodes) {
      for (const lane of node.lanes) this.engine.laneSilent(node.index, lane.index, this.now)
    }
  }

  deadlock(what: string): string {
    const open = this.tasks.filter(task => !task.ended)
    return `deadlock: ${what}\n${open.map(task => `${workOf(task).uid} ${task.name}: ${task.story()}`).join('\n')}`
  }

  // --- instructions ---

  #perform(instruction: Instruction): void {
    switch (instruction.type) {
      case 'start':
        return this.#start(instruction.task)
      case 'resume': {
        const attempt = this.attempts.get(instruction.task)
        assert(attempt?.goOn && !attempt.over, `${instruction.task.name} is resumed but was not blocked`)
        const { goOn } = attempt
        attempt.goOn = null
        return goOn()
      }
      case 'stop':
        return this.#stop(instruction.task)
      case 'recall':
        return this.#recall(instruction.tasks, instruction.why)
      case 'discard':
        return this.#discard(instruction.version)
      case 'settled': {
        const { version } = instruction
        assert(version.settled, 'told that a version is settled, and it is not')
        assert(this.watched.delete(version), 'told of a version that is not watched')
        this.settled.add(version)
        return
      }
      case 'move':
      case 'pace':
        return assert.fail('told to move data, and flushing is off')
      case 'look':
        return this.#look(instruction.task)
      case 'unread':
        return assert.fail('told of readers that are not watched')
      case 'idle': {
        const caller = this.#waitingInside.get(instruction.group)
        if (caller) this.#insideEnded(instruction.group, caller)
        else this.idle.add(instruction.group)
        return
      }
      default:
        assert.fail(`unknown instruction ${String(instruction satisfies never)}`)
    }
  }

  /** Looks for the results of a task, which takes a while, or does not. */
  #look(task: Task): void {
    assert(this.#kept, 'told to look for results, and that was not asked for')
    const made = this.#kept.find(workOf(task).uid, inputsOf(task))
    const tell = (): void => {
      if (!made) return this.engine.unanswered(task, this.now)
      for (const [i, { write }] of task.accesses.entries())
        if (write && task.state === 'ready') write.value = new Box(made[i] as Value)
      if (this.engine.answered(task, this.now)) this.answered.add(task)
    }
    if (this.random.chance(0.5)) tell()
    else this.later(this.random.next(), tell)
  }

  /** What it made is kept; members of teams have made nothing of their own. */
  #keep({ task, inputs, own }: Attempt): void {
    if (!this.#kept?.wants(task)) return
    const made = task.accesses.map(({ write }) =>
      write ? (this.#early.get(write) ?? boxOf(write).value) : null,
    )
    this.#kept.keep(workOf(task).uid, inputs.slice(0, own), made)
  }

  #start(task: Task): void {
    assert.equal(task.state, 'running')
    assert(!this.answered.has(task), `${task.name} runs, and its results were known`)
    assert(!this.attempts.has(task), `${task.name} is started while an attempt runs`)
    for (const { read } of task.accesses) {
      assert(!read || read.state === 'ready', `${task.name} starts before what it reads is there`)
    }
    // Those that write shared memory together go where the first of them went.
    const only = task.accesses.some(({ mode }) => mode === 'concurrent') ? undefined : this.#onlyNode?.(task)
    assert.equal(task.node, only ?? task.node, `${task.name} runs on another node than the only one for it`)
    const lane = this.engine.nodes[task.node]?.lanes[task.lane]
    assert(lane && [...lane.queue].includes(task), `${task.name} is started but not on its lane`)
    this.attempts.set(task, {
      task,
      begun: false,
      beganAt: -1,
      over: false,
      stopping: false,
      inputs: [],
      own: 0,
      found: [],
      inside: null,
      goOn: null,
    })
  }

  #beginHeads(): void {
    for (const node of this.engine.nodes) {
      for (const lane of node.lanes) {
        const head = lane.queue.peek()
        const attempt = head && this.attempts.get(head)
        if (!attempt || attempt.begun) continue
        // A thread that has already been told to stop a task need not begin it.
        if (attempt.stopping && this.random.chance(0.7)) continue
        this.#begin(attempt)
      }
    }
  }

  #begin(attempt: Attempt): void {
    const { task } = attempt
    attempt.begun = true
    attempt.beganAt = this.now
    this.engine.started(task, this.now)
    this.#readInputs(attempt)
    const work = workOf(task)
    const half = this.#duration(work) / 2
    this.#plan(attempt, half, () => {
      if (work.early >= 0) this.#commitEarly(attempt, work.early)
      if (work.inside && task.state === 'running') this.#callInside(attempt, work.inside, half)
      else this.#plan(attempt, half, () => this.#endAttempt(attempt))
    })
  }

  #duration({ short }: Work): number {
    const { random } = this
    if (short)
      return random.chance(0.05) ? random.next() * (random.chance(0.2) ? 150 : 5) : random.next() * 0.3
    return random.next() * 10
  }

  /** Does something later, unless the attempt is over by then. */
  #plan(attempt: Attempt, after: number, run: () => void): void {
    this.later(after, () => {
      if (!attempt.over) run()
    })
  }

  later(after: number, run: () => void): void {
    this.#planned.push({ at: this.now + after, order: this.#order++, run })
  }

  // --- memory ---

  #readInputs(attempt: Attempt): void {
    const { task } = attempt
    for (const access of task.accesses) {
      const { mode, read, write } = access
      if (read) assert(!this.discarded.has(read), `${task.name} reads a version that was discarded`)
      const from = source(access)
      const box = from ? boxOf(from) : null
      const inPlace = (write ?? read)?.datum.inPlace ?? false
      let found: Value | null = null
      if (mode === 'commutative') {
        found = (box as Box).value
        assert(found, `${task.name} and another COMMUTATIVE task run at one time`)
      } else if (mode !== 'concurrent' && read) {
        found = boxOf(read).value
        assert(found, `${task.name} reads what another task is writing`)
        attempt.inputs.push(show(found))
      }
      attempt.found.push(found)
      if (inPlace && box) this.#enter(attempt, access, box)
    }
    attempt.own = attempt.inputs.length
    // Only now, so that a task which uses the same memory twice sees it unspoiled.
    for (const { mode, read, write } of task.accesses) {
      const exclusive = mode === 'inout' || mode === 'commutative'
      if (write?.datum.inPlace && exclusive && read) boxOf(read).value = null
    }
  }

  /** Memory that exists once: tasks that run there must not disturb each other. */
  #enter({ task }: Attempt, { mode, read, write }: Access, box: Box): void {
    const others = [...box.writers].filter(([other]) => other !== task)
    if (write) {
      for (const reader of box.readers) {
        assert(reader === task, `${task.name} writes in place while ${reader.name} reads`)
      }
      for (const [other, version] of others) {
        assert(mode === 'concurrent' && version === write, `${task.name} and ${other.name} write in place`)
      }
      const base = write.team?.base ?? read
      if (base && !this.#saved.has(base) && box.value) this.#saved.set(base, box.value)
      box.writers.set(task, write)
    } else {
      assert.equal(others.length, 0, `${task.name} reads in place while ${others[0]?.[0].name} writes`)
      box.readers.add(task)
    }
  }

  #leaveMemory(attempt: Attempt, restore: boolean): void {
    const { task } = attempt
    if (!attempt.begun) return
    for (const [index, { mode, read, write }] of task.accesses.entries()) {
      const version = read ?? write
      if (!version?.datum.inPlace) continue
      const box = boxOf(version)
      if (restore && write && mode !== 'concurrent') box.value = attempt.found[index] as Value
      box.readers.delete(task)
      box.writers.delete(task)
    }
  }

  /** Puts what the task makes where the next one finds it. */
  #apply(attempt: Attempt, partial: boolean, only = -1): void {
    const { task } = attempt
    const inputs = partial ? attempt.inputs.slice(0, attempt.own) : attempt.inputs
    for (const [index, access] of task.accesses.entries()) {
      const { mode, read, write } = access
      if (!write || (only >= 0 && only !== index)) continue
      if (only < 0 && workOf(task).early === index && write.settled) continue
      const made = effect(workOf(task).uid, index, inputs, partial)
      const inPlace = write.datum.inPlace
      if (mode === 'concurrent' || mode === 'commutative') {
        const now = boxOf(source(access) as Version).value
        // A read-modify-write as a program would do it: what happened meanwhile is overwritten.
        const old = mode === 'concurrent' || this.#again(task, index) ? now : attempt.found[index]
        const next = plus(old as Value, made)
        if (inPlace) {
          boxOf(read as Version).value = next
          write.value = (read as Version).value
        } else write.value = new Box(next)
      } else if (inPlace) {
        boxOf(read as Version).value = fresh(made)
        write.value = (read as Version).value
      } else write.value = new Box(fresh(made))
    }
  }

  /** Whether an earlier access of the same task writes the same version. */
  #again(task: Task, index: number): boolean {
    const { write } = task.accesses[index] as Access
    return task.accesses.findIndex(other => other.write === write) < index
  }

  #commitEarly(attempt: Attempt, index: number): void {
    const { write } = attempt.task.accesses[index] as Access
    if (write?.state !== 'pending') return
    this.#apply(attempt, false, index)
    // It may be discarded before the task ends.
    if (this.#kept) this.#early.set(write, boxOf(write).value as Value)
    this.engine.commit(write, this.now)
  }

  #discard(version: Version): void {
    assert(!this.discarded.has(version), `version ${version.id} is discarded twice`)
    assert(version.settled, 'a version is discarded before it is settled')
    assert(!this.watched.has(version), 'a version is discarded before its watcher was told')
    for (let at: Version | null = version.datum.current; at; at = at.previous) {
      if (at === version) assert(version.datum.removed, 'a version is discarded that could be fallen back to')
    }
    for (const task of this.tasks) {
      if (task.ended) continue
      assert(
        task.accesses.every(({ read }) => read !== version),
        `version ${version.id} is discarded, but ${task.name} reads it: ${task.story()}`,
      )
    }
    this.discarded.add(version)
    version.value = undefined
  }

  // --- ends ---

  #endAttempt(attempt: Attempt): void {
    const { task } = attempt
    const work = workOf(task)
    for (const [index, { read, write }] of task.accesses.entries()) {
      if (!read?.datum.inPlace || write) continue
      const doubled = task.accesses.some(other => other.write?.datum === read.datum)
      if (!doubled) assert.equal(boxOf(read).value, attempt.found[index], `${task.name}: input changed`)
    }
    if (task.state === 'stopping') {
      // It ends by itself before it was stopped: what it made is not kept.
      this.#over(attempt, true)
      return this.engine.finished(task, this.now)
    }
    if (this.deaths > 0 && this.random.chance(0.05)) {
      this.deaths--
      return this.#threadDies(attempt)
    }
    if (task.attempt <= work.failures) return this.#fail(attempt, this.random.chance(0.3))
    const took = this.now - attempt.beganAt
    this.#apply(attempt, false)
    this.#keep(attempt)
    this.#over(attempt, false)
    // Threads report in batches, so that the end of a task may be told a little late.
    const late = work.inside ? 0 : this.random.next()
    this.engine.finished(task, Math.max(attempt.beganAt, this.now - late), took)
  }

  #fail(attempt: Attempt, timedOut: boolean): void {
    const { task } = attempt
    const keeps = this.engine.afterFailure(task) === 'ignore'
    const stopping = task.state === 'stopping'
    if (keeps && !stopping) {
      this.#apply(attempt, true)
      this.#keep(attempt)
    }
    this.#over(attempt, !keeps || stopping)
    const name = timedOut ? 'TimeoutError' : 'Error'
    this.engine.failed(task, { name, message: 'planned', timedOut }, new Error('planned'), this.now)
  }

  #over(attempt: Attempt, restore: boolean): void {
    assert(!attempt.over)
    attempt.over = true
    this.#leaveMemory(attempt, restore)
    this.attempts.delete(attempt.task)
    const group = attempt.inside?.group
    if (group && group.live > 0)
      this.engine.cancel(group, { kind: 'group', group: 'outer', how: 'cancelled' }, this.now)
    if (group) this.engine.closeGroup(group)
  }

  /** The thread behind a lane ends: everything that was on it comes back. */
  #threadDies(attempt: Attempt): void {
    const { node, lane } = attempt.task
    const victims = [...this.attempts.values()].filter(
      ({ task }) => task.node === node && task.lane === lane && task.lane >= 0,
    )
    for (const victim of victims) {
      const { failures, early } = workOf(victim.task)
      const mayFail = victim !== attempt && victim.begun && victim.task.attempt <= failures && early < 0
      if (mayFail && this.random.chance(0.3)) {
        this.#fail(victim, false)
        continue
      }
      this.#over(victim, true)
      this.engine.returned(victim.task, lost('its thread died'), this.now)
    }
  }

  /** Those that have begun stay, and some for which the answer is not known yet. */
  #recall(tasks: readonly Task[], why: ReturnWhy): void {
    if (this.random.chance(0.1) && this.recallsToKeep-- > 0) return this.engine.kept(tasks)
    for (const task of tasks) {
      const attempt = this.attempts.get(task)
      assert(attempt, `${task.name} is recalled but was not started`)
      if (attempt.begun || attempt.stopping || this.random.chance(0.1)) continue
      this.#over(attempt, true)
      this.recalled++
      this.engine.returned(task, why, this.now)
    }
  }

  #stop(task: Task): void {
    assert.equal(task.state, 'stopping')
    const attempt = this.attempts.get(task)
    assert(attempt, `${task.name} is to be stopped but does not run`)
    attempt.stopping = true
    this.#plan(attempt, this.random.next() * 3, () => {
      this.#over(attempt, true)
      this.engine.stopped(task, this.now)
    })
  }

  // --- calls inside ---

  #callInside(attempt: Attempt, make: (task: Task) => Inside, rest: number): void {
    const { task } = attempt
    attempt.inside = make(task)
    const { group } = attempt.inside
    if (this.random.chance(0.2)) {
      // The caller does not wait at once.
      this.#plan(attempt, this.random.next(), () => this.#block(attempt, group, rest))
    } else this.#block(attempt, group, rest)
  }

  #block(attempt: Attempt, group: Group, rest: number): void {
    const { task } = attempt
    this.engine.blocked(task, 'what it called', this.now)
    this.#waitingInside.set(group, task)
    this.engine.watchGroup(group)
    attempt.goOn = () => this.#plan(attempt, rest, () => this.#endInside(attempt))
    if (attempt.stopping) return
    if (task.attempt <= workOf(task).failures && this.random.chance(0.3)) {
      // Its time is up while it waits.
      this.#plan(attempt, this.random.next() * 3, () => {
        if (attempt.stopping || task.state !== 'blocked') return
        this.#fail(attempt, true)
      })
    }
  }

  #insideEnded(group: Group, caller: Task): void {
    this.#waitingInside.delete(group)
    const attempt = this.attempts.get(caller)
    if (attempt?.inside?.group === group) this.engine.unblocked(caller)
  }

  /** Goes on with what the calls gave, or throws what they threw. */
  #endInside(attempt: Attempt): void {
    const bad = attempt.inside?.data.some(datum => this.engine.read(datum, this.now).state !== 'ready')
    if (bad) return this.#fail(attempt, false)
    for (const datum of attempt.inside?.data ?? []) {
      attempt.inputs.push(show(boxOf(datum.current).value as Value))
    }
    this.#endAttempt(attempt)
  }
}
