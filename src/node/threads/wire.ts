import { SlotArgument } from '../../model/capture/call.ts'
import type { Argument } from '../../model/capture/call.ts'
import { NOTHING, Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'

/** Calls of running tasks go as messages, in which objects lose their class: these forms have none. */

export interface WireStored {
  bytes: Uint8Array
  blobs: readonly ArrayBufferLike[]
}

type Plain = string | number | boolean | bigint | null | undefined

export type WireArgument =
  Plain | { stored: WireStored } | { slot: number; within: string | null; part: number }

export type WireKept = Plain | { stored: WireStored } | { nothing: true }

export function argumentToWire(argument: Argument): WireArgument {
  if (argument instanceof Stored) return { stored: { bytes: argument.bytes, blobs: argument.blobs } }
  if (argument instanceof SlotArgument) {
    const { slot, within, part } = argument
    return { slot, within, part }
  }
  return argument
}

export function argumentFromWire(wire: WireArgument): Argument {
  if (typeof wire !== 'object' || wire === null) return wire
  if ('stored' in wire) return new Stored(wire.stored.bytes, wire.stored.blobs)
  return new SlotArgument(wire.slot, wire.within, wire.part)
}

export function keptToWire(kept: Kept | undefined): WireKept {
  if (kept instanceof Stored) return { stored: { bytes: kept.bytes, blobs: kept.blobs } }
  return kept === NOTHING ? { nothing: true } : (kept as Plain)
}

export function keptFromWire(wire: WireKept): Kept | undefined {
  if (typeof wire !== 'object' || wire === null) return wire as Kept | undefined
  return 'stored' in wire ? new Stored(wire.stored.bytes, wire.stored.blobs) : NOTHING
}
