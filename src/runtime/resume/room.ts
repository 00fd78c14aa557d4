/** Bytes that are taken at once. */
const SLAB = 128 * 1024
/** What is larger has memory of its own. */
const MOST = SLAB / 8

let slab = Buffer.alloc(0)
let taken = 0

/** Memory that is about to be filled, and is soon written away: many small pieces share one. What is in it is undefined. */
export function roomFor(bytes: number): Buffer {
  if (bytes > MOST) return Buffer.allocUnsafeSlow(bytes)
  if (taken + bytes > slab.length) {
    slab = Buffer.allocUnsafeSlow(SLAB)
    taken = 0
  }
  return slab.subarray(taken, (taken += bytes))
}
