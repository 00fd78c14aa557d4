import { MillraceError } from '../../core/errors.ts'
import { hasSymbols, isNamed } from '../../model/capture/looks.ts'
import type { Decoder } from '../../model/encoding/decode.ts'
import { isPrimitive } from '../../model/encoding/stored.ts'
import type { WrittenSlot } from './task-reader.ts'

/** A list as it came, of which a task has a copy. */
export interface ListBase {
  /** Of this thread alone; it may be longer by now. */
  readonly elements: readonly unknown[]
  readonly count: number
}

/**
 * Beginnings of logs (see grown-list.ts) that this thread has, by number. Tasks get copies, and the coordinator says what
 * comes behind a beginning: so nothing that a task does can change one.
 */
export class KeptLists {
  readonly #lists = new Map<number, unknown[]>()

  forget(number: number): void {
    this.#lists.delete(number)
  }

  /** Reads a slot behind its `SHARE.list` (see protocol.ts). */
  read(decoder: Decoder): WrittenSlot {
    const number = decoder.varint()
    const from = decoder.varint()
    if (from > 0) return this.#more(decoder, number, from)
    const value = decoder.value() as unknown[]
    const { graph } = decoder
    const isPlain = graph.objects.length === 1 && !graph.origins && hasNoHoles(value)
    const slot = { value, inPlace: false, backup: null, graph, base: null }
    if (!isPlain) return slot
    const elements = value.slice()
    // A reader of an older version may come later, and bring less.
    const isLess = (this.#lists.get(number)?.length ?? 0) >= elements.length
    if (number > 0 && !isLess) this.#lists.set(number, elements)
    return { ...slot, base: { elements, count: elements.length } }
  }

  #more(decoder: Decoder, number: number, from: number): WrittenSlot {
    const count = decoder.varint()
    const elements = this.#lists.get(number)
    if (!elements || elements.length < from) {
      throw new MillraceError('MR_INTERNAL', `list ${number} was not sent up to ${from}`)
    }
    for (let i = from; i < count; i++) elements[i] = decoder.value()
    const value = elements.slice(0, count)
    const graph = { objects: [value], origins: null }
    return { value, inPlace: false, backup: null, graph, base: { elements, count } }
  }
}

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
