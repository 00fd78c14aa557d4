import { MillraceError } from '../../core/errors.ts'
import { Decoder } from '../../model/encoding/decode.ts'
import type { Encoder } from '../../model/encoding/encode.ts'
import { isGrowable, wholeOf } from '../../model/encoding/grown-list.ts'
import { TAG } from '../../model/encoding/tags.ts'
import { copiesOf, flatCopy, flatElements, hasObjects, widthOf } from './flat-lists.ts'
import type { WrittenSlot } from './task-reader.ts'

/** Larger ones are compared as a whole only where they are copied quickly. */
const MOST_BYTES = 16 * 1024 * 1024

/** A list, map or set that is not flat, as it came: what is behind the number of its elements. */
export interface EncodedBase {
  readonly tag: number
  readonly count: number
  readonly body: Uint8Array
}

/** Flat beginnings of a log; they may be longer by now. */
interface KeptFlat {
  readonly tag: number
  readonly elements: unknown[]
  hasObjects: boolean
}

/** Others. */
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
  readonly #flat = new Map<number, KeptFlat>()
  readonly #bodies = new Map<number, KeptBody>()

  forget(number: number): void {
    this.#flat.delete(number)
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
    decoder.at = start
    const tag = decoder.byte()
    const count = decoder.varint()
    const behind = decoder.at
    decoder.at = at
    if (!isGrowable(tag)) return slot
    const flat = flatElements(value, graph)
    if (flat) {
      const elements = copiesOf(flat)
      // A reader of an older version may come later, and bring less.
      const isLess = (this.#flat.get(number)?.elements.length ?? 0) >= elements.length
      const own = { tag, elements, hasObjects: hasObjects(elements) }
      if (number > 0 && !isLess) this.#flat.set(number, own)
      return { ...slot, base: { ...own, count } }
    }
    if (at - start > MOST_BYTES) return slot
    decoder.at = behind
    const body = decoder.raw(at - behind).slice()
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
    const flat = this.#flat.get(number)
    const width = flat ? widthOf(flat.tag) : 1
    if (!flat || flat.elements.length < from * width) throw notSent(number, from)
    for (let i = from * width; i < count * width; i++) {
      const item = decoder.value()
      flat.elements[i] = item
      if (typeof item === 'object' && item !== null) flat.hasObjects = true
    }
    const base = { ...flat, count }
    return { ...flatCopy(base), inPlace: false, backup: null, base }
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
