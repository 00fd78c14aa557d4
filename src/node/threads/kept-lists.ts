import { MillraceError } from '../../core/errors.ts'
import { hasSymbols, isNamed } from '../../model/capture/looks.ts'
import { Decoder } from '../../model/encoding/decode.ts'
import type { Encoder } from '../../model/encoding/encode.ts'
import { isGrowable, wholeOf } from '../../model/encoding/grown-list.ts'
import { isPrimitive } from '../../model/encoding/stored.ts'
import { TAG } from '../../model/encoding/tags.ts'
import type { WrittenSlot } from './task-reader.ts'

/** Larger ones are compared as a whole only where they are copied quickly. */
const MOST_BYTES = 16 * 1024 * 1024

/** A list of primitive values as it came, of which a task has a copy. */
export interface ListBase {
  /** Of this thread alone; it may be longer by now. */
  readonly elements: readonly unknown[]
  readonly count: number
}

/** Any other list, map or set as it came: what is behind the number of its elements. */
export interface EncodedBase {
  readonly tag: number
  readonly count: number
  readonly body: Uint8Array
}

/** The same of a log; it may be longer by now. */
interface KeptBody {
  readonly tag: number
  bytes: Uint8Array
  length: number
}

/**
 * Beginnings of logs (see grown-list.ts) that this thread has, by number. Tasks get copies, and the coordinator says what
 * comes behind a beginning: so nothing that a task does can change one.
 */
export class KeptLists {
  /** Those of primitive values: a copy of the array is quicker than to decode it. */
  readonly #lists = new Map<number, unknown[]>()
  readonly #bodies = new Map<number, KeptBody>()

  forget(number: number): void {
    this.#lists.delete(number)
    this.#bodies.delete(number)
  }

  /** Reads a slot behind its `SHARE.list` (see protocol.ts). */
  read(decoder: Decoder): WrittenSlot {
    const number = decoder.varint()
    const from = decoder.varint()
    return from > 0 ? this.#more(decoder, number, from) : this.#whole(decoder, number)
  }

  #whole(decoder: Decoder, number: number): WrittenSlot {
    const start = decoder.at
    const value = decoder.value()
    const { graph, at } = decoder
    const slot = { value, inPlace: false, backup: null, graph, base: null }
    if (Array.isArray(value) && graph.objects.length === 1 && !graph.origins && hasNoHoles(value)) {
      const elements = (value as unknown[]).slice()
      // A reader of an older version may come later, and bring less.
      const isLess = (this.#lists.get(number)?.length ?? 0) >= elements.length
      if (number > 0 && !isLess) this.#lists.set(number, elements)
      return { ...slot, base: { elements, count: elements.length } }
    }
    if (at - start > MOST_BYTES) return slot
    decoder.at = start
    const tag = decoder.byte()
    const count = decoder.varint()
    const body = isGrowable(tag) ? decoder.raw(at - decoder.at).slice() : null
    decoder.at = at
    if (!body) return slot
    const isLess = (this.#bodies.get(number)?.length ?? 0) >= body.length
    if (number > 0 && !isLess) this.#bodies.set(number, { tag, bytes: body, length: body.length })
    return { ...slot, base: { tag, count, body } }
  }

  #more(decoder: Decoder, number: number, from: number): WrittenSlot {
    const count = decoder.varint()
    const start = decoder.varint()
    const end = decoder.varint() + start
    const body = this.#bodies.get(number)
    if (body) return this.#moreOf(body, decoder, count, start, end)
    const elements = this.#lists.get(number)
    if (!elements || elements.length < from) throw notSent(number, from)
    for (let i = from; i < count; i++) elements[i] = decoder.value()
    const value = elements.slice(0, count)
    const graph = { objects: [value], origins: null }
    return { value, inPlace: false, backup: null, graph, base: { elements, count } }
  }

  #moreOf(body: KeptBody, decoder: Decoder, count: number, start: number, end: number): WrittenSlot {
    if (body.length < start) throw notSent(start, body.length)
    if (end > body.bytes.length) {
      const larger = new Uint8Array(Math.max(end, body.bytes.length * 2))
      larger.set(body.bytes.subarray(0, body.length))
      body.bytes = larger
    }
    body.bytes.set(decoder.raw(end - start), start)
    body.length = Math.max(body.length, end)
    const own = body.bytes.subarray(0, end)
    const inner = new Decoder(wholeOf(body.tag, count, own), decoder.hooks)
    const value = inner.value()
    const base = { tag: body.tag, count, body: own }
    return { value, inPlace: false, backup: null, graph: inner.graph, base }
  }
}

const notSent = (number: number, from: number): MillraceError =>
  new MillraceError('MR_INTERNAL', `list ${number} was not sent up to ${from}`)

const isHole = (list: readonly unknown[], i: number): boolean => list[i] === undefined && !(i in list)

function hasNoHoles(list: readonly unknown[]): boolean {
  for (let i = 0; i < list.length; i++) if (isHole(list, i)) return false
  return true
}

/** Whether a task has done nothing to a list but to add primitive values at its end. */
export function isExtended(value: unknown, { elements, count }: ListBase): value is unknown[] {
  if (!Array.isArray(value) || Object.getPrototypeOf(value) !== Array.prototype) return false
  const list = value as unknown[]
  if (list.length < count) return false
  for (let i = 0; i < count; i++) {
    const item = list[i]
    if (item === elements[i] && item !== 0 && item !== undefined) continue
    if (!Object.is(item, elements[i]) || isHole(list, i)) return false
  }
  for (let i = count; i < list.length; i++) if (!isPrimitive(list[i]) || isHole(list, i)) return false
  return !isNamed(list) && !hasSymbols(list)
}

/**
 * Leaves of the value at `start`, the last that was encoded, only what was added to its base, if nothing else has changed. Objects are numbered in their
 * order, so what is behind the base may refer to what is in it; had one been put in the place of another, the value would
 * begin with a graph (see identity.ts).
 */
export function keepAdded(encoder: Encoder, start: number, { tag, count, body }: EncodedBase): void {
  const decoder = new Decoder(encoder.bytes.subarray(start, encoder.length), NO_HOOKS)
  if (decoder.byte() !== tag) return
  const added = decoder.varint() - count
  if (added < 0 || decoder.length - decoder.at < body.length) return
  if (Buffer.compare(decoder.raw(body.length), body) !== 0) return
  const rest = decoder.raw(decoder.length - decoder.at).slice()
  encoder.length = start
  encoder.byte(TAG.more)
  encoder.varint(count)
  encoder.varint(added)
  encoder.raw(rest)
}

const NO_HOOKS = { findClass: (): null => null, slot: (): undefined => undefined }
