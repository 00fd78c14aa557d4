/** The steps of the pipeline, each a function of what the one before made. */
import { READ_LENGTH } from './genome.ts'
import type { Variant } from './genome.ts'

export interface Read {
  name: string
  bases: string
  /** Where it lies in the reference; -1: nowhere. */
  position: number
  isDuplicate: boolean
  group: string
}

const SEED = 16
/** A place counts as varied if at least this many reads agree, and nearly all that cover it. */
const LEAST_READS = 4
const LEAST_SHARE = 0.7

/** Names the reads and drops those that are too short to be placed. */
export const toFastq = (sample: string, bases: readonly string[]): Read[] =>
  bases
    .filter(one => one.length >= SEED)
    .map((one, i) => ({ name: `${sample}.${i}`, bases: one, position: -1, isDuplicate: false, group: '' }))

/** Looks where pieces of each read are in the reference, and takes the place with the fewest differences. */
export function mapReads(reads: readonly Read[], reference: string): Read[] {
  const places = new Map<string, number[]>()
  for (let at = 0; at + SEED <= reference.length; at++) {
    const piece = reference.slice(at, at + SEED)
    const known = places.get(piece)
    if (known) known.push(at)
    else places.set(piece, [at])
  }
  return reads.map(read => ({ ...read, position: bestPlace(read.bases, reference, places) }))
}

function bestPlace(bases: string, reference: string, places: Map<string, number[]>): number {
  let best = -1
  let least = Infinity
  for (let offset = 0; offset + SEED <= bases.length; offset += SEED) {
    for (const place of places.get(bases.slice(offset, offset + SEED)) ?? []) {
      const start = place - offset
      if (start < 0 || start + bases.length > reference.length || start === best) continue
      const differences = countDifferences(bases, reference, start)
      if (differences >= least) continue
      least = differences
      best = start
    }
  }
  return best
}

function countDifferences(bases: string, reference: string, start: number): number {
  let count = 0
  for (let i = 0; i < bases.length; i++) if (bases[i] !== reference[start + i]) count++
  return count
}

export const sortReads = (reads: readonly Read[]): Read[] =>
  reads.toSorted((a, b) => a.position - b.position || (a.bases < b.bases ? -1 : a.bases > b.bases ? 1 : 0))

/** Joins what was placed with the reads as they came: those without a place stay, at the end. */
export function merge(mapped: readonly Read[], unmapped: readonly Read[]): Read[] {
  const placed = mapped.filter(({ position }) => position >= 0)
  const names = new Set(placed.map(({ name }) => name))
  return [...placed, ...unmapped.filter(({ name }) => !names.has(name))]
}

/** Of equal reads at one place, all but the first are copies that the machine made. */
export function markDuplicates(reads: readonly Read[]): Read[] {
  let last: Read | null = null
  return reads.map(read => {
    const isDuplicate = last !== null && read.position === last.position && read.bases === last.bases
    last = read
    return { ...read, isDuplicate }
  })
}

export const addGroup = (reads: readonly Read[], group: string): Read[] =>
  reads.map(read => ({ ...read, group }))

/** Where nearly all reads say another base than the reference. */
export function callVariants(reads: readonly Read[], reference: string): Variant[] {
  const counts = new Map<number, Map<string, number>>()
  for (const { bases, position, isDuplicate } of reads) {
    if (position < 0 || isDuplicate) continue
    for (let i = 0; i < READ_LENGTH; i++) {
      const at = position + i
      let seen = counts.get(at)
      if (!seen) counts.set(at, (seen = new Map()))
      const base = bases[i] as string
      seen.set(base, (seen.get(base) ?? 0) + 1)
    }
  }
  const variants: Variant[] = []
  for (const [position, seen] of [...counts].sort(([a], [b]) => a - b)) {
    const all = [...seen.values()].reduce((sum, count) => sum + count, 0)
    const from = reference[position] as string
    for (const [to, count] of seen) {
      if (to !== from && count >= LEAST_READS && count >= LEAST_SHARE * all)
        variants.push({ position, from, to })
    }
  }
  return variants
}
