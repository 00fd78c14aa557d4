import { source } from '../core/data.ts'
import type { Access } from '../core/data.ts'
import { WAITED_IN_VAIN } from '../core/events.ts'
import type { TaskUsage } from '../core/events.ts'
import type { Node } from '../core/machine.ts'
import type { Task } from '../core/task.ts'
import { SpawnerLost } from '../execute/command-process.ts'
import type { Guard } from '../execute/guard.ts'
import { ownCpus } from '../execute/own-cpus.ts'
import { Processes } from '../execute/processes.ts'
import { someDefinition } from '../model/definition.ts'
import { Stored } from '../model/stored.ts'
import type { Kept } from '../model/stored.ts'
import { calmCompiler } from './calm-compiler.ts'
import { hasHooks, runCommand, startCommand } from './commands.ts'
import type { CommandContext, CommandOutcome } from './commands.ts'
import { jobOf, liveOf } from './job.ts'
import type { Loans } from './loans.ts'
import type { Runtime, RuntimeOptions } from './runtime.ts'
import type { Streaming } from './streaming.ts'

/**
 * A lane from which nothing was heard for so long is stuck: those who wait there go elsewhere; milliseconds. Where no
 * CPU is free for them they may as well stay a while: on a busy machine short programs take long, too.
 */
const STUCK = { free: 20, busy: 100 }

/** An attempt of a command that ended well. */
export interface CommandEnding {
  startedAt: number
  took: number
  outputs: Kept[]
  usage: TaskUsage | null
}

export interface CommandEnds {
  /** The time of the attempt counts from here. */
  limit(task: Task): void
  finish(task: Task, ending: CommandEnding, isKept: boolean): void
  failed(task: Task, error: unknown, printed: boolean): void
  lost(task: Task, guilty: boolean, reason: string): void
}

interface Parts {
  readonly loans: Loans
  readonly streaming: Streaming
  readonly guard: Guard
}

/** Runs tasks that are commands. Short ones wait for their turn where programs are started, so that no CPU waits for us. */
export class CommandRuns {
  readonly processes: Processes
  readonly #runtime: Runtime
  readonly #options: RuntimeOptions
  readonly #parts: Parts
  readonly #ends: CommandEnds
  readonly #cpus: readonly number[] | null
  readonly #context: CommandContext
  /** By lane: when a command was started there, or the last one ended. */
  readonly #heard: number[] = []
  readonly #endedAt: number[] = []
  /** Tasks that were lost with the process that starts programs: a second time, they are the reason. */
  readonly #lostBefore = new WeakSet<Task>()
  /** The compiler has been told, if it is to be. */
  #isCalm = false
  #environment: { at: number; variables: Readonly<Record<string, string>> } | null = null

