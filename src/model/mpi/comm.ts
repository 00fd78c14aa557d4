/** What an MPI task's function gets: the ranks of its task, and what they can do together. */

export type MpiArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array

/** How values of several ranks become one. */
export type ReduceOp = 'sum' | 'prod' | 'min' | 'max' | 'land' | 'lor' | 'band' | 'bor'

export const REDUCE_OPS: readonly ReduceOp[] = ['sum', 'prod', 'min', 'max', 'land', 'lor', 'band', 'bor']

/** What was received. */
export interface Received {
  /** The rank that sent it; -1 where nothing was received. */
  readonly source: number
  readonly tag: number
  /** Elements; of `probe`, bytes. */
  readonly count: number
}

/** A call that has begun. Its arrays must not be used before it is complete. */
export interface Request {
  wait(): Received
  /** Null while it is not complete. */
  test(): Received | null
}

/**
 * The ranks of a task, or some of them. Arrays are sent and filled in place; other values are encoded, and the calls then
 * return them. Calls wait for the others, as MPI's do.
 */
export interface Comm {
  /** The number of this rank, from 0. */
  readonly rank: number
  /** How many ranks there are. */
  readonly size: number
  barrier(): void
  /** Fills the array with that of the root; for other values, returns that of the root. */
  bcast<T>(value: T, root?: number): T
  /** The parts of all ranks, one after the other, at the root; null elsewhere. All parts have one length. */
  gather<T extends MpiArray>(part: T, root?: number, into?: T): T | null
  /** The values of all ranks, as a list, at the root; null elsewhere. */
  gather<T>(value: T, root?: number): T[] | null
  /** As `gather`, of parts with different lengths. */
  gatherv<T extends MpiArray>(part: T, root?: number, into?: T): T | null
  allgather<T extends MpiArray>(part: T, into?: T): T
  allgather<T>(value: T): T[]
  allgatherv<T extends MpiArray>(part: T, into?: T): T
  /** Fills `into` with the rank's part of the root's array, which counts at the root only. */
  scatter<T extends MpiArray>(whole: T | null, into: T, root?: number): T
  /** The root's list has a value for each rank; each gets its own. */
  scatter<T>(values: readonly T[] | null, root?: number): T
  /** As `scatter`, of parts with different lengths: those of `into`. */
  scatterv<T extends MpiArray>(whole: T | null, into: T, root?: number): T
  /** Null but at the root. `into` may be the array itself. */
  reduce(value: number, op?: ReduceOp, root?: number): number | null
  reduce<T extends MpiArray>(values: T, op?: ReduceOp, root?: number, into?: T): T | null
  allreduce(value: number, op?: ReduceOp): number
  allreduce<T extends MpiArray>(values: T, op?: ReduceOp, into?: T): T
  /** The i-th part of the array goes to rank i; the result has a part of each rank. */
  alltoall<T extends MpiArray>(parts: T, into?: T): T
  /** The i-th value goes to rank i. */
  alltoall<T>(values: readonly T[]): T[]
  /** As `alltoall`, of parts with these lengths. */
  alltoallv<T extends MpiArray>(parts: T, counts: readonly number[]): T
  send(value: unknown, to: number, tag?: number): void
  /** Fills the array; a `from` or `tag` of -1 takes any. */
  recv(into: MpiArray, from?: number, tag?: number): Received
  /** A value that `send` encoded. */
  recvValue(from?: number, tag?: number): unknown
  sendrecv<T extends MpiArray>(value: MpiArray, to: number, into: T, from?: number, tag?: number): Received
  isend(value: unknown, to: number, tag?: number): Request
  irecv(into: MpiArray, from?: number, tag?: number): Request
  /** As the calls without `i`, of arrays, and begun only: `wait()` of the request completes them. */
  ibarrier(): Request
  ibcast(array: MpiArray, root?: number): Request
  /** In place, unless there is an `into`. */
  ireduce<T extends MpiArray>(values: T, op?: ReduceOp, root?: number, into?: T): Request
  iallreduce<T extends MpiArray>(values: T, op?: ReduceOp, into?: T): Request
  /** `into` counts at the root only. */
  igather<T extends MpiArray>(part: T, root: number, into: T | null): Request
  iallgather<T extends MpiArray>(part: T, into: T): Request
  iscatter<T extends MpiArray>(whole: T | null, into: T, root?: number): Request
  ialltoall<T extends MpiArray>(parts: T, into: T): Request
  /** Waits for a message that could be received. */
  probe(from?: number, tag?: number): Received
  /** The same without waiting. */
  iprobe(from?: number, tag?: number): Received | null
  /** The ranks of one color become a communicator, in the order of `key`; null for a negative color. */
  split(color: number, key?: number): Comm | null
  dup(): Comm
  /** Opens a file together. */
  file(path: string, options?: MpiFileOptions): MpiFile
  /**
   * Opens a file of HDF5 together: `w` makes it anew, `r` reads, `r+` both. Awaited, because the add-on for it is built at first
   * use, for the parallel HDF5 of the site. @default w
   */
  hdf5(path: string, mode?: 'r' | 'w' | 'r+'): Promise<Hdf5File>
  /** Seconds since some moment of the past. */
  wtime(): number
}

export interface MpiFileOptions {
  /** r reads, w writes, r+ both; the file is made unless it is only read. @default r+ */
  mode?: 'r' | 'w' | 'r+'
  /** Hints such as cb_nodes or striping_factor, by name. */
  hints?: Readonly<Record<string, string | number>>
}

/** A file that the ranks of a communicator opened together. Offsets are bytes, or elements once there is a view. */
export interface MpiFile {
  /** Returns the elements that were read. */
  readAt(offset: number, into: MpiArray): number
  writeAt(offset: number, values: MpiArray): number
  /** All ranks call it, each with its part. */
  readAtAll(offset: number, into: MpiArray): number
  writeAtAll(offset: number, values: MpiArray): number
  /** From here on, the rank sees only its block of a matrix (or of an array of any rank) that begins at `start` bytes. */
  setView(view: MpiView | null): void
  setSize(bytes: number): void
  size(): number
  sync(): void
  /** Called for all files that are open when the function returns. */
  close(): void
}

export interface MpiView {
  /** Bytes before the matrix. @default 0 */
  start?: number
  /** An array of the type that the file holds. */
  type: MpiArray
  /** Rows and columns of the whole. */
  sizes: readonly number[]
  /** Rows and columns of the block. */
  lengths: readonly number[]
  /** Row and column at which it begins. */
  starts: readonly number[]
}

/** A file of HDF5. All ranks make all calls, of it and of its datasets, in the same order. */
export interface Hdf5File {
  /** A new dataset of the type of this array, with these sizes; a name such as `run1/grid` makes groups. */
  create(name: string, type: MpiArray, sizes: readonly number[]): Hdf5Dataset
  dataset(name: string): Hdf5Dataset
  /** Called for all that are open when the function returns. */
  close(): void
}

export interface Hdf5Dataset {
  readonly sizes: readonly number[]
  /** Writes the block of this rank; one without elements takes part, too. */
  write(values: MpiArray, block: Hdf5Block): void
  /** Fills the array from a block. Numbers of another type are converted. */
  read(into: MpiArray, block: Hdf5Block): void
  close(): void
}

/** Where a block begins, and how many elements it has, in each dimension. */
export interface Hdf5Block {
  readonly starts: readonly number[]
  readonly lengths: readonly number[]
}
