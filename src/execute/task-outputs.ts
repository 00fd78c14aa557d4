import { MillraceError } from '../core/errors.ts'
import type { ClassNames, EncodeHooks, Encoder } from '../model/encode.ts'
import { shareCopy } from '../model/stored.ts'
import { STATUS } from './protocol.ts'
import { restore } from './task-reader.ts'
import type { ReceivedTask } from './task-reader.ts'

/** Writes result records; see protocol.ts for their layout. */
export class OutputWriter {
  readonly #encoder: Encoder
  readonly #hooks: EncodeHooks
  #lent: readonly ArrayBufferLike[] = []
  /** Compares a value with what an earlier attempt released in its place. */
  expectSame: (task: ReceivedTask, index: number, value: unknown) => void = () => undefined

  constructor(encoder: Encoder, classes: ClassNames) {
    this.#encoder = encoder
    this.#hooks = { classes, blob: view => this.#blob(view) }
  }

  /** Returns the buffers that have to go back beside the record. */
  write(
    task: ReceivedTask,
    status: number,
    value: unknown,
    startedAt: number,
    took: number,
    printed: boolean,
  ): ArrayBuffer[] {
    this.#lent = task.lent
    if (status === STATUS.failed) {
      restore(task)
      this.writeError(task.id, value, startedAt, took, printed)
      if (task.partial) this.#tryPartial(task)
      else this.#encoder.varint(0)
      return task.lent
    }
    try {
      this.#head(task.id, STATUS.ok, startedAt, took, printed)
      this.#returns(task, value)
      this.#written(task)
    } catch (error) {
      restore(task)
      this.writeError(task.id, nameOutput(task, error), startedAt, took, printed)
      this.#encoder.varint(0)
    }
    return task.lent
  }

  writeError(id: number, error: unknown, startedAt: number, took: number, printed: boolean): void {
    this.#head(id, STATUS.failed, startedAt, took, printed)
    this.#encoder.value(error, { ...this.#hooks, lenient: true })
  }

  #head(id: number, status: number, startedAt: number, took: number, printed: boolean): void {
    const encoder = this.#encoder
    encoder.reset()
    encoder.varint(id)
    encoder.byte(status)
    encoder.byte(printed ? 1 : 0)
    encoder.double(startedAt)
    encoder.double(took)
  }

  #returns(task: ReceivedTask, value: unknown): void {
    const { returns } = task.definition
    const encoder = this.#encoder
    if (returns === 0) {
      encoder.varint(1 + task.written.length)
      return this.#value(task.early ? undefined : value)
    }
    if (value === undefined && task.released?.size === returns) return this.#allReleased(task)
    if (!Array.isArray(value) || value.length !== returns) {
      const got = Array.isArray(value) ? `an array of ${value.length}` : typeof value
      throw new MillraceError(
        'MR_OPTION',
        `${task.definition.name} has returns: ${returns}, but returned ${got}`,
        {
          hint: `Return an array of ${returns} values.`,
        },
      )
    }
    encoder.varint(returns + task.written.length)
    for (let i = 0; i < returns; i++) {
      if (task.released?.has(i)) encoder.varint(0)
      else {
        if (task.early) this.expectSame(task, i, value[i])
        this.#value(value[i])
      }
    }
  }

  #allReleased({ definition: { returns }, written }: ReceivedTask): void {
    this.#encoder.varint(returns + written.length)
    for (let i = 0; i < returns; i++) this.#encoder.varint(0)
  }

  #written(task: ReceivedTask): void {
    for (const { value, inPlace } of task.written) {
      if (inPlace) this.#encoder.varint(0)
      else this.#value(value)
    }
  }

  /** An ignored failure keeps what was written so far, as far as it can be sent. */
  #tryPartial(task: ReceivedTask): void {
    const encoder = this.#encoder
    const mark = encoder.length
    try {
      encoder.varint(task.written.length)
      this.#written(task)
    } catch {
      encoder.length = mark
      encoder.varint(0)
    }
  }

  /** The value behind its length plus one, and the number of its buffers after it. */
  #value(value: unknown): void {
    const encoder = this.#encoder
    encoder.reserve(8)
    const mark = encoder.length
    encoder.length += 5
    encoder.value(value, this.#hooks)
    writeLength(encoder.bytes, mark, encoder.length - mark - 5 + 1)
    encoder.varint(encoder.blobs.length - encoder.base)
  }

  #blob(view: ArrayBufferView): { buffer: ArrayBufferLike; offset: number } {
    const { buffer, byteOffset, byteLength } = view
    if (buffer instanceof SharedArrayBuffer) return { buffer, offset: byteOffset }
    const { blobs, base } = this.#encoder
    const whole = byteOffset === 0 && byteLength === buffer.byteLength
    // A buffer can be given away once: not when it is lent, and not when an earlier value has it.
    const free = !this.#lent.includes(buffer) && !blobs.slice(0, base).includes(buffer)
    if (whole && free) return { buffer, offset: 0 }
    return { buffer: shareCopy(view), offset: 0 }
  }
}

/** A length in five bytes that all say "more follows" but the last, so that it reads as any other number. */
export function writeLength(bytes: Uint8Array, at: number, length: number): void {
  let rest = length
  for (let i = 0; i < 4; i++) {
    bytes[at + i] = (rest % 0x80) | 0x80
    rest = Math.floor(rest / 0x80)
  }
  bytes[at + 4] = rest
}

function nameOutput(task: ReceivedTask, error: unknown): unknown {
  if (!(error instanceof MillraceError) || error.code !== 'MR_NOT_CLONEABLE') return error
  return new MillraceError(error.code, `result of ${task.definition.name}: ${error.shortMessage}`, {
    hint: error.hint,
  })
}
