import type { ReduceOp } from './comm.ts'

/**
 * Which part of an array or list each rank gets: `block`, as equal ones as can be; or `length` elements from `stride` times
 * its rank on, at most `count` of these.
 */
export type Layout = 'block' | { readonly length: number; readonly stride: number; readonly count?: number }

/** What an MPI task has that a function has not. */
export interface MpiForm {
  /** CPUs of each rank. */
  readonly cpus: number
  /** By the position of the parameter. */
  readonly layout: Readonly<Record<number, Layout>>
  readonly reduce: ReduceOp | null
  /** Only what this rank returns counts. */
  readonly root: number | null
  /** An mpirun of its own for each task. */
  readonly isolate: boolean
}

/** Where the part of a rank begins and ends. */
export function partOf(layout: Layout, length: number, rank: number, size: number): [number, number] {
  if (layout === 'block')
    return [Math.floor((length * rank) / size), Math.floor((length * (rank + 1)) / size)]
  if (rank >= (layout.count ?? size)) return [length, length]
  const start = Math.min(length, rank * layout.stride)
  return [start, Math.min(length, start + layout.length)]
}