  constructor(runtime: Runtime, options: RuntimeOptions, parts: Parts, ends: CommandEnds) {
    this.#runtime = runtime
    this.#options = options
    this.#parts = parts
    this.#ends = ends
    this.#cpus = options.bind ? ownCpus() : null
    this.processes = new Processes(text => {
      runtime.engine.observer?.({ type: 'note', at: runtime.now(), level: 'warning', text })
    })
    this.#context = {
      processes: this.processes,
      run: options.id,
      logs: options.logs,
      environment: () => this.#commandEnvironment(),
      cpusOf: task => this.#cpusOf(task),
      decode: (stored, slots) => runtime.decode(stored, slots),
      valueOf: (task, slot) => source(task.accesses[slot] as Access)?.value as Kept,
      step: null,
      began: task => parts.streaming.began(task),
    }
  }

  /** Programs may be wanted soon. While this process is small it can start others in no time. */
  warmUp(): Promise<void> | null {
    const starting = this.#start()
    // Files are read meanwhile.
    this.#parts.guard.start()
    return starting
  }

  /** Null when programs can be started at once. */
  #start(): Promise<void> | null {
    const starting = this.processes.start()
    if (starting && !this.#isCalm) {
      this.#isCalm = true
      // Afterwards: what Node brings along compiled is of no use to it once the setting has changed.
      if (!someDefinition(({ form }) => form === 'function')) void starting.then(calmCompiler)
    }
    return starting
  }

  launch(task: Task): void {
    const mustWait = this.#start() !== null || this.#inputAway(task) !== null
    if (mustWait || hasHooks(task) || this.#parts.streaming.concerns(task)) void this.#launchLater(task)
    else this.#launchNow(task)
  }

  #launchNow(task: Task): void {
    if (!isLive(task)) return this.#ends.lost(task, true, task.reason)
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
    for (let away = this.#inputAway(task); away; away = this.#inputAway(task)) {
      const kept = away
      await new Promise<void>(resolve => this.#parts.loans.whenBack(kept, resolve))
    }
    await this.#start()
    if (!isLive(task)) return this.#ends.lost(task, true, task.reason)
    this.#begins(task)
    const { streaming } = this.#parts
    try {
      const step = streaming.concerns(task) ? await streaming.prepare(task) : null
      if (step && !isLive(task)) return this.#ends.lost(task, true, task.reason)
      const outcome = await runCommand(task, step ? { ...this.#context, step } : this.#context)
      if (step) {
        await streaming.inputsComplete(task)
        if (await streaming.wasBereft(task, false)) return this.#bereft(task)
        if (!isLive(task)) return this.#ends.lost(task, true, task.reason)
      }
      this.#ended(task, outcome)
    } catch (error) {
      if (streaming.concerns(task) && (await streaming.wasBereft(task, true))) return this.#bereft(task)
      this.#spoiled(task, error)
    }
  }

  #begins(task: Task): void {
    this.#ends.limit(task)
    this.#parts.guard.start()
  }

  #ended(task: Task, outcome: CommandOutcome): void {
    if (outcome.cameBack) {
      return this.#ends.lost(task, false, WAITED_IN_VAIN)
    }
    const { usage, took, beganAt, kept } = outcome
    const startedAt = this.#runtime.timeOf(beganAt)
    const now = this.#runtime.now()
    if (task.lane >= 0) {
      this.#heard[task.lane] = now
      this.#endedAt[task.lane] = Math.min(this.#runtime.timeOf(beganAt + took), now)
    }
    this.#runtime.engine.started(task, Math.min(startedAt, now))
    const live = liveOf(task)
    live.usage = usage
    if (outcome.error) return this.#spoiled(task, outcome.error, outcome.printed)
    const ended = this.#runtime.timeOf(beganAt + took) - startedAt
    this.#ends.finish(task, { startedAt, took: ended, outputs: [outcome.exitCode], usage }, kept === true)
  }

  #spoiled(task: Task, error: unknown, printed = false): void {
    if (error instanceof SpawnerLost && isLive(task) && !this.#lostBefore.has(task)) {
      this.#lostBefore.add(task)
      return this.#ends.lost(task, false, error.shortMessage)
    }
    this.#ends.failed(task, error, printed)
  }

  /** What it read was void; it runs again when there is something to read. */
  #bereft(task: Task): void {
    this.#ends.lost(task, false, 'what it read came from an attempt that failed')
  }

  /** Commands queue on a lane; when one of them turns out to be long, those behind it go back to be started elsewhere. */
  takeBack({ lanes, freeLanes }: Node, now: number): void {
    const patience = freeLanes > 0 ? STUCK.free : STUCK.busy
    for (const lane of lanes) {
      const { queue, index } = lane
      const head = queue.peek()
      if (head?.kind.form !== 'command') continue
      const silence = now - (this.#heard[index] ?? 0)
      if (silence >= STUCK.busy) this.#tellBegun(head, this.#endedAt[index] ?? now)
      if (queue.size < 2 || silence < patience) continue
      lane.long = head
      for (const task of [...queue].slice(1)) {
        const { live } = jobOf(task)
        if (live?.held) this.#ends.lost(task, false, WAITED_IN_VAIN)
        else live?.process?.callBack?.()
      }
    }
  }

  /** One that queued tells with its end when it began. That it takes long is told before: it began after the one before it. */
  #tellBegun(task: Task, after: number): void {
    if (task.startedAt >= 0 || !jobOf(task).live?.process) return
    this.#runtime.engine.started(task, Math.max(after, task.begunAt))
  }

  /** A value that the command reads and that a thread has at the moment. */
  #inputAway(task: Task): Stored | null {
    if (jobOf(task).slots.length === 0) return null
    for (const access of task.accesses) {
      const kept = source(access)?.value
      if (kept instanceof Stored && this.#parts.loans.isAway(kept)) return kept
    }
    return null
  }

  /**
   * Ours, as it was after the last call: reading all of it takes as long as starting a program does here, and a
   * program that sets a variable and then calls a command sees it set there.
   */
  #commandEnvironment(): Readonly<Record<string, string>> {
    const { taskCount } = this.#runtime.engine
    if (this.#environment?.at !== taskCount) {
      const variables = { ...(process.env as Record<string, string>), MILLRACE_RUN: this.#options.id }
      this.#environment = { at: taskCount, variables }
    }
    return this.#environment.variables
  }

  /** Those near its device for an I/O task; else, with `bind`, the CPUs behind the lanes that the task holds. */
  #cpusOf(task: Task): readonly number[] | null {
    if (task.demand.io) return task.io?.device?.cpus ?? null
    const cpus = this.#cpus
    const lanes = this.#runtime.engine.nodes[task.node]?.lanes
    if (!cpus || !lanes) return null
    const held = lanes.filter(lane => lane.index === task.lane || lane.lentTo === task)
    return held.flatMap(lane => cpus[lane.index % cpus.length] ?? [])
  }
}

/** It has not been stopped meanwhile; who follows a stream is `blocked` all the time. */
export const isLive = (task: Task): boolean => task.state === 'running' || task.state === 'blocked'
