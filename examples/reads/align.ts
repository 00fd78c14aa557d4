import { LENGTH } from './fastq.ts'

/** Words of this length are looked up in the reference to find where a read may lie. */
const SEED = 12

export class Index {
  readonly places = new Map<string, number>()
  readonly reference: string
  constructor(reference: string) {
    this.reference = reference
    for (let i = 0; i + SEED <= reference.length; i++) this.places.set(reference.slice(i, i + SEED), i)
  }
}

/** The score of the best local alignment of two sequences (Smith and Waterman; match 2, mismatch -1, gap -2). */
export function score(a: string, b: string): number {
  const before = new Int32Array(b.length + 1)
  let best = 0
  for (let i = 0; i < a.length; i++) {
    let diagonal = 0
    const letter = a.charCodeAt(i)
    for (let j = 1; j <= b.length; j++) {
      const above = before[j] as number
      const match = diagonal + (letter === b.charCodeAt(j - 1) ? 2 : -1)
      const value = Math.max(0, match, above - 2, (before[j - 1] as number) - 2)
      diagonal = above
      before[j] = value
      if (value > best) best = value
    }
  }
  return best
}

/** Aligns each read of a batch where a word of it occurs; returns how many there are and their total score. */
export function alignBatch(
  batch: Uint8Array,
  { places, reference }: Index,
): { reads: number; total: number } {
  const lines = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength).toString('latin1').split('\n')
  let reads = 0
  let total = 0
  for (let i = 1; i < lines.length; i += 4) {
    const read = lines[i] as string
    let at = -1
    for (let s = 0; at < 0 && s + SEED <= read.length; s += SEED) {
      const place = places.get(read.slice(s, s + SEED))
      if (place !== undefined) at = Math.max(0, place - s)
    }
    reads++
    if (at >= 0) total += score(read, reference.slice(at, at + LENGTH))
  }
  return { reads, total }
}
