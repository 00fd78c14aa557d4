import { MillraceError } from '../../core/errors.ts'
import { ByteWriter } from './byte-writer.ts'
import { Decoder } from './decode.ts'
import type { DecodeHooks } from './decode.ts'
import { Stored } from './stored.ts'
import { TAG } from './tags.ts'

/**
 * Lists, maps and sets that tasks extend. A task that only added to one gives back what it added (`TAG.more`), and not the whole. The
 * versions of such a value are beginnings of one log, so that n tasks that add one element each cost n elements, and not n
 * lists. "List" and "element" stand for maps and their entries as well, and for sets.
 */

/** What can be extended: first byte, number of elements, elements. */
export const isGrowable = (tag: number | undefined): boolean =>
  tag === TAG.array || tag === TAG.map || tag === TAG.set

const NOTHING_YET = new Uint8Array(0)
const noHooks: DecodeHooks = { findClass: () => null, slot: () => undefined }
let last = 0

/** Encoded elements, one behind the other. What was written once stays as it is. */
export class ListLog {
  readonly number = ++last
  /** Of the whole. */
  readonly tag: number
  readonly #elements = new ByteWriter()

  constructor(tag: number) {
    this.tag = tag
  }

  get length(): number {
    return this.#elements.length
  }

  append(bytes: Uint8Array): void {
    this.#elements.raw(bytes)
  }

  part(from: number, to: number): Uint8Array {
    return this.#elements.bytes.subarray(from, to)
  }
}

/** A list that is the beginning of a log: its first `count` elements, which end at byte `end`. */
export class GrownList extends Stored {
  readonly log: ListLog
  readonly count: number
  readonly end: number
  #whole: Uint8Array | null = null

  constructor(log: ListLog, count: number) {
    super(NOTHING_YET, [])
    this.log = log
    this.count = count
    this.end = log.length
  }

  /** As any other value; made at its first use. */
  override get bytes(): Uint8Array {
    if (this.#whole) return this.#whole
    return (this.#whole = wholeOf(this.log.tag, this.count, this.log.part(0, this.end)))
  }
}

export function wholeOf(tag: number, count: number, elements: Uint8Array): Uint8Array {
  const writer = new ByteWriter()
  writer.byte(tag)
  writer.varint(count)
  writer.raw(elements)
  return writer.copy()
}

/** Whether a task gave back only what it added. */
export const isMore = ({ bytes }: Stored): boolean => bytes[0] === TAG.more

/** The list that a task was given, and what it has added (see `isMore`). */
export function extended(base: Stored, more: Stored): GrownList {
  const decoder = new Decoder(more.bytes, noHooks)
  decoder.byte()
  const count = decoder.varint()
  const added = decoder.varint()
  const { log, count: before } = logOf(base)
  if (before !== count) {
    throw new MillraceError(
      'MR_INTERNAL',
      `a task extended a list of ${count}, and was given one of ${before}`,
    )
  }
  log.append(more.bytes.subarray(decoder.at))
  return new GrownList(log, count + added)
}

/** A log that ends where the list ends: another task may have extended the same list before, and failed later. */
function logOf(base: Stored): { log: ListLog; count: number } {
  if (base instanceof GrownList && base.log.length === base.end) return base
  if (base instanceof GrownList) {
    const log = new ListLog(base.log.tag)
    log.append(base.log.part(0, base.end))
    return { log, count: base.count }
  }
  const decoder = new Decoder(base.bytes, noHooks)
  const log = new ListLog(decoder.byte())
  const count = decoder.varint()
  log.append(base.bytes.subarray(decoder.at))
  return { log, count }
}
