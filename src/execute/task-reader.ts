import type { DecodeHooks, Decoder } from '../model/decode.ts'
import type { Definition } from '../model/definition.ts'
import { bytesOf, codeOf } from '../model/typed-arrays.ts'
import { readEarly } from './early-wire.ts'
import type { KeptMemory } from './kept-memory.ts'
import type { EarlyStart } from './early-wire.ts'
import { ARGUMENT, FLAG, SHARE } from './protocol.ts'

export interface KnownKind {
  key: string
  module: string
  definition: Definition | null
}

export interface TaskHeader {
  task: number
  attempt: number
  kind: KnownKind
  variant: number
  partial: boolean
  hasEarly: boolean
  /** Its buffers are in a list at its end. */
  hasMemory: boolean
}

/** A slot whose value goes back when the task ends. */
export interface WrittenSlot {
  value: unknown
  inPlace: boolean
  /** A copy to put back when the attempt fails. */
  backup: Uint8Array | null
}

export interface ReceivedTask {
  id: number
  attempt: number
  definition: Definition
  variant: number
  /** Outputs are wanted even if it fails. */
  partial: boolean
  args: unknown[]
  written: WrittenSlot[]
  /** Buffers that have to go back to their owner. */
  lent: ArrayBuffer[]
  published: { slot: number; blobs: SharedArrayBuffer[] }[]
  /** Generators, and attempts after one that released values. */
  early: EarlyStart | null
  /** Returned values that this attempt has released. */
  released: Set<number> | null
  /** Some of them went as messages, so the result must not overtake them through the ring. */
  hasPosted: boolean
  ended: boolean
}

type HooksFor = (slots: unknown[] | null) => DecodeHooks

/** Reads task records; see protocol.ts for their layout. */
export class TaskReader {
  readonly #memory: KeptMemory

  constructor(memory: KeptMemory) {
    this.#memory = memory
  }

  /** Whether the record at the decoder's place is of a kind that is loaded; the place does not change. */
  peekKind(decoder: Decoder, kinds: ReadonlyMap<number, KnownKind>): boolean {
    const { at } = decoder
    decoder.word()
    decoder.varint()
    decoder.varint()
    const kind = decoder.varint()
    decoder.at = at
    return kinds.get(kind)?.definition != null
  }

  header(decoder: Decoder, kinds: ReadonlyMap<number, KnownKind>): TaskHeader {
    decoder.word()
    const task = decoder.varint()
    const attempt = decoder.varint()
    const number = decoder.varint()
    const flags = decoder.byte()
    const kind = kinds.get(number)
    if (!kind) throw new Error(`kind ${number} is not known`)
    const partial = (flags & FLAG.partial) !== 0
    const hasEarly = (flags & FLAG.early) !== 0
    const hasMemory = (flags & FLAG.memory) !== 0
    return { task, attempt, kind, variant: decoder.varint(), partial, hasEarly, hasMemory }
  }

  /** The buffers of a record that ends at `end`: those beside it, or those that it lists. */
  buffers(decoder: Decoder, end: number, beside: readonly ArrayBufferLike[], { hasMemory }: TaskHeader) {
    if (!hasMemory) return beside
    const { at } = decoder
    decoder.at = end - 4
    decoder.at = end - decoder.word()
    const buffers = this.#memory.take(decoder)
    decoder.at = at
    return buffers
  }

  /** Slots and arguments. The kind must be loaded by now. */
  rest(
    decoder: Decoder,
    blobs: readonly ArrayBufferLike[],
    header: TaskHeader,
    hooksFor: HooksFor,
  ): ReceivedTask {
    const task: ReceivedTask = {
      id: header.task,
      attempt: header.attempt,
      definition: header.kind.definition as Definition,
      variant: header.variant,
      partial: header.partial,
      args: [],
      written: [],
      lent: [],
      published: [],
      early: null,
      released: null,
      hasPosted: false,
      ended: false,
    }
    const slots: unknown[] = []
    const count = decoder.varint()
    if (count > 0) {
      decoder.hooks = hooksFor(slots)
      for (let i = 0; i < count; i++) slots.push(this.#slot(decoder, blobs, task, i))
    }
    const length = decoder.varint()
    for (let i = 0; i < length; i++) {
      const tag = decoder.byte()
      if (tag === ARGUMENT.slot) task.args.push(slots[decoder.varint()])
      else if (tag === ARGUMENT.inside) task.args.push(`${String(slots[decoder.varint()])}/${decoder.text()}`)
      else {
        decoder.beside(blobs, decoder.varint())
        task.args.push(decoder.value())
      }
    }
    if (header.hasEarly) task.early = readEarly(decoder, blobs)
    return task
  }

  #slot(decoder: Decoder, blobs: readonly ArrayBufferLike[], task: ReceivedTask, index: number): unknown {
    const share = decoder.byte()
    if (share === SHARE.path) return decoder.text()
    const base = decoder.varint()
    const size = decoder.varint()
    let beside = blobs
    const own = blobs.slice(base, base + size)
    if (share === SHARE.copy) beside = replaced(blobs, base, own.map(copyPlain))
    if (share === SHARE.publish) {
      const published = own.map(copyShared)
      task.published.push({ slot: index, blobs: published })
      beside = replaced(blobs, base, published)
    }
    if (share === SHARE.lend) {
      task.lent.push(...own.filter((blob): blob is ArrayBuffer => !(blob instanceof SharedArrayBuffer)))
    }
    decoder.beside(beside, base)
    const value = decoder.value()
    if (share === SHARE.own || share === SHARE.copy)
      task.written.push({ value, inPlace: false, backup: null })
    if (share === SHARE.inPlace) task.written.push({ value, inPlace: true, backup: null })
    if (share === SHARE.guarded) {
      const view = value as Uint8Array
      const backup = new Uint8Array(new SharedArrayBuffer(view.byteLength))
      backup.set(bytesOf(view))
      task.written.push({ value, inPlace: true, backup })
    }
    return value
  }
}

const copyPlain = (blob: ArrayBufferLike): ArrayBufferLike => {
  const copy = new ArrayBuffer(blob.byteLength)
  new Uint8Array(copy).set(new Uint8Array(blob))
  return copy
}

const copyShared = (blob: ArrayBufferLike): SharedArrayBuffer => {
  const copy = new SharedArrayBuffer(blob.byteLength)
  new Uint8Array(copy).set(new Uint8Array(blob))
  return copy
}

function replaced(all: readonly ArrayBufferLike[], base: number, by: ArrayBufferLike[]): ArrayBufferLike[] {
  const copy = [...all]
  copy.splice(base, by.length, ...by)
  return copy
}

/** Puts back what a failed attempt wrote into memory that exists only once. */
export function restore({ written }: ReceivedTask): void {
  for (const { value, backup } of written) {
    if (!backup || codeOf(value as Uint8Array) < 0) continue
    const view = value as Uint8Array
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(backup)
  }
}
