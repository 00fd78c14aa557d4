import { join } from 'node:path'
import { shared } from 'millrace'
import { Meter } from '../fixtures/random-tasks.ts'
import type { Box } from '../fixtures/random-tasks.ts'

/** The data that every random program begins with. */

export type Kind = 'box' | 'meter' | 'array' | 'shared' | 'ints' | 'sharedInts' | 'file'

export interface Place {
  name: string
  kind: Kind
  /** Goes to threads as memory of its own, which may be lost in an attempt that fails. */
  isLarge: boolean
  make(): unknown
}

const LARGE = 5000

export const PLACES: readonly Place[] = [
  { name: 'box1', kind: 'box', isLarge: false, make: (): Box => ({ n: 1, log: [1] }) },
  { name: 'box2', kind: 'box', isLarge: false, make: (): Box => ({ n: 2, log: [] }) },
  { name: 'meter', kind: 'meter', isLarge: false, make: () => new Meter(3) },
  { name: 'small', kind: 'array', isLarge: false, make: () => new Float64Array(4).fill(4) },
  { name: 'large', kind: 'array', isLarge: true, make: () => new Float64Array(LARGE).fill(5) },
  { name: 'large2', kind: 'array', isLarge: true, make: () => new Float64Array(LARGE).fill(6) },
  { name: 'sharedSmall', kind: 'shared', isLarge: false, make: () => shared(Float64Array, 4).fill(7) },
  { name: 'sharedLarge', kind: 'shared', isLarge: false, make: () => shared(Float64Array, LARGE).fill(8) },
  { name: 'ints', kind: 'ints', isLarge: true, make: () => new Int32Array(2 * LARGE) },
  { name: 'sharedInts', kind: 'sharedInts', isLarge: false, make: () => shared(Int32Array, 16) },
  { name: 'file1', kind: 'file', isLarge: false, make: () => 'first' },
  { name: 'file2', kind: 'file', isLarge: false, make: () => 'second' },
  { name: 'count', kind: 'file', isLarge: false, make: () => '0' },
]

export const pathOf = (folder: string, place: Place): string => join(folder, `${place.name}.txt`)

const TARGETS: Record<string, readonly Kind[]> = {
  inout: ['box', 'meter', 'array', 'shared'],
  inout2: ['box', 'meter', 'array', 'shared'],
  out: ['array', 'shared'],
  commutative: ['box'],
  concurrent: ['ints', 'sharedInts'],
  fileIn: ['file'],
  fileOut: ['file'],
  fileInout: ['file'],
  fileCommutative: ['file'],
  nested: ['box'],
}

/** The places that a task of this shape writes, or reads as files, chosen by numbers. */
export function targetsOf(shape: string, chosen: readonly number[]): number[] {
  const kinds = TARGETS[shape]
  if (!kinds) return []
  const fitting = PLACES.flatMap((place, i) => (kinds.includes(place.kind) ? [i] : []))
  const commutative = shape === 'fileCommutative' ? fitting.filter(i => PLACES[i]?.name === 'count') : fitting
  const pick = (n: number | undefined): number => commutative[(n ?? 0) % commutative.length] as number
  return shape === 'inout2' ? [pick(chosen[0]), pick(chosen[1])] : [pick(chosen[0])]
}

/** Places that can be read as values. */
export const READABLE = PLACES.flatMap((place, i) => (place.kind === 'file' ? [] : [i]))
