import { GrownList, extended, isGrowable, isMore } from '../../model/encoding/grown-list.ts'
import type { ListLog } from '../../model/encoding/grown-list.ts'
import type { Encoder } from '../../model/encoding/encode.ts'
import { Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'

/** From this size on (bytes), a list that a task writes may come back as what the task has added. */
const SMALLEST = 1024
const NOTHING_MORE = new Uint8Array(0)
/** What a thread keeps; bytes as they are encoded, and lists. */
const MOST_BYTES = 16 * 1024 * 1024
const MOST_LISTS = 64

/** The part of a log that a thread has: its number of elements, and where it ends in the log, in bytes. */
interface Known {
  count: number
  end: number
  /** Attempts on their way that refer to it, or bring it. */
  pending: number
}

/** By the numbers of the logs; what was used last comes last. */
export type KnownLists = Map<number, Known>

/** A list that went with an attempt. */
export interface SentList {
  readonly base: Stored
  /** Its place among the values that the task writes; -1 when the task only reads it. */
  readonly output: number
  /** Null when the thread does not keep the list. */
  readonly known: Known | null
}

/** Whether a task that is to write the value may give back what it has added. */
export const isLongList = (kept: Stored): boolean =>
  kept instanceof GrownList ||
  (kept.blobs.length === 0 && kept.bytes.length >= SMALLEST && isGrowable(kept.bytes[0]))

/** Which lists each thread has the beginning of, so that only the rest is sent; see kept-lists.ts. */
export class SentLists {
  readonly #lanes: KnownLists[] = []
  readonly #forget: (lane: number, number: number) => void
  readonly #registered = new WeakSet<ListLog>()
  readonly #gone = new FinalizationRegistry<number>(number => {
    for (const [lane, lists] of this.#lanes.entries()) if (lists?.delete(number)) this.#forget(lane, number)
  })

  constructor(forget: (lane: number, number: number) => void) {
    this.#forget = forget
  }

  /** A new thread has none. */
  reset(lane: number): void {
    this.#lanes[lane] = new Map()
  }

  /** Writes a slot behind its `SHARE.list`; `output` as in `SentList`. */
  write(encoder: Encoder, base: Stored, output: number, lane: number): SentList {
    if (!(base instanceof GrownList) || base.end > MOST_BYTES) {
      encoder.varint(0)
      encoder.varint(0)
      encoder.raw(base.bytes)
      return { base, output, known: null }
    }
    const { log, count, end } = base
    const known = this.#knownOf(log, lane)
    // A reader of an older version needs less than the thread has.
    const from = Math.min(known.count, count)
    encoder.varint(log.number)
    encoder.varint(from)
    if (from === 0) encoder.raw(base.bytes)
    else {
      const part = from < count ? log.part(known.end, end) : NOTHING_MORE
      encoder.varint(count)
      encoder.varint(end - part.length)
      encoder.varint(part.length)
      encoder.raw(part)
    }
    return { base, output, known }
  }

  #knownOf(log: ListLog, lane: number): Known {
    const lists = this.#lanes[lane] as KnownLists
    const known = lists.get(log.number) ?? { count: 0, end: 0, pending: 0 }
    lists.delete(log.number)
    lists.set(log.number, known)
    if (this.#registered.has(log)) return known
    this.#registered.add(log)
    this.#gone.register(log, log.number)
    return known
  }

  /** They are on their way: what they refer to is not forgotten meanwhile. */
  sent(lists: readonly SentList[]): void {
    for (const { known } of lists) if (known) known.pending++
  }

  /** The attempt has ended well, so the thread has read them. */
  arrived(lists: readonly SentList[]): void {
    for (const { base, known } of lists) {
      if (!known || (base as GrownList).count <= known.count) continue
      known.count = (base as GrownList).count
      known.end = (base as GrownList).end
    }
  }

  /** The attempt has ended, well or not. */
  left(lists: readonly SentList[], lane: number): void {
    for (const { known } of lists) if (known) known.pending--
    const all = this.#lanes[lane]
    if (!all) return
    let bytes = 0
    for (const { end } of all.values()) bytes += end
    for (const [number, { count, end, pending }] of all) {
      const isTooMuch = bytes > MOST_BYTES || all.size > MOST_LISTS
      if (pending > 0 || (count > 0 && !isTooMuch)) continue
      all.delete(number)
      bytes -= end
      this.#forget(lane, number)
    }
  }
}

/** Puts whole lists in the places where a task gave back what it has added; the values that it wrote begin at `first`. */
export function extendLists(outputs: (Kept | undefined)[], first: number, lists: readonly SentList[]): void {
  for (const { base, output } of lists) {
    const given = output < 0 ? undefined : outputs[first + output]
    if (given instanceof Stored && isMore(given)) outputs[first + output] = extended(base, given)
  }
}
