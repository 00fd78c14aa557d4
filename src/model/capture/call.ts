import type { AccessMode, Datum } from '../../core/data/datum.ts'
import type { DatumKind } from '../options/directions.ts'
import type { Definition } from '../definition.ts'
import type { Stored } from '../encoding/stored.ts'
import type { StreamRules } from '../stream.ts'

/** What a task keeps of a slot; the datum and how it is used are in the task's accesses. */
export interface KeptSlot {
  readonly kind: DatumKind
  /** OUT parameters: what the task gets to write into. */
  initial: Stored | null
  /** Outputs of commands: when it is complete, and when others may start on it. */
  stream?: StreamRules
  /** Files that were named by way of links: readers see the name, while the file is in its place. */
  named?: string
  /** Arguments are objects in its value. */
  hasParts?: boolean
  /** The values of other slots, or objects in them, are inside of `initial`. */
  holds?: Holds
}

export interface Holds {
  /** From which number on the objects of each slot are numbered here, and how many of them are numbered. */
  readonly slots: readonly { slot: number; from: number; size: number }[]
  /** Objects in these slots, by number. In the encoding they are slots from `PARTS_FROM` on. */
  readonly parts: readonly { slot: number; number: number }[]
}

export const PARTS_FROM = 2 ** 24

/** A datum that a call uses, once per call however often it occurs among the arguments. */
export interface Slot extends KeptSlot {
  readonly datum: Datum
  mode: AccessMode
}

/**
 * The argument is the value, or the path, of a slot. `within` is the rest of a path inside a directory; `part` the number
 * of an object in the value (see encoding/identity.ts), or -1.
 */
const whole: SlotArgument[] = []

export class SlotArgument {
  /** The whole of a slot; one object serves all calls. */
  static of(slot: number): SlotArgument {
    return (whole[slot] ??= new SlotArgument(slot))
  }

  readonly slot: number
  readonly within: string | null
  readonly part: number

  constructor(slot: number, within: string | null = null, part = -1) {
    this.slot = slot
    this.within = within
    this.part = part
  }
}

/** A primitive as it is, an encoded value (which may refer to slots), or a slot. */
export type Argument = Stored | SlotArgument | string | number | boolean | bigint | null | undefined

export interface Call {
  readonly definition: Definition
  /** The arguments as given, for constraints that are functions of them. */
  readonly given: readonly unknown[]
  readonly args: Argument[]
  readonly slots: Slot[]
  /** A command that is a function of ours: it cannot wait where programs are started. */
  readonly alone?: boolean
  /** What the task's `key` says. */
  key?: string
  /** How to undo what it did to what the program knows of its data, in case that it is refused. */
  undo?: (() => void)[]
}

export const NO_SLOTS: Slot[] = []

const PLAIN: KeptSlot = { kind: 'value', initial: null }
const plain: KeptSlot[][] = [NO_SLOTS]

/** More slots than this are rare, and of any number: what they keep is their own. */
const SCAN_LIMIT = 16

/** Tasks that read and write values all keep the same: there are millions of them. */
export function keptSlots(slots: readonly Slot[]): readonly KeptSlot[] {
  if (slots.length > SCAN_LIMIT) return slots
  // What holds others has an initial value.
  for (const { kind, initial, hasParts } of slots) {
    if (kind !== 'value' || initial !== null || hasParts) return slots
  }
  return (plain[slots.length] ??= slots.map(() => PLAIN))
}

/** What to do when the call is refused after all. */
export function undoable(call: Call, back: () => void): void {
  ;(call.undo ??= []).push(back)
}
