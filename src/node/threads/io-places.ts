import { FORMS } from '../../core/tasks/form.ts'
import type { Kind, Task } from '../../core/tasks/task.ts'
import { someDefinition } from '../../model/definition.ts'
import type { Definition } from '../../model/definition.ts'
import { attemptOf, jobOf } from '../job.ts'

/** Threads for I/O tasks that do not let go of theirs; more of them wait for each other. */
const MOST_ALONE = 8
/** A thread that is held up for so long is not just waiting for a CPU; milliseconds. */
const CERTAIN = 50
/** Tasks of a kind that has not been seen to run, on one thread: to start one costs more than to wait for a few of them. */
const TOGETHER = 4
/** After this many checks, tasks that have not begun are taken to be behind one that holds the thread. */
const CHECKS_UNTIL_HELD = 2

/**
 * Which thread carries an I/O task. Asynchronous ones share a single thread, by the hundred. A kind whose
 * tasks block their thread (writeFileSync, parsing) would hold up all of them: its tasks get other threads,
 * one at a time on each as long as there are enough. So do the first of a kind that does not look asynchronous.
 */
export class IoPlaces {
  readonly #first: number
  #next: number
  #common: number
  readonly #alone: number[] = []
  readonly #blocking = new Set<Kind>()
  /** How many tasks of a kind have kept their thread from others. */
  readonly #blocked = new Map<Kind, number>()
  readonly #tasks = new Map<number, Set<Task>>()
  /** Threads on which several tasks are tried out, and how often they have been looked at since they were ready. */
  readonly #trials = new Map<number, number>()
  /** Threads that get no new tasks, with their abandoned tasks. */
  readonly #retired = new Map<number, Set<number>>()

  /** `first`: the number of the first I/O thread. */
  constructor(first: number) {
    this.#first = first
    this.#next = first + 1
    this.#common = first
  }

  owns(thread: number): boolean {
    return thread >= this.#first
  }

  /** Threads that are worth starting before the first task needs them. */
  ahead(): number[] {
    const isIo = ({ form, options }: Definition): boolean =>
      FORMS[form].runsOn === 'threads' && options.io === true
    if (!someDefinition(isIo)) return []
    const isUnclear = someDefinition(one => isIo(one) && !isAsynchronous(one, 0))
    return isUnclear ? [this.#common, this.#freest()] : [this.#common]
  }

  place(task: Task): number {
    const thread = this.#threadFor(task)
    this.#on(thread).add(task)
    return thread
  }

  #threadFor(task: Task): number {
    if (this.#blocking.has(task.kind)) return this.#freest()
    return isUnseen(task) ? this.#trying(task.kind) : this.#common
  }

  /** Where others of the kind have been put to find out what they do, or a thread of its own. */
  #trying(kind: Kind): number {
    const isTried = (thread: number): boolean => {
      const tasks = this.#on(thread)
      return tasks.size > 0 && tasks.size < TOGETHER && [...tasks].every(one => one.kind === kind)
    }
    const together = this.#alone.find(isTried)
    if (together === undefined) return this.#freest()
    if (!this.#trials.has(together)) this.#trials.set(together, 0)
    return together
  }

  get hasTrials(): boolean {
    return this.#trials.size > 0
  }

  /** Of threads on which tasks are tried out together and that are ready, those that have had time; to be asked often. */
  held(isReady: (thread: number) => boolean): Task[] {
    const held: Task[] = []
    for (const [thread, looks] of this.#trials) {
      if (isReady(thread)) this.#trials.set(thread, looks + 1)
      if (looks < CHECKS_UNTIL_HELD) continue
      this.#trials.delete(thread)
      held.push(...this.#on(thread))
    }
    return held
  }

  /** Returns true when the thread is of no use any more. */
  leave(task: Task, thread: number): boolean {
    this.#tasks.get(thread)?.delete(task)
    return this.isDone(thread)
  }

  /** Returns the tasks of its kind that wait behind others and could be elsewhere. */
  blocked({ kind, implementation }: Task, milliseconds: number): Task[] {
    const count = (this.#blocked.get(kind) ?? 0) + 1
    this.#blocked.set(kind, count)
    const isUsual = count > 1 && count >= implementation.ended / 2
    if (milliseconds < CERTAIN && !isUsual) return []
    const threads = this.#blocking.has(kind) ? [this.#common] : [this.#common, ...this.#alone]
    this.blocks(kind)
    return threads.flatMap(thread => [...this.#on(thread)].filter(task => task.kind === kind))
  }

  /** From now on its tasks get threads of their own. */
  blocks(kind: Kind): void {
    this.#blocking.add(kind)
  }

  /** The task is abandoned, but cannot be stopped alone: the thread ends after its other tasks. */
  abandon(task: Task, thread: number): void {
    let abandoned = this.#retired.get(thread)
    if (!abandoned) this.#retired.set(thread, (abandoned = new Set()))
    abandoned.add(task.id)
    this.#tasks.get(thread)?.delete(task)
    if (thread === this.#common) this.#common = this.#next++
    const at = this.#alone.indexOf(thread)
    if (at >= 0) this.#alone.splice(at, 1)
  }

  isAbandoned(task: number, thread: number): boolean {
    return this.#retired.get(thread)?.has(task) ?? false
  }

  isDone(thread: number): boolean {
    return this.#retired.has(thread) && this.#tasks.get(thread)?.size === 0
  }

  /** The thread is gone, with all that was on it. */
  ended(thread: number): void {
    this.#retired.delete(thread)
    this.#tasks.delete(thread)
    this.#trials.delete(thread)
  }

  #freest(): number {
    let best = -1
    for (const thread of this.#alone) {
      if (best < 0 || this.#on(thread).size < this.#on(best).size) best = thread
    }
    if (best >= 0 && (this.#on(best).size === 0 || this.#alone.length >= MOST_ALONE)) return best
    this.#alone.push(this.#next)
    return this.#next++
  }

  #on(thread: number): Set<Task> {
    let tasks = this.#tasks.get(thread)
    if (!tasks) this.#tasks.set(thread, (tasks = new Set()))
    return tasks
  }
}

const isAsynchronous = ({ variants }: Definition, variant: number): boolean =>
  variants[variant]?.run.constructor.name === 'AsyncFunction'

/** Before the first of a kind has shown what it does, its form is all there is to go by. */
function isUnseen(task: Task): boolean {
  if (task.implementation.ended > 0) return false
  const variant = task.kind.implementations.indexOf(task.implementation)
  return !isAsynchronous(jobOf(task).definition, Math.max(0, variant))
}

/** An attempt can be given up where it is, unless it has memory that it might go on writing. */
export function mayAbandon(task: Task): boolean {
  const writesShared = task.accesses.some(({ write }) => write?.datum.inPlace)
  const attempt = attemptOf(task)
  return !attempt.isConsumed && !writesShared && attempt.owesNothing
}
