import { MillraceError } from '../core/errors.ts'
import type { TaskUsage } from '../core/events.ts'
import type { Task } from '../core/tasks/task.ts'
import { lost, returnText } from '../core/why.ts'
import type { ReturnWhy } from '../core/why.ts'
import { ById } from '../general/by-id.ts'
import type { ClassNames } from '../model/encoding/instance-class.ts'
import type { Kept } from '../model/encoding/stored.ts'
import type { AttemptMemory } from './attempt.ts'
import { factsOf, threadDied, timeoutError } from './failure-facts.ts'
import type { ApartFiles } from './files/apart-files.ts'
import type { NodeFiles } from './files/node-files.ts'
import { defaultFiles, storeIgnored } from './files/outputs.ts'
import { attemptOf, endAttempt, jobOf } from './job.ts'
import { isStep } from './files/streaming.ts'
import { excerptOf, logPath } from './logs.ts'
import type { LogExcerpt } from './logs.ts'
import type { NodeEvents, NodeHost } from './node.ts'
import { commandLine } from './processes/command-line.ts'
import { isMachineLost } from './processes/command-process.ts'
import type { TaskForm } from './task-form.ts'
import { hasSteps, stepsOf } from './steps.ts'
import type { StepTimes } from './steps.ts'
import type { BufferOwnership } from './threads/buffer-ownership.ts'
import type { ThreadSteps } from './threads/results.ts'
import { clearTimeoutOf } from './timeouts.ts'

/** An attempt that ended well, with the values that it made. */
export interface GoodEnd {
  readonly startedAt: number
  readonly took: number
  readonly outputs: readonly (Kept | undefined)[]
  readonly usage?: TaskUsage | null
  /** Its steps, as far as its thread has measured them. */
  readonly inThread?: ThreadSteps | null
  /** Nothing was written, because the files in place are right. */
  readonly kept?: boolean | undefined
}

/** Files that take longer to come from their node do not hold its CPU; milliseconds. */
const SHORT_WAY = 5

export interface EndingParts {
  readonly files: NodeFiles
  /** Where the node does not see our folders. */
  readonly apart: ApartFiles | null
  readonly buffers: BufferOwnership
  readonly classes: ClassNames
  /** The folder of what tasks print. */
  readonly logs: string | null
  readonly host: NodeHost
  /** Steps of attempts are measured. */
  readonly stepTimes: StepTimes
  readonly events: NodeEvents
  formOf(task: Task): TaskForm
}

/** The attempts on a node, and what is done when one of them ends: well, with a failure, or without fault. */
export class Endings {
  readonly running = new ById<Task>()
  readonly #parts: EndingParts

  constructor(parts: EndingParts) {
    this.#parts = parts
  }

  finish(task: Task, end: GoodEnd, now: number): void {
    if (attemptOf(task).paths) void this.#settle(task, end, now)
    else this.#finishNow(task, end, now, now)
  }

  async #settle(task: Task, end: GoodEnd, arrivedAt: number): Promise<void> {
    const { devices, tasks } = this.#parts.files
    attemptOf(task).move('settling', task)
    try {
      if (!end.kept && this.#parts.apart) await this.#bring(task, this.#parts.apart)
      if (task.io && !end.kept) await devices.measure(task)
      if (end.kept) await tasks.drop(task)
      else {
        await tasks.commit(task)
        const held = attemptOf(task).stayed ? null : this.#parts.host.filesMade(task)
        if (held) await held
      }
    } catch (error) {
      if (isMachineLost(error)) return this.lose(task, false, error.shortMessage)
      return this.fail(task, error, false)
    }
    this.#finishNow(task, end, arrivedAt, this.#parts.host.now())
    if (task.io) devices.settle(task)
  }

