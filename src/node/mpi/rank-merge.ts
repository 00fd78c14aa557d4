import { MillraceError } from '../../core/errors.ts'
import { bytesOf } from '../../model/encoding/typed-arrays.ts'
import type { Comm, MpiArray } from '../../model/mpi/comm.ts'
import type { TaskHeader } from './frames.ts'

/** Bytes that are compared and sent at a time. */
const PIECE = 1 << 20

/** The first rank on each machine looks after the memory there. */
export const isFirstOnSite = ({ sites, rank }: Pick<TaskHeader, 'sites' | 'rank'>): boolean =>
  sites ? sites.indexOf(sites[rank] as number) === rank : rank === 0

/**
 * Arrays that the ranks of a task on several machines write: each machine has its own. At the end rank 0 puts what was changed
 * on each machine into its own. Two that have changed the same element to different values are an error.
 */
export class SiteMerge {
  readonly #comm: Comm
  readonly #arrays: readonly MpiArray[]
  /** As they were before; only of the first rank on each machine. */
  readonly #before: readonly Uint8Array[] | null
  readonly #rank: number
  /** The first rank on each other machine. */
  readonly #others: readonly number[]

  /** Called by all ranks, before any of them writes. */
  constructor(header: Pick<TaskHeader, 'sites' | 'rank'>, comm: Comm, arrays: readonly MpiArray[]) {
    const sites = header.sites ?? []
    this.#comm = comm
    this.#arrays = arrays
    this.#rank = header.rank
    this.#others = sites.flatMap((site, rank) => (rank > 0 && sites.indexOf(site) === rank ? [rank] : []))
    this.#before = isFirstOnSite(header) ? arrays.map(array => bytesOf(array).slice()) : null
  }

  /** Called by all ranks, after all of them have written. */
  end(): void {
    if (!this.#before) return
    if (this.#rank > 0) return this.#send(this.#before)
    let conflict: string | null = null
    for (const from of this.#others) conflict = this.#receive(from, this.#before) ?? conflict
    if (conflict === null) return
    throw new MillraceError('MR_MPI_MISUSE', conflict, {
      hint: 'Ranks on several nodes write elements of their own: each node has a copy of the array, and they are joined at the end.',
    })
  }

  #send(before: readonly Uint8Array[]): void {
    this.#arrays.forEach((array, i) => {
      const bytes = bytesOf(array)
      for (let at = 0; at < bytes.length; at += PIECE) {
        const piece = bytes.subarray(at, at + PIECE)
        if (Buffer.compare(piece, (before[i] as Uint8Array).subarray(at, at + PIECE)) === 0) continue
        this.#comm.send(new Float64Array([i, at, piece.length]), 0)
        this.#comm.send(piece, 0)
      }
    })
    this.#comm.send(new Float64Array([-1, 0, 0]), 0)
  }

  /** Takes all that is sent, also after a conflict. */
  #receive(from: number, before: readonly Uint8Array[]): string | null {
    const header = new Float64Array(3)
    const bytes = new Uint8Array(PIECE)
    let conflict: string | null = null
    for (;;) {
      this.#comm.recv(header, from)
      const [i = -1, at = 0, length = 0] = header
      if (i < 0) return conflict
      const piece = bytes.subarray(0, length)
      this.#comm.recv(piece, from)
      const array = this.#arrays[i] as MpiArray
      const unit = array.BYTES_PER_ELEMENT
      const own = bytesOf(array).subarray(at, at + length)
      const wrong = merge(own, piece, (before[i] as Uint8Array).subarray(at, at + length), unit)
      if (wrong >= 0) {
        const which = `element ${at / unit + wrong} of an array of ${array.length}`
        conflict ??= `ranks on two nodes, ${from} among them, wrote different values to ${which}`
      }
    }
  }
}

/**
 * Puts elements of `unit` bytes that differ in `theirs` from `before` into `own`. Returns the first one that both changed to
 * different values, or -1.
 */
export function merge(own: Uint8Array, theirs: Uint8Array, before: Uint8Array, unit: number): number {
  // Elements that were not changed are most of them: they are looked at in words.
  const step = Math.min(unit, 4)
  const [mine, given, old] = [wordsOf(own, step), wordsOf(theirs, step), wordsOf(before, step)]
  const each = unit / step
  for (let at = 0; at < mine.length; at += each) {
    let isSame = true
    let isMine = true
    let isGiven = true
    for (let k = at; k < at + each; k++) {
      if (given[k] !== old[k]) isGiven = false
      if (mine[k] !== old[k]) isMine = false
      if (mine[k] !== given[k]) isSame = false
    }
    if (isGiven || isSame) continue
    if (!isMine) return at / each
    for (let k = at; k < at + each; k++) mine[k] = given[k] as number
  }
  return -1
}

const WORDS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array } as const

const wordsOf = (
  { buffer, byteOffset, length }: Uint8Array,
  step: number,
): Uint8Array | Uint16Array | Uint32Array =>
  new WORDS[step as 1 | 2 | 4](buffer as ArrayBuffer, byteOffset, length / step)

/** The arrays in a value that lie in one of these buffers. */
export function arraysIn(
  value: unknown,
  buffers: readonly unknown[],
  found = new Set<MpiArray>(),
): Set<MpiArray> {
  const seen = new Set<object>()
  const visit = (one: unknown): void => {
    if (typeof one !== 'object' || one === null || seen.has(one)) return
    seen.add(one)
    if (ArrayBuffer.isView(one)) {
      if (buffers.includes(one.buffer) && !(one instanceof DataView)) found.add(one as MpiArray)
    } else if (one instanceof Map) for (const pair of one) pair.forEach(visit)
    else for (const part of one instanceof Set ? one : Object.values(one)) visit(part)
  }
  visit(value)
  return found
}
