import type { MpiArray } from '../../model/mpi/comm.ts'

/** The add-on (native/mpi). Communicators, requests and files are numbers; 0 is the world. */
export interface MpiNative {
  init(): number
  finalize(): void
  version(): string
  wtime(): number
  places(memory: Uint8Array, rank: number): void
  begin(rank: number): void
  /** Says that another library makes a collective call; throws when other ranks make another one. */
  enter(comm: number, call: number): void
  leave(): void
  /** By which other libraries know the communicator. */
  fortran(comm: number): number
  map(path: string, bytes: number): ArrayBuffer
  create(ranks: Int32Array, tag: number): number
  split(comm: number, color: number, key: number): number
  free(comm: number): void
  size(comm: number): number
  rank(comm: number): number
  barrier(comm: number): void
  bcast(comm: number, array: MpiArray, root: number): void
  reduce(comm: number, array: MpiArray, into: MpiArray, op: number, root: number): void
  gather(
    comm: number,
    array: MpiArray,
    into: MpiArray,
    root: number,
    counts: Int32Array,
    starts: Int32Array,
    varies: number,
  ): void
  scatter(
    comm: number,
    array: MpiArray,
    into: MpiArray,
    root: number,
    counts: Int32Array,
    starts: Int32Array,
    varies: number,
  ): void
  alltoall(comm: number, array: MpiArray, into: MpiArray): void
  alltoallv(
    comm: number,
    array: MpiArray,
    counts: Int32Array,
    starts: Int32Array,
    into: MpiArray,
    itsCounts: Int32Array,
    itsStarts: Int32Array,
  ): void
  /** Memory that both sides see: see `Numbers` in messages.ts. */
  numbers(memory: Int32Array): void
  /** The array that is sent, or filled, from now on. */
  aim(array: MpiArray, isInto: number): void
  /** These three take all that they need from there. */
  send(): void
  recv(): void
  sendrecv(): void
  isend(comm: number, array: MpiArray, to: number, tag: number): number
  irecv(comm: number, array: MpiArray, from: number, tag: number): number
  /** Kind 0 barrier, 1 bcast, 2 reduce, 3 gather, 4 scatter, 5 alltoall; root -1 for all. */
  icollective(comm: number, kind: number, array: MpiArray, into: MpiArray, op: number, root: number): number
  /** Returns 0 for a receive that no message came for. */
  giveUp(request: number): number
  /** Without CPUs, those that the process began with. */
  bind(cpus: Int32Array): number
  wait(comm: number, request: number, told: Int32Array): void
  test(request: number, told: Int32Array): number
  probe(comm: number, from: number, tag: number, isWaiting: number): number
  fileOpen(comm: number, path: string, mode: number, hints: readonly string[]): number
  fileTransfer(file: number, offset: number, array: MpiArray, kind: number): number
  fileView(
    file: number,
    start: number,
    type: MpiArray,
    sizes: Int32Array,
    lengths: Int32Array,
    starts: Int32Array,
  ): void
  fileSize(file: number, bytes: number): number
  fileSync(file: number): void
  fileClose(file: number): void
}

export const loadMpi = (path: string): MpiNative => dlopenGlobal(path) as MpiNative

export function dlopenGlobal(path: string): unknown {
  const module = { exports: {} }
  // Libraries of MPI load others, which look for its names.
  const { RTLD_NOW, RTLD_GLOBAL } = process.getBuiltinModule('node:os').constants.dlopen
  process.dlopen(module, path, RTLD_NOW | RTLD_GLOBAL)
  return module.exports
}
