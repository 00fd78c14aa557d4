import { MillraceError } from '../../core/errors.ts'
import { Encoder } from '../../model/encoding/encode.ts'
import type { EncodeHooks } from '../../model/encoding/encode.ts'
import type { ClassNames } from '../../model/encoding/instance-class.ts'
import type { Graph } from '../../model/encoding/identity.ts'
import { isReaders, isShared } from '../../model/encoding/memory.ts'
import { shareCopy } from '../../model/encoding/stored.ts'
import { hasManyCauses, plainError } from '../../general/thrown.ts'
import { TAG } from '../../model/encoding/tags.ts'
import { Elements } from './elements.ts'
import { addedTo, widthOf } from './flat-lists.ts'
import type { FlatBase } from './flat-lists.ts'
import { keepAdded } from './kept-lists.ts'
import type { EncodedBase } from './kept-lists.ts'
import { STATUS } from './protocol.ts'
import { restore } from './task-reader.ts'
import type { Collection, ReceivedTask } from './task-reader.ts'

/** Writes result records; see protocol.ts for their layout. */
export class OutputWriter {
  readonly #encoder: Encoder
  readonly #hooks: EncodeHooks
  #lent: readonly ArrayBufferLike[] = []
  /** Those of the collections that the task was given to write. */
  #elements: Elements[] | null = null
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
      this.#takeElements(task)
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
    const head = (): void => this.#head(id, STATUS.failed, startedAt, took, printed)
    const hooks = { ...this.#hooks, lenient: true }
    head()
    try {
      this.#encoder.value(hasManyCauses(error) ? plainError(error) : error, hooks)
    } catch {
      // Its getters throw, or it is too deep.
      head()
      this.#encoder.value(plainError(error), hooks)
    }
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
      this.#value(task.early ? undefined : value)
      return
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
    for (const slot of task.written) {
      const { value, inPlace, graph, base } = slot
      if (inPlace) this.#encoder.varint(0)
      else {
        const added = base && 'elements' in base && graph ? addedTo(value, base, graph) : null
        let objects: readonly unknown[] | null = added
        if (base && added) this.#more(added, base)
        else objects = this.#value(value, graph, base && 'body' in base ? base : null)
        for (const elements of this.#elements ?? []) {
          if (!elements.areOf(slot, objects ?? [])) throw changedElements(task)
        }
      }
    }
  }

  #takeElements(task: ReceivedTask): void {
    this.#elements = task.collections?.map(collection => this.#elementsOf(task, collection)) ?? null
  }

  /** Its elements go back each by itself: a change of what the collection holds would be lost. */
  #elementsOf(task: ReceivedTask, collection: Collection): Elements {
    const { value, bytes, slots, objects } = collection
    const numbers = new Map<unknown, number>()
    slots.forEach((one, i) => {
      if (!numbers.has(one)) numbers.set(one, i)
    })
    const members = new Set<object>()
    const slot = (inner: object): number => {
      const number = inner === value ? undefined : numbers.get(inner)
      if (number !== undefined) members.add(inner)
      return number ?? -1
    }
    const encoder = new Encoder()
    const now = encoder.whole(value, { ...this.#hooks, slot }, null)
    const isSame = Buffer.compare(bytes, encoder.copy()) === 0 && now.every((one, i) => one === objects[i])
    if (!isSame) throw changedElements(task)
    return new Elements(collection, members, task.written)
  }

  /** An ignored failure keeps what was written so far, as far as it can be sent. */
  #tryPartial(task: ReceivedTask): void {
    const encoder = this.#encoder
    const mark = encoder.length
    try {
      this.#takeElements(task)
      encoder.varint(task.written.length)
      this.#written(task)
    } catch {
      encoder.length = mark
      encoder.varint(0)
    }
  }

  /** The value behind its length plus one, and the number of its buffers after it. */
  #value(value: unknown, known: Graph | null = null, base: EncodedBase | null = null): object[] {
    const encoder = this.#encoder
    encoder.reserve(8)
    const mark = encoder.length
    encoder.length += 5
    let objects: object[] = []
    if (known) objects = encoder.whole(value, this.#hooks, known)
    else encoder.value(value, this.#hooks)
    if (base && encoder.blobs.length === encoder.base) keepAdded(encoder, mark + 5, base)
    writeLength(encoder.bytes, mark, encoder.length - mark - 5 + 1)
    encoder.varint(encoder.blobs.length - encoder.base)
    return objects
  }

  /** What was added to a list, in the place of the list. */
  #more(added: readonly unknown[], { tag, count }: FlatBase | EncodedBase): void {
    const encoder = this.#encoder
    encoder.reserve(8)
    const mark = encoder.length
    encoder.length += 5
    encoder.byte(TAG.more)
    encoder.varint(count)
    encoder.varint(added.length / widthOf(tag))
    for (const item of added) encoder.value(item, this.#hooks)
    writeLength(encoder.bytes, mark, encoder.length - mark - 5 + 1)
    encoder.varint(0)
  }

  #blob(view: ArrayBufferView): { buffer: ArrayBufferLike; offset: number } {
    const { buffer, byteOffset, byteLength } = view
    if (isShared(buffer)) return { buffer, offset: byteOffset }
    const { blobs, base } = this.#encoder
    const whole = byteOffset === 0 && byteLength === buffer.byteLength
    // Memory can be given away once: not when others have it, and not when an earlier value has it.
    const isTaken = isReaders(buffer) || this.#lent.includes(buffer as ArrayBuffer)
    if (whole && !isTaken && !blobs.slice(0, base).includes(buffer)) return { buffer, offset: 0 }
    return { buffer: shareCopy(view), offset: 0 }
  }
}

const changedElements = ({ definition: { name } }: ReceivedTask): MillraceError =>
  new MillraceError(
    'MR_ALIAS',
    `${name} changed which objects an argument or its elements hold, while other tasks know these elements by themselves`,
    { hint: 'waitOn() the object before the call, or return what has changed.' },
  )

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
