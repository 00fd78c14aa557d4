import { hostname } from 'node:os'
import type { Access, Version } from '../core/data/datum.ts'
import type { Node, NodeDescription } from '../core/schedule/machine.ts'
import { FORMS } from '../core/tasks/form.ts'
import type { Form } from '../core/tasks/form.ts'
import type { Task } from '../core/tasks/task.ts'
import { lost } from '../core/why.ts'
import type { ReturnWhy } from '../core/why.ts'
import { Stored } from '../model/encoding/stored.ts'
import { isLive } from './attempt.ts'
import { Binding } from './cpus/binding.ts'
import type { BindSettings } from './cpus/binding.ts'
import { decodeStored } from './decode-stored.ts'
import { Endings } from './endings.ts'
import { ApartFiles } from './files/apart-files.ts'
import type { ApartFolder } from './files/apart-files.ts'
import type { NodeFiles } from './files/node-files.ts'
import type { StreamSite } from './files/stream-site.ts'
import { attemptOf, beginAttempt, jobOf } from './job.ts'
import { LocalSite } from './mpi/local-site.ts'
import type { MachineUse } from './machine-use.ts'
import { MpiTasks, RANKS } from './mpi/mpi-tasks.ts'
import type { RankNode } from './mpi/rank-nodes.ts'
import { rankFacts } from './mpi/rank-facts.ts'
import type { RankPlace } from './mpi/rank-pools.ts'
import type { NodeEvents, NodeHost, TaskNode } from './node.ts'
import type { Watchdog } from './processes/watchdog.ts'
import type { ProcessPort } from './processes/process-port.ts'
import { isMachineLost } from './processes/command-process.ts'
import { Programs } from './processes/programs.ts'
import type { StepTimes } from './steps.ts'
import type { TaskForm } from './task-form.ts'
import type { BufferOwnership } from './threads/buffer-ownership.ts'
import { Functions } from './threads/functions.ts'
import type { TaskModules } from './threads/modules.ts'
import type { OpenThread } from './threads/threads.ts'
import { startTimeout } from './timeouts.ts'

/** What the nodes of a run have in common. */
export interface RunParts {
  /** Unique on this machine. */
  readonly run: string
  /** The folder of what tasks print. */
  readonly logs: string | null
  /** Which tasks are bound to the CPUs of their lanes. */
  readonly bind: BindSettings
  /** Steps of attempts are measured. */
  readonly stepTimes: StepTimes
  readonly host: NodeHost
  readonly files: NodeFiles
  readonly watchdog: Watchdog
  readonly buffers: BufferOwnership
  readonly modules: TaskModules
  /** The nodes on which ranks of MPI tasks can be. */
  readonly ranks: RankNode[]
}

/** Where the threads and programs of a node come from: this machine, or an agent on another one. */
export interface NodePorts {
  readonly openThread: OpenThread
  readonly processes: ProcessPort
  /** Its agent is on this machine. */
  readonly isLocal?: boolean
  /** For an agent on another machine: where ranks of MPI tasks are. */
  readonly ranks?: RankPlace
  /** For an agent: who hears of it. */
  attach?(events: AgentEvents): void
  /** For an agent: whether it is to tell how loaded its machine is. */
  measure?(isWanted: boolean): void
  /** For an agent that does not see our folders: its own. */
  readonly folder?: ApartFolder | null
  /** For an agent whose programs do not share memory with this machine: growing files there. */
  readonly streams?: StreamSite | null
}

/** What is heard of an agent, beside its threads and programs. */
export interface AgentEvents {
  /**
   * It takes part no more: it was lost, or was given back. Its threads and programs have been said to have ended before.
   */
  gone(reason: string, isLost: boolean): void
  note(text: string): void
  measured(use: MachineUse): void
}

/** What belongs to one node. */
export interface NodeParts extends NodePorts {
  readonly machine: Node
  readonly description: NodeDescription
  readonly events: NodeEvents
}

/** Runs tasks on threads and as programs, with files that this machine sees. */
export class LocalNode implements TaskNode {
  readonly machine: Node
  readonly #description: NodeDescription
  readonly #events: NodeEvents
  readonly #host: NodeHost
  readonly #stepTimes: StepTimes
  readonly #buffers: BufferOwnership
  readonly #endings: Endings
  readonly #apart: ApartFiles | null
  readonly #functions: Functions
  readonly #programs: Programs
  readonly #mpi: MpiTasks
  readonly #forms: Readonly<Record<Form, TaskForm>>
  readonly #all: readonly TaskForm[]
  /** Lanes with attempts that are launched when their turn comes. */
  readonly #heldLanes = new Set<number>()

