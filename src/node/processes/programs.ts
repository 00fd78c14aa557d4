import { source } from '../../core/data/datum.ts'
import type { Access } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import { returnText } from '../../core/why.ts'
import type { ReturnWhy } from '../../core/why.ts'
import { hasTasksOn } from '../../model/definition.ts'
import { Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import type { Binding } from '../cpus/binding.ts'
import type { Endings } from '../endings.ts'
import { timeoutError } from '../failure-facts.ts'
import type { ApartFiles } from '../files/apart-files.ts'
import type { NodeFiles } from '../files/node-files.ts'
import { isStep } from '../files/streaming.ts'
import type { StreamSite } from '../files/stream-site.ts'
import { storeOutputs } from '../files/outputs.ts'
import { attemptOf, jobOf } from '../job.ts'
import type { NodeEvents, NodeHost } from '../node.ts'
import { isLive } from '../attempt.ts'
import type { TaskForm } from '../task-form.ts'
import type { BufferOwnership } from '../threads/buffer-ownership.ts'
import { SpawnerLost } from './command-process.ts'
import { hasHooks, runCommand, startCommand } from './commands.ts'
import type { CommandContext, CommandOutcome } from './commands.ts'
import { delayOptimization } from './compiler-budget.ts'
import type { Watchdog } from './watchdog.ts'
import type { ProcessPort } from './process-port.ts'

export interface ProgramParts {
  /** The name of the machine. */
  readonly node: string
  readonly run: string
  readonly logs: string | null
  readonly binding: Binding
  readonly processes: ProcessPort
  readonly buffers: BufferOwnership
  readonly files: NodeFiles
  /** Where the node does not see our folders. */
  readonly apart: ApartFiles | null
  /** Where its programs have growing files of their own. */
  readonly streams: StreamSite | null
  readonly watchdog: Watchdog
  readonly host: NodeHost
  readonly events: NodeEvents
  readonly endings: Endings
  decode(stored: Stored, slots: unknown[]): unknown
  /** The attempt has begun: its timeout counts from here. */
  limit(task: Task): void
}

/** Tasks that are commands. Short ones wait for their turn where programs are started, so that no CPU waits for us. */
export class Programs implements TaskForm {
  readonly #parts: ProgramParts
  readonly #context: CommandContext
  /** Whether the compiler gets less time has been decided. */
  #isCompilerSet = false
  #environment: { at: number; variables: Readonly<Record<string, string>> } | null = null
  /** With variables that say which CPUs and GPUs a task has, by their text. */
  readonly #more = new Map<string, Readonly<Record<string, string>>>()

  constructor(parts: ProgramParts) {
    this.#parts = parts
    this.#context = {
      processes: parts.processes,
      run: parts.run,
      node: parts.node,
      logs: parts.logs,
      environment: task => this.#environmentOf(task),
      cpusOf: task => parts.binding.cpusOf(task),
      decode: (stored, slots) => parts.decode(stored, slots),
      valueOf: (task, slot) => source(task.accesses[slot] as Access)?.value as Kept,
      folder: parts.apart?.folder ?? null,
      step: null,
      began: task => parts.files.streaming.began(task),
    }
  }

  /** Programs may be wanted soon. While this process is small it can start others in no time. */
  warmUp(): Promise<void> | null {
    const starting = this.#start()
    // Files are read meanwhile.
    this.#parts.watchdog.start()
    return starting
  }

  /** Null when programs can be started at once. */
  #start(): Promise<void> | null {
    const starting = this.#parts.processes.start()
    if (starting && !this.#isCompilerSet) {
      this.#isCompilerSet = true
      // Afterwards: what Node brings along compiled is of no use to it once the setting has changed.
      if (!hasTasksOn('threads')) void starting.then(delayOptimization)
    }
    return starting
  }

  prepare(task: Task): Promise<void> | null {
    return this.#parts.files.tasks.prepare(task)
  }

  beginsAtOnce(): boolean {
    return true
  }

  /** Without the spawner, programs cannot wait on a lane. */
  mustWait(): boolean {
    return !this.#parts.processes.hasLanes
  }

  launch(task: Task): void {
    const mustWait = this.#start() !== null || this.#inputAway(task) !== null
    if (mustWait || hasHooks(task) || this.#parts.files.streaming.concerns(task)) void this.#launchLater(task)
    else this.#launchNow(task)
  }

  #launchNow(task: Task): void {
    if (!isLive(task)) return this.#parts.endings.lose(task, true, task.reason)
    this.#begins(task)
    try {
      startCommand(task, this.#context, {
        ended: outcome => this.#ended(task, outcome),
        failed: error => this.#spoiled(task, error),
      })
    } catch (error) {
      this.#spoiled(task, error)
    }
  }

  async #launchLater(task: Task): Promise<void> {
    attemptOf(task).move('waiting', task)
    for (let away = this.#inputAway(task); away; away = this.#inputAway(task)) {
      const kept = away
      await new Promise<void>(resolve => this.#parts.buffers.whenBack(kept, resolve))
    }
    await this.#start()
    if (!isLive(task)) return this.#parts.endings.lose(task, true, task.reason)
    this.#begins(task)
    const { streaming } = this.#parts.files
    try {
      const step = streaming.concerns(task) ? await streaming.prepare(task, this.#parts.streams) : null
      if (step && !isLive(task)) return this.#parts.endings.lose(task, true, task.reason)
      const outcome = await runCommand(task, step ? { ...this.#context, step } : this.#context)
      if (step) {
        await streaming.inputsComplete(task)
        if (await streaming.wasBereft(task, false)) return this.#bereft(task)
        if (!isLive(task)) return this.#parts.endings.lose(task, true, task.reason)
      }
      this.#ended(task, outcome)
    } catch (error) {
      if (streaming.concerns(task) && (await streaming.wasBereft(task, true))) return this.#bereft(task)
      this.#spoiled(task, error)
    }
  }

  #begins(task: Task): void {
    attemptOf(task).move('sent', task)
    this.#parts.limit(task)
    this.#parts.watchdog.start()
  }

  #ended(task: Task, outcome: CommandOutcome): void {
    const { endings, events, host } = this.#parts
    const program = attemptOf(task).withProgram()
    if (outcome.cameBack) {
      const why = program.recalled ?? { kind: 'behind-long-task' }
      return endings.lose(task, false, returnText(why), why)
    }
    const { usage, took, beganAt, kept } = outcome
    const startedAt = host.timeOf(beganAt)
    const now = host.now()
    events.began(task, Math.min(startedAt, now))
    program.usage = usage
    if (outcome.error) return this.#spoiled(task, outcome.error, outcome.printed)
    const ran = host.timeOf(beganAt + took) - startedAt
    endings.finish(task, { startedAt, took: ran, outputs: [outcome.exitCode], usage, kept }, now)
  }

  #spoiled(task: Task, error: unknown, printed = false): void {
    const { endings, host } = this.#parts
    if (
      error instanceof SpawnerLost &&
      isLive(task) &&
      !isStep(task) &&
      host.afterLoss(task, error.isMachine ? 'node' : 'spawner', null) === 'again'
    ) {
      return endings.lose(task, false, error.shortMessage)
    }
    endings.fail(task, attemptOf(task).isOverdue ? timeoutError(task) : error, printed)
  }

  /** What it read was void; it runs again when there is something to read. */
  #bereft(task: Task): void {
    this.#parts.endings.lose(task, false, 'what it read came from an attempt that failed')
  }

  /** A task without a program yet checks its state before it starts one. */
  stop(task: Task): void {
    this.abort(task)
  }

  stopOverdue(task: Task): void {
    this.abort(task)
  }

  abort(task: Task): void {
    const process = attemptOf(task).program?.process
    if (!process) return
    this.#parts.watchdog.suspect()
    this.#parts.processes.suspect()
    process.stop()
  }

  recall(task: Task, why: ReturnWhy): void {
    const { state, program } = attemptOf(task)
    if (state === 'held') return this.#parts.endings.giveBack(task, why)
    if (!program?.process?.callBack) return
    program.recalled = why
    program.process.callBack()
  }

  /** Exits arrive in batches by themselves. */
  takeResults(): boolean {
    return false
  }

  hurry(): void {}

  hasBegun(task: Task): boolean {
    return jobOf(task).attempt?.program?.process != null
  }

  collect(task: Task, outputs: readonly (Kept | undefined)[]): void {
    storeOutputs(task, outputs, 1)
  }

  left(task: Task): void {
    this.#parts.files.streaming.over(task)
  }

  flush(): void {
    this.#parts.processes.flush()
  }

  drain(): void {
    this.#parts.processes.drain()
  }

  tick(): boolean {
    return false
  }

  end(): Promise<void> {
    this.#parts.processes.end(true)
    return Promise.resolve()
  }

  endNow(): void {
    this.#parts.processes.end(false)
  }

  #environmentOf(task: Task): Readonly<Record<string, string>> {
    const common = this.#commandEnvironment()
    const own = this.#parts.binding.variablesOf(task)
    if (!own) return common
    const key = JSON.stringify(own)
    let all = this.#more.get(key)
    if (!all) this.#more.set(key, (all = { ...common, ...own }))
    return all
  }

  /** A value that the command reads and that a thread has at the moment. */
  #inputAway(task: Task): Stored | null {
    if (jobOf(task).slots.length === 0) return null
    for (const access of task.accesses) {
      const kept = source(access)?.value
      if (kept instanceof Stored && this.#parts.buffers.isAway(kept)) return kept
    }
    return null
  }

  /**
   * Ours, as it was after the last call: reading all of it takes as long as starting a program does here, and a
   * program that sets a variable and then calls a command sees it set there.
   */
  #commandEnvironment(): Readonly<Record<string, string>> {
    const { taskCount } = this.#parts.host
    if (this.#environment?.at !== taskCount) {
      const variables = { ...(process.env as Record<string, string>), MILLRACE_RUN: this.#parts.run }
      this.#environment = { at: taskCount, variables }
      this.#more.clear()
    }
    return this.#environment.variables
  }
}