  /** Its lane is free while what it made is on its way. */
  async #bring(task: Task, apart: ApartFiles): Promise<void> {
    const timer = setTimeout(() => {
      if (task.state === 'running') this.#parts.events.travels(task)
    }, SHORT_WAY)
    try {
      await apart.take(task)
    } finally {
      clearTimeout(timer)
    }
  }

  #finishNow(task: Task, end: GoodEnd, arrivedAt: number, now: number): void {
    const isMeasured = this.#parts.stepTimes !== 'off' && hasSteps(task, end)
    const steps = isMeasured ? stepsOf(attemptOf(task), end, arrivedAt, now) : null
    this.#parts.formOf(task).collect(task, end.outputs)
    this.#forget(task)
    const { startedAt, took, usage, kept } = end
    this.#parts.events.finished(task, steps ? { startedAt, took, usage, steps, kept } : end, now)
  }

  /** A task that failed because of its device is not to blame: it starts again on another one. */
  fail(task: Task, error: unknown, printed: boolean, partial: readonly (Kept | undefined)[] = []): void {
    const attempt = attemptOf(task)
    attempt.move('failing', task)
    if (!task.io?.device || task.state === 'stopping' || attempt.isOverdue) {
      return this.#failNow(task, error, printed, partial)
    }
    void this.#parts.files.devices.trouble(task, error).then(trouble => {
      if (trouble === null) this.#failNow(task, error, printed, partial)
      else this.lose(task, false, trouble)
    })
  }

  #failNow(task: Task, error: unknown, printed: boolean, partial: readonly (Kept | undefined)[]): void {
    const { paths, program } = attemptOf(task)
    const { host, classes } = this.#parts
    if (task.state === 'stopping' || (!printed && !paths && !program?.line)) {
      if (host.afterFailure(task) === 'ignore') storeIgnored(task, partial, classes)
      this.#settleFailure(task, error, undefined, undefined)
    } else void this.#failLater(task, error, printed, partial)
  }

  async #failLater(task: Task, error: unknown, printed: boolean, partial: readonly (Kept | undefined)[]) {
    const { host, classes, files, logs, apart } = this.#parts
    const log = printed ? logPath(logs, task) : undefined
    if (log) await apart?.folder.fetch(log).catch(() => undefined)
    const tail = log ? await excerptOf(log) : undefined
    if (host.afterFailure(task) === 'ignore') {
      storeIgnored(task, partial, classes)
      await apart?.take(task).catch(() => undefined)
      await defaultFiles(task, files.store).catch(() => undefined)
      await files.tasks.commit(task, true).catch(() => undefined)
      await host.filesMade(task)
    } else {
      apart?.drop(task)
      await files.tasks.drop(task)
    }
    this.#settleFailure(task, error, tail === undefined ? undefined : log, tail)
  }

  #settleFailure(task: Task, error: unknown, log: string | undefined, tail: LogExcerpt | undefined): void {
    const { line = null, usage = null } = attemptOf(task).program ?? {}
    const facts = factsOf(error, line ? commandLine(line.words, task) : undefined, line?.cwd)
    if (isStep(task)) facts.needsRun = true
    if (tail?.text) Object.assign(facts, { tail: tail.text, ...(tail.cut && { tailCut: tail.cut }) })
    this.#parts.files.streaming.spoil(task)
    this.#forget(task)
    this.#parts.events.failed(task, { error, facts, log, usage })
  }

  /** It was taken back before it began, and is ready as before. */
  giveBack(task: Task, why: ReturnWhy): void {
    // What was made ready for one with files goes first.
    if (attemptOf(task).paths) return this.lose(task, false, returnText(why), why)
    this.#forget(task)
    this.#parts.events.returned(task, why)
  }

  /** The attempt is gone. `guilty`: because of the task itself. */
  lose(task: Task, guilty: boolean, reason: string, why: ReturnWhy = lost(reason)): void {
    const attempt = attemptOf(task)
    const { events } = this.#parts
    if (attempt.memory) this.#restoreMemory(attempt.memory)
    events.givenUp(task)
    // What it had written is void. Where it never will be, its readers are cancelled.
    if (task.state !== 'stopping') this.#parts.files.streaming.spoil(task)
    // It keeps its place on the lane until its files are gone, and is neither sent from there nor given back once more.
    if (task.state === 'stopping') {
      attempt.move('stopping', task)
      void this.#dropFiles(task, () => events.stopped(task))
    } else if (guilty) {
      this.fail(task, attempt.isOverdue ? timeoutError(task) : threadDied(reason), true)
    } else if (attempt.isConsumed) {
      const text = `its input was in a thread that ended: ${reason}`
      this.fail(task, new MillraceError('MR_DATA_LOST', text), false)
    } else {
      attempt.move('returning', task)
      void this.#dropFiles(task, () => events.returned(task, why))
    }
  }

  /** A task without an attempt is one whose end the core knows: `tell` follows at once. */
  async #dropFiles(task: Task, tell: () => void): Promise<void> {
    this.#parts.apart?.drop(task)
    await this.#parts.files.tasks.drop(task)
    this.#forget(task)
    tell()
  }

  /** Lent buffers are gone with the attempt, and what it wrote in place is as it was. */
  #restoreMemory({ lent, published, backups }: AttemptMemory): void {
    const { buffers } = this.#parts
    for (const stored of [...lent, ...published]) if (buffers.isAway(stored)) buffers.lost(stored)
    for (const { target, backup } of backups ?? []) target.set(backup)
  }

  #forget(task: Task): void {
    const attempt = attemptOf(task)
    this.running.delete(task.id)
    this.#parts.apart?.letGo(task)
    this.#parts.formOf(task).left(task)
    if (attempt.timeout) clearTimeoutOf(attempt)
    if (attempt.paths) void this.#parts.files.store.unuse(attempt.paths).catch(() => undefined)
    endAttempt(task)
  }

  /** Others in the same thread have taken values of streams, or memory, which do not exist anywhere else. */
  sparesOthers(task: Task): boolean {
    const { thread } = attemptOf(task)
    for (const other of this.running) {
      const attempt = other === task ? null : jobOf(other).attempt
      if (attempt?.isConsumed && attempt.thread === thread && other.state !== 'stopping') return true
    }
    return false
  }
}