  constructor(shared: RunParts, parts: NodeParts) {
    const { machine, description, events, openThread, processes } = parts
    const isHere = parts.attach === undefined
    this.machine = machine
    this.#description = description
    this.#events = events
    const { host, files, buffers, modules, logs, stepTimes } = shared
    this.#host = host
    this.#stepTimes = stepTimes
    this.#buffers = buffers
    const formOf = (task: Task): TaskForm => this.#formOf(task)
    const apart = parts.folder ? new ApartFiles(parts.folder, files, host) : null
    this.#apart = apart
    const endings = new Endings({
      files,
      apart,
      buffers,
      classes: modules,
      logs,
      host,
      stepTimes,
      events,
      formOf,
    })
    this.#endings = endings
    const limit = (task: Task): void => this.#limit(task)
    const binding = new Binding(machine, shared.bind, isHere)
    this.#functions = new Functions({
      machine,
      binding,
      stepTimes,
      buffers,
      files: files.tasks,
      host,
      events,
      endings,
      open: openThread,
      findClass: (module, name) => modules.findClass(module, name),
      limit,
    })
    const decode = (stored: Stored, slots: unknown[]): unknown => decodeStored(stored, slots, modules)
    const isOnHost = isHere || parts.isLocal === true
    const node = isOnHost ? hostname() : machine.name
    this.#programs = new Programs({
      ...shared,
      node,
      apart,
      streams: parts.streams ?? null,
      binding,
      events,
      processes,
      endings,
      decode,
      limit,
    })
    const { run, watchdog } = shared
    const here = hostname()
    const facts = (): ReturnType<typeof rankFacts> => rankFacts(logs, host.now())
    const place = { node: here, openSite: () => new LocalSite({ node: here, run, watchdog, facts }) }
    const own = {
      machine,
      place: parts.ranks ?? place,
      isHere: parts.ranks === undefined,
      isApart: apart !== null,
    }
    shared.ranks.push(own)
    this.#mpi = new MpiTasks({ ...shared, own, nodes: shared.ranks, binding, events, endings, limit })
    this.#forms = { function: this.#functions, command: this.#programs, mpi: this.#mpi }
    this.#all = Object.values(this.#forms)
  }

  #formOf(task: Task): TaskForm {
    return this.#forms[task.kind.form]
  }

  describe(): NodeDescription {
    return this.#description
  }

  get isIdle(): boolean {
    return this.#endings.running.size === 0
  }

  get isAtRest(): boolean {
    for (const task of this.#endings.running) {
      if (task.state !== 'blocked' || jobOf(task).attempt?.state === 'settling') return false
    }
    return true
  }

  warmUp(forms: ReadonlySet<Form>): Promise<void> | null {
    let worthWaiting: Promise<void> | null = null
    for (const form of forms) worthWaiting = this.#forms[form].warmUp() ?? worthWaiting
    return worthWaiting
  }

  // --- starting and stopping ---

  start(task: Task): void {
    if (this.#buffers.elsewhere) {
      for (const { read } of task.accesses) if (read) this.#host.want(read)
      if (task.accesses.some(isUnmade)) {
        return this.#events.returned(task, lost('what it reads was lost with a node'))
      }
    }
    this.#endings.running.add(task)
    const attempt = beginAttempt(task)
    attempt.isApart = this.#apart !== null
    const { definition } = jobOf(task)
    if (definition.stream || definition.returns > 0) attempt.early = this.#host.earlyStart(task)
    const form = this.#formOf(task)
    if (form.beginsAtOnce(task) && (task.demand.io || this.#headOf(task.lane) === task)) {
      this.#events.began(task, this.#host.now())
    }
    const preparing = together(form.prepare(task), this.#home(task))
    if (preparing) void this.#launchAfter(task, form, preparing)
    else this.#launch(task, form, false)
  }

  /** Threads of the node get values from where they are. All others, and memory that several tasks write, need them here. */
  #home({ kind, accesses }: Task): Promise<unknown> | null {
    if (!this.#buffers.elsewhere) return null
    const homes = accesses.flatMap(({ mode, read }) => {
      if (FORMS[kind.form].runsOn === 'threads' && mode !== 'concurrent') return []
      const home = read?.value instanceof Stored ? this.#buffers.home(read.value) : null
      return home ? [home] : []
    })
    return homes.length > 0 ? Promise.all(homes) : null
  }

  async #launchAfter(task: Task, form: TaskForm, preparing: Promise<unknown>): Promise<void> {
    const at = this.#stepTimes !== 'off' ? this.#host.now() : 0
    try {
      await preparing
      if (this.#apart && isLive(task)) await this.#apart.give(task)
    } catch (error) {
      if (isMachineLost(error)) return this.#endings.lose(task, false, error.shortMessage)
      return this.#endings.fail(task, error, false)
    }
    if (this.#stepTimes !== 'off') attemptOf(task).fetched = { at, took: this.#host.now() - at }
    if (isLive(task)) this.#launch(task, form, true)
    else this.#endings.lose(task, true, task.reason)
  }

  #launch(task: Task, form: TaskForm, isLate: boolean): void {
    const head = task.queueable ? this.#headOf(task.lane) : task
    if (head !== task && form.mustWait(task, head)) {
      attemptOf(task).move('held', task)
      this.#heldLanes.add(task.lane)
    } else form.launch(task, isLate)
  }

  /** The task that runs on a lane of a CPU, if there is one. */
  #headOf(lane: number): Task | undefined {
    return this.machine.lanes[lane]?.queue.peek()
  }

  stop(task: Task): void {
    const { attempt } = jobOf(task)
    // One that has ended since the order was given has no attempt.
    if (attempt && !attempt.isBusy) this.#formOf(task).stop(task)
  }

  abort(task: Task): void {
    const { attempt } = jobOf(task)
    if (attempt && !attempt.isBusy && attempt.program) this.#programs.abort(task)
  }

  recall(tasks: readonly Task[], why: ReturnWhy): void {
    // Results that are there may show that the lanes are not as full as they seem.
    if (
      why.kind === 'cpu-is-free' &&
      this.machine.freeLanes > 0 &&
      this.#all.some(form => form.takeResults())
    ) {
      return this.#events.kept(tasks)
    }
    for (const task of tasks) {
      if (task.state === 'running' && jobOf(task).attempt) this.#formOf(task).recall(task, why)
    }
  }

  inputsLost(versions: ReadonlySet<Version>, why: ReturnWhy): void {
    const reads = ({ accesses }: Task): boolean =>
      accesses.some(({ read }) => read !== null && versions.has(read))
    for (const task of [...this.#endings.running].filter(reads)) {
      if (task.state === 'running' && jobOf(task).attempt) this.#formOf(task).recall(task, why)
    }
  }

  /** The time of an attempt counts from where it begins: not the start of a thread, nor the copying of files. */
  #limit(task: Task): void {
    const milliseconds = jobOf(task).definition.timeout
    if (milliseconds === 0 || this.#endings.running.get(task.id) !== task) return
    const attempt = attemptOf(task)
    if (attempt.timeout) return
    startTimeout(attempt, milliseconds, () => {
      if (attempt.isBusy) return false
      this.#events.givenUp(task)
      this.#formOf(task).stopOverdue(task, `it took longer than ${milliseconds} ms`)
      return true
    })
  }

  // --- results and answers ---

  hurry(task: Task): void {
    this.#formOf(task).hurry(task)
  }

  answer(place: number, request: number, ok: boolean, value: Stored, isMoved = false): void {
    if (place === RANKS) return this.#mpi.answer(request)
    this.#functions.threads.answer(place, request, ok, value, isMoved)
  }

  async bringFile(path: string): Promise<string> {
    if (!this.#apart) return path
    const { folder } = this.#apart
    await folder.bring(path)
    return folder.there(path)
  }

  flush(): void {
    for (const lane of this.#heldLanes) {
      const task = this.#headOf(lane)
      if (!task) this.#heldLanes.delete(lane)
      else if (jobOf(task).attempt?.state === 'held') this.#launch(task, this.#formOf(task), false)
    }
    for (const form of this.#all) form.flush()
  }

  drain(): void {
    for (const form of this.#all) form.drain()
  }

  tick(): boolean {
    let isSoon = false
    for (const form of this.#all) if (form.tick()) isSoon = true
    return this.#lookAtLanes() || isSoon
  }

  /** Tells of lanes of which nothing was heard for long; returns whether tasks wait on some while a CPU is idle. */
  #lookAtLanes(): boolean {
    const now = this.#host.now()
    let isBehind = false
    for (const lane of this.machine.lanes) {
      if (this.machine.freeLanes > 0 && lane.queue.size > 1 && lane.shared === 0) isBehind = true
      const head = this.#events.laneSilent(lane.index, now) ? lane.queue.peek() : undefined
      if (!head || head.startedAt >= 0) continue
      // The result says when it began. A long task is reported earlier: it began when the task before it ended.
      if (this.#formOf(head).hasBegun(head)) this.#events.began(head, Math.max(lane.lastEnd, head.begunAt))
    }
    return isBehind
  }

  async end(): Promise<void> {
    await Promise.all(this.#all.map(form => form.end()))
  }

  endNow(): void {
    for (const form of this.#all) form.endNow()
  }
}

/** It was made, was lost with a node since, and is made again. */
const isUnmade = ({ read }: Access): boolean => read?.state === 'pending' && read.growth === null

function together(one: Promise<unknown> | null, other: Promise<unknown> | null): Promise<unknown> | null {
  return one && other ? Promise.all([one, other]) : (one ?? other)
}
