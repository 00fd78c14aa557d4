import { MillraceError } from '../../core/errors.ts'
import type { Encoder } from '../../model/encoding/encode.ts'
import type { ClassNames } from '../../model/encoding/instance-class.ts'
import { Future } from '../../model/future.ts'
import { changed } from './early-wire.ts'
import { Outlet } from './outlet.ts'
import type { Steps } from './outlet.ts'
import type { FromThread } from './protocol.ts'
import { ReleaseWriter } from './release-writer.ts'
import type { ReceivedTask } from './task-reader.ts'

/** A task that runs here, as far as early release is concerned. */
export interface Releasing extends ReceivedTask {
  startedAt: number
}

export interface EarlyPorts {
  /** Sends the record in the encoder. */
  send(encoder: Encoder, task: Releasing): void
  post(message: FromThread): void
  /** The number under which the coordinator knows what a called task will make. */
  numberOf(future: Future<unknown>): number | null
  waitForRoom(task: Releasing, items: number, bytes: number): Promise<unknown>
  /** What the run's clock is ahead of this thread's. */
  shift: number
}

/** What tasks on this thread release before they end. */
export class EarlyOutputs {
  readonly #writer: ReleaseWriter
  readonly #ports: EarlyPorts

  constructor(classes: ClassNames, ports: EarlyPorts) {
    this.#writer = new ReleaseWriter(classes)
    this.#ports = ports
  }

  ready(task: Releasing | null, index: number, value: unknown): void {
    if (!task) throw new MillraceError('MR_RELEASE', `ready(${index}, …) was called outside a task`)
    const { name, returns } = task.definition
    const refuse = (why: string, hint?: string): never => {
      throw new MillraceError('MR_RELEASE', `ready(${index}, …) in ${name}: ${why}`, hint ? { hint } : {})
    }
    if (task.ended) refuse('the task has ended')
    if (task.early?.type === 'generator') refuse('a generator releases by `yield`', 'Yield the value.')
    if (returns === 0) refuse('the task has no `returns`', 'Give it returns: n, with n values to return.')
    if (!Number.isInteger(index) || index < 0 || index >= returns) {
      refuse(`values are numbered from 0 to ${returns - 1}`)
    }
    if (task.released?.has(index)) refuse('this value was released before')
    this.#release(task, index, value)
    ;(task.released ??= new Set()).add(index)
  }

  #release(task: Releasing, index: number, value: unknown): void {
    const check = task.early?.type === 'ready' ? task.early.checks.get(index) : undefined
    if (value instanceof Future) {
      if (check === undefined) this.#link(task, index, value)
      return
    }
    this.#write(task, index, value, 0)
    if (check === undefined) this.#ports.send(this.#writer.encoder, task)
    else if (check !== this.#writer.check) throw changed(`value ${index} is different now`)
  }

  /** Futures among the returned values are released as the tasks that make them end, not with the last of them. */
  linkReturned(task: Releasing, value: unknown): void {
    if (task.definition.returns === 0 || !Array.isArray(value)) return
    for (let i = 0; i < value.length && i < task.definition.returns; i++) {
      if (value[i] instanceof Future && !task.released?.has(i)) this.ready(task, i, value[i])
    }
  }

  /** A value that an earlier attempt released comes with the end of this one: it must be the same. */
  expectSame(task: ReceivedTask, index: number, value: unknown): void {
    const check = task.early?.type === 'ready' ? task.early.checks.get(index) : undefined
    if (check === undefined) return
    this.#writer.write(task.id, 0, 0, index, value, 0)
    if (check !== this.#writer.check) throw changed(`value ${index} is different now`)
  }

  async runGenerator(task: Releasing, generator: Steps): Promise<undefined> {
    const { early } = task
    if (early?.type !== 'generator') throw new Error('a generator without a channel')
    const outlet = new Outlet(
      early,
      (index, value, check, isKnown) => {
        if (value instanceof Future) {
          // What it will be is not known: only that there was one.
          if (!isKnown) this.#link(task, index, value)
          return { check, size: 0 }
        }
        this.#write(task, index, value, check)
        if (!isKnown) this.#ports.send(this.#writer.encoder, task)
        return { check: this.#writer.check, size: this.#writer.size }
      },
      (items, bytes) => this.#ports.waitForRoom(task, items, bytes),
    )
    return outlet.run(generator)
  }

  #write(task: Releasing, index: number, value: unknown, check: number): void {
    const { shift } = this.#ports
    try {
      this.#writer.write(task.id, task.startedAt + shift, performance.now() + shift, index, value, check)
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      throw new MillraceError(
        error.code,
        `value ${index} that ${task.definition.name} released: ${error.shortMessage}`,
        { hint: error.hint },
      )
    }
  }

  #link(task: Releasing, index: number, future: Future<unknown>): void {
    const id = this.#ports.numberOf(future)
    if (id === null) {
      throw new MillraceError(
        'MR_RELEASE',
        `value ${index} is a future that ${task.definition.name} did not get from a task it called`,
      )
    }
    this.#ports.post({ type: 'link', task: task.id, index, id })
  }
}
