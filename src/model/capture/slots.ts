import type { AccessMode, Datum } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import { NO_SLOTS } from './call.ts'
import type { Call, Slot } from './call.ts'
import type { DatumKind } from '../options/directions.ts'

/** From this number of slots on, a map is used instead of a search. */
const MAP_FROM = 32

/** The slots of the call that is being made, by datum; calls are made one at a time. */
const places = new Map<Datum, number>()
let indexed: readonly Slot[] = NO_SLOTS

/** Each datum has one slot in a call, however often it is passed. */
export function addSlot(call: Call, datum: Datum, mode: AccessMode, kind: DatumKind): number {
  checkRemoved(datum)
  if (call.slots === NO_SLOTS) {
    ;(call as { slots: Slot[] }).slots = [{ datum, kind, mode, initial: null }]
    return 0
  }
  const at = putSlot(call.slots as Slot[], { datum, kind, mode, initial: null })
  const slot = call.slots[at] as Slot
  if (slot.mode === mode) return at
  const modes = [slot.mode, mode]
  if (modes.includes('concurrent') || modes.includes('commutative')) {
    throw new MillraceError('MR_DIRECTION', `the same datum is passed twice, as ${slot.mode} and as ${mode}`)
  }
  slot.mode = 'inout'
  return at
}

/** The place of the slot of this datum, which is put there unless there is one. */
export function putSlot(slots: Slot[], slot: Slot): number {
  const at = find(slots, slot.datum)
  if (at >= 0) return at
  if (indexed === slots) places.set(slot.datum, slots.length)
  return slots.push(slot) - 1
}

function find(slots: readonly Slot[], datum: Datum): number {
  if (slots.length < MAP_FROM) {
    for (let i = 0; i < slots.length; i++) if (slots[i]?.datum === datum) return i
    return -1
  }
  if (indexed !== slots) {
    forgetSlots()
    indexed = slots
    slots.forEach((slot, i) => places.set(slot.datum, i))
  }
  return places.get(datum) ?? -1
}

/** The call is made: what it used is not held any longer. */
export function forgetSlots(): void {
  if (indexed === NO_SLOTS) return
  indexed = NO_SLOTS
  places.clear()
}

export function checkRemoved(datum: Datum): void {
  if (datum.removed) throw new MillraceError('MR_REMOVED', `${datum.path ?? 'the value'} was removed`)
}
