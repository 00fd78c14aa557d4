import { source } from '../../core/data/datum.ts'
import type { Access } from '../../core/data/datum.ts'
import { isShare, isShort, isTiny } from '../../core/schedule/machine.ts'
import type { Node } from '../../core/schedule/machine.ts'
import type { Task } from '../../core/tasks/task.ts'
import type { ReturnWhy } from '../../core/why.ts'
import type { Decoder } from '../../model/encoding/decode.ts'
import { Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import type { Endings } from '../endings.ts'
import type { TaskFiles } from '../files/task-files.ts'
import { storeOutputs } from '../files/outputs.ts'
import type { StepTimes } from '../steps.ts'
import { attemptOf, jobOf } from '../job.ts'
import type { NodeEvents, NodeHost } from '../node.ts'
import type { TaskForm } from '../task-form.ts'
import type { BufferOwnership } from './buffer-ownership.ts'
import type { Binding } from '../cpus/binding.ts'
import type { TaskGrant } from './grants.ts'
import { guiltyOf } from './guilty.ts'
import type { ThreadEnd } from './guilty.ts'
import type { ThreadMessage } from './lane-thread.ts'
import { STATUS } from './protocol.ts'
import { readRelease, readResult, readSteps } from './results.ts'
import type { Result } from './results.ts'
import { extendLists } from './sent-lists.ts'
import type { SentList } from './sent-lists.ts'
import { ResultPolling } from './result-polling.ts'
import { Threads } from './threads.ts'
import type { OpenThread } from './threads.ts'

export interface FunctionParts {
  readonly machine: Node
  readonly buffers: BufferOwnership
  readonly files: TaskFiles
  readonly host: NodeHost
  readonly events: NodeEvents
  readonly endings: Endings
  readonly open: OpenThread
  readonly binding: Binding
  /** Steps of attempts are measured. */
  readonly stepTimes: StepTimes
  findClass(module: string, name: string): Function | null
  /** The attempt has begun: its timeout counts from here. */
  limit(task: Task): void
}

/** Tasks that are functions: they run on threads. */
export class Functions implements TaskForm {
  readonly threads: Threads
  readonly #parts: FunctionParts
  readonly #polling = new ResultPolling(looksAgain => this.threads.drain(looksAgain))
  /** Values that tasks which have ended put into shared memory, and that are not here yet. */
  readonly #late = new Map<number, Stored[]>()
  #lookedAt = 0
  #willDrain = false
  /** The path of the add-on that binds threads: '' before it is looked for, null where it cannot be built. */
  #addon: string | null = ''

  constructor(parts: FunctionParts) {
    this.#parts = parts
    const { endings, events, host, machine } = parts
    this.threads = new Threads(machine.cpus, parts.buffers, parts.open, {
      result: (decoder, end, blobs, lent) => this.#result(decoder, end, blobs, lent),
      message: (message, thread) => this.#message(message, thread),
      findClass: (module, name) => parts.findClass(module, name),
      isAlone: task => this.#isAlone(task),
      isBeside: task => this.#isBeside(task),
      grant: task => this.#grant(task),
      stepTimes: parts.stepTimes,
      staysFrom: task => host.staysFrom(task),
      sparesOthers: task => endings.sparesOthers(task),
      lost: (task, guilty, reason) => endings.lose(task, guilty, reason),
      // Having been woken for one thread, we look at all of them.
      announced: () => this.threads.drain(this.#polling.isOn),
      refused: (task, error) => endings.fail(task, error, false),
      began: task => {
        if (task.timed) parts.limit(task)
        if (task.state === 'running' && isAtWork(task, machine)) events.began(task, host.now())
      },
      died: end => this.#died(end),
    })
  }

  warmUp(): null {
    this.threads.warmUp()
    return null
  }

  prepare(task: Task): Promise<void> | null {
    const preparing = this.#parts.files.prepare(task)
    const { binding } = this.#parts
    const mustBuild = this.#addon === '' && binding.concerns(task) && binding.cpusOf(task) !== null
    return mustBuild ? this.#buildAddon().then(() => preparing ?? undefined) : preparing
  }

  /** Threads are bound by an add-on in C; where there is no compiler, they run where the system puts them. */
  async #buildAddon(): Promise<void> {
    const { addonPath, builtAddon } = await import('../../native/addon.ts')
    try {
      this.#addon = builtAddon() ?? (await addonPath())
    } catch (error) {
      this.#addon = null
      const reason = (error instanceof Error ? error.message : String(error)).split('\n')[0]
      this.#parts.events.note('info', `functions are not bound to their CPUs: ${reason}`)
    }
  }

  #grant(task: Task): TaskGrant | null {
    const { cpus, gpus } = task.attemptDemand
    const { binding } = this.#parts
    if ((cpus === 1 || cpus === 0) && gpus === 0 && !binding.concerns(task)) return null
    const bound = this.#addon ? binding.cpusOf(task) : null
    return { cpus, bound, gpus: binding.gpusOf(task), addon: this.#addon ?? '' }
  }

  beginsAtOnce(task: Task): boolean {
    return this.threads.isReady(task.lane)
  }

  mustWait(task: Task, head: Task | undefined): boolean {
    return this.threads.mustWait(task, head)
  }

  launch(task: Task, isLate: boolean): void {
    if (task.queueable && this.#isWorthPolling(task)) this.#polling.extend()
    this.threads.send(task)
    if (isLate) this.threads.announce()
  }

  /** Where all CPUs are at work, polling for results takes time from the tasks: unless these take next to none, sleep. */
  #isWorthPolling({ implementation: { estimate } }: Task): boolean {
    return isTiny(estimate) || (isShort(estimate, 'function') && this.#parts.machine.freeLanes > 0)
  }

  stop(task: Task): void {
    // A blocked task has no place any more. The second task on a lane may already run: the end of the first may not have arrived.
    this.threads.stop(task, task.reason, !task.demand.io && task.node < 0)
  }

  stopOverdue(task: Task, reason: string): void {
    // A task that only waits, and will not be retried, is left where it is: other tasks are in its thread.
    this.threads.stop(task, reason, task.state === 'blocked' && task.attempt > task.retries)
  }

  recall(task: Task, why: ReturnWhy): void {
    const { state } = attemptOf(task)
    if (state === 'held' || (state === 'sent' && this.threads.revoke(task))) {
      return this.#parts.endings.giveBack(task, why)
    }
    if (state !== 'sent') return
    this.threads.askBack(task, isBack => {
      if (isBack) this.#parts.endings.giveBack(task, why)
    })
  }

  hurry(task: Task): void {
    if (this.threads.hurry(task)) this.#drainSoon()
  }

  /** Drains unannounced results on the next tick, never re-entrantly. */
  #drainSoon(): void {
    if (this.#willDrain || this.#polling.isOn) return
    this.#willDrain = true
    setImmediate(() => {
      this.#willDrain = false
      this.threads.drain()
    })
  }

  collect(task: Task, outputs: readonly (Kept | undefined)[]): void {
    storeOutputs(task, outputs, jobOf(task).definition.returns || 1)
  }

  left(task: Task): void {
    const { thread, lists } = attemptOf(task)
    if (task.demand.io || lists || thread >= this.#parts.machine.cpus) this.threads.left(task)
  }

  /** No CPU waits for results that are there. */
  flush(): void {
    if (this.#parts.machine.freeLanes > 0 && this.threads.hurryAll()) this.#drainSoon()
    this.threads.announce()
  }

  takeResults(): boolean {
    if (!this.threads.hurryAll()) return false
    this.threads.drain(this.#polling.isOn)
    return true
  }

  hasBegun(task: Task): boolean {
    return this.threads.hasBegun(task)
  }

  drain(): void {
    this.threads.drain()
  }

  tick(): boolean {
    this.threads.drain()
    return this.threads.freeHeld()
  }

  end(): Promise<void> {
    return this.threads.end()
  }

  /** Threads run to the very end of the process. */
  endNow(): void {}

  /** No other task can end the thread under it: a task that waits for others keeps its thread, and can be stopped there. */
  #isAlone({ lane, demand }: Task): boolean {
    if (demand.io) return false
    for (const task of this.#parts.endings.running) {
      if (task.lane === lane && task.state === 'blocked') return false
    }
    return true
  }

  /** Another task has a share of the same CPU, and runs in its thread. */
  #isBeside(task: Task): boolean {
    if (!isShare(task.attemptDemand.cpus)) return false
    for (const other of this.#parts.machine.lanes[task.lane]?.queue ?? []) {
      if (other !== task && jobOf(other).attempt?.thread === task.lane) return true
    }
    return false
  }

  // --- what threads say ---

  #result(
    decoder: Decoder,
    end: number,
    blobs: readonly ArrayBufferLike[],
    lent: readonly ArrayBuffer[],
  ): void {
    const { endings, events, host } = this.#parts
    const task = endings.running.get(decoder.varint())
    if (!task) return
    if (decoder.peek() === STATUS.released) {
      decoder.byte()
      const { startedAt, value } = readRelease(decoder, blobs)
      if (value && (task.state === 'running' || task.state === 'blocked')) {
        events.released(task, startedAt, value)
      }
      return
    }
    this.#polling.found()
    const attempt = attemptOf(task)
    if (lent.length > 0) this.#givenBack(task, lent)
    if (attempt.memory && attempt.memory.published.length > 0) {
      this.#expectPublished(task.id, attempt.memory.published)
    }
    const result = readResult(decoder, end, blobs)
    if (this.#parts.stepTimes !== 'off') result.inThread = readSteps(decoder, end)
    if (attempt.lists) this.#extendLists(task, attempt.lists, result)
    // Results come in bunches, and most of a bunch were there when the clock was looked at for the first of them.
    if (result.startedAt + result.took > this.#lookedAt) this.#lookedAt = host.now()
    const now = this.#lookedAt
    events.began(task, Math.min(result.startedAt, now))
    if (task.state === 'stopping' || attempt.isOverdue) return endings.lose(task, true, task.reason)
    if (result.status === STATUS.failed) endings.fail(task, result.error, result.printed, result.outputs)
    else endings.finish(task, result, now)
  }

  #extendLists(task: Task, lists: readonly SentList[], { status, outputs }: Result): void {
    const isOk = status === STATUS.ok
    if (isOk) this.threads.hasRead(lists)
    extendLists(outputs, isOk ? jobOf(task).definition.returns || 1 : 0, lists)
  }

  #message(message: ThreadMessage, thread: number): void {
    const task = this.#parts.endings.running.get('task' in message ? message.task : -1)
    switch (message.type) {
      case 'published':
        return this.#published(message.task, message.slot, message.blobs)
      case 'guarded': {
        const { target, backup } = message
        if (task) (attemptOf(task).withMemory().backups ??= []).push({ target, backup })
        return
      }
      case 'blocking':
        if (task?.demand.io) this.threads.blocked(task, message.milliseconds)
        return
      case 'given-back':
        return this.#givenBack(task, message.lent)
      default:
        if (!task) return
        // A task that was asked to stop gets time to end by itself, and waits instead.
        if (message.type === 'ask' && task.state === 'stopping' && !attemptOf(task).isBusy) {
          this.threads.stop(task, task.reason, true)
        } else this.#parts.events.said(task, message, thread)
    }
  }

  #published(id: number, slot: number, blobs: SharedArrayBuffer[]): void {
    const late = this.#late.get(id)
    const task = this.#parts.endings.running.get(id)
    const version = task ? source(task.accesses[slot] as Access) : null
    const stored = late ? late.shift() : version?.value
    if (late?.length === 0) this.#late.delete(id)
    if (stored instanceof Stored) this.#parts.buffers.back(stored, blobs)
    this.#parts.events.changed()
  }

  /** A result goes through the ring, and may be here before the message with memory that was published. */
  #expectPublished(id: number, published: readonly Stored[]): void {
    const late = published.filter(stored => this.#parts.buffers.isAway(stored))
    if (late.length > 0) this.#late.set(id, late)
  }

  #givenBack(task: Task | undefined, lent: readonly ArrayBuffer[]): void {
    const memory = task && attemptOf(task).memory
    if (!memory) return
    const returned: ArrayBufferLike[] = [...lent]
    for (const stored of memory.lent) this.#parts.buffers.back(stored, returned)
    memory.lent = []
  }

  /** The node was lost: its tasks begin again elsewhere, and it costs them nothing. */
  #cutOff(tasks: readonly Task[], reason: string): void {
    const { endings, events, host, machine } = this.#parts
    for (const task of tasks) {
      const hasBegun = task.startedAt >= 0 || isAtWork(task, machine)
      const isSuspect = hasBegun && host.afterLoss(task, 'node', null) !== 'again'
      endings.lose(task, isSuspect, isSuspect ? `the third in turn: ${reason}` : reason)
    }
    events.changed()
  }

  #died(end: ThreadEnd): void {
    const { endings, events, host } = this.#parts
    const { thread, reason, isHopeless } = end
    const tasks = [...endings.running].filter(task => {
      const attempt = attemptOf(task)
      return attempt.thread === thread && attempt.isSent && !attempt.program
    })
    // Not in the order of starting: files may have had to be prepared first.
    tasks.sort((a, b) => attemptOf(a).order - attemptOf(b).order)
    if (end.isCutOff) return this.#cutOff(tasks, reason)
    const guilty = guiltyOf(tasks, end)
    events.died(thread, reason)
    for (const task of tasks) {
      if (isHopeless) host.lastAttempt(task)
      const next = host.afterLoss(task, 'thread', guilty)
      if (next === 'called') {
        const why = `${guilty?.name}, which it called, ended its thread again and again: ${reason}`
        endings.lose(task, true, why)
      } else if (isHopeless) endings.lose(task, true, `no thread can begin: ${reason}`)
      else endings.lose(task, next !== 'again', reason)
    }
    events.changed()
  }
}

/** It is not one that waits on its lane. */
function isAtWork(task: Task, { lanes }: Node): boolean {
  const lane = lanes[task.lane]
  return task.demand.io || (lane?.shared ?? 0) > 0 || lane?.queue.peek() === task
}
