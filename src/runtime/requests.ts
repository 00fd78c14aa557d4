import { Datum } from '../core/data/datum.ts'
import type { AccessRequest } from '../core/engine.ts'
import type { Slot } from '../model/capture/call.ts'
import type { Definition } from '../model/definition.ts'

/** Literals are as long as they have to be; arrays that are pushed to have room for a dozen more. */
export function makeRequests(slots: readonly Slot[], results: readonly Datum[]): AccessRequest[] {
  if (slots.length === 0 && results.length === 1) return [{ datum: results[0] as Datum, mode: 'out' }]
  const out = results.map((datum): AccessRequest => ({ datum, mode: 'out' }))
  const requests = slots.map(({ datum, mode, stream }): AccessRequest =>
    stream?.grows ? { datum, mode, grows: true } : { datum, mode },
  )
  return [...requests, ...out]
}

/** Where a node cannot let programs read files as they grow, they are read when they are complete. */
export function commitStreams(slots: readonly Slot[]): void {
  for (const slot of slots) delete slot.stream
}

/** Directories that grow do not go from node to node. With what is complete with them, they are read when their task has ended. */
export function commitDirectories(slots: readonly Slot[]): void {
  const plain = new Set<string | null>()
  for (const slot of slots) {
    if (!slot.stream || slot.kind !== 'directory') continue
    delete slot.stream
    plain.add(slot.datum.path)
  }
  for (const slot of slots)
    if (slot.stream?.beside !== undefined && plain.has(slot.stream.beside)) delete slot.stream
}

export function makeResults({ returns }: Definition): Datum[] {
  const results = [new Datum(null, false, false)]
  for (let i = 1; i < returns; i++) results.push(new Datum(null, false, false))
  return results
}
