import { MillraceError } from '../../core/errors.ts'
import type {
  Comm,
  Hdf5File,
  MpiArray,
  MpiFile,
  MpiFileOptions,
  Received,
  ReduceOp,
  Request,
} from '../../model/mpi/comm.ts'
import { REDUCE_OPS } from '../../model/mpi/comm.ts'
import type { Messages } from './messages.ts'
import type { MpiNative } from './native.ts'
import { RankFile } from './rank-file.ts'
import { RankHdf5File } from './rank-hdf5.ts'
import type { Requests } from './requests.ts'

/** What communicators of a task have in common. */
export interface CommHost {
  readonly native: MpiNative
  /** Notes the line of the program that makes a call. */
  here(): void
  pack(value: unknown): Uint8Array
  unpack(bytes: Uint8Array): unknown
  readonly messages: Messages
  /** Closed when the function has returned, the last first. */
  opened(file: { close(): void }): void
  /** Loads what HDF5 needs. */
  loadHdf5(): Promise<void>
  made(comm: number): void
  readonly requests: Requests
}

/** Kinds of `icollective`. */
const I = { barrier: 0, bcast: 1, reduce: 2, gather: 3, scatter: 4, alltoall: 5 } as const

export const isArray = (value: unknown): value is MpiArray =>
  ArrayBuffer.isView(value) && !(value instanceof DataView)

const NONE = new Int32Array(0)
/** Tags of values that are encoded: those of programs are below. */
const VALUES = 1 << 20

const misuse = (message: string, hint: string): MillraceError =>
  new MillraceError('MR_MPI_MISUSE', message, { hint })

const like = <T extends MpiArray>(array: T, length: number): T =>
  Buffer.isBuffer(array)
    ? (new Uint8Array(length) as unknown as T)
    : new (array.constructor as new (size: number) => T)(length)

/** Lengths, and where each begins when they come one after the other. */
const startsOf = (counts: Int32Array): Int32Array => {
  const starts = new Int32Array(counts.length)
  for (let i = 1; i < counts.length; i++) starts[i] = (starts[i - 1] as number) + (counts[i - 1] as number)
  return starts
}

const sumOf = (counts: Int32Array): number => counts.reduce((sum, count) => sum + count, 0)

export class RankComm implements Comm {
  readonly rank: number
  readonly size: number
  readonly #native: MpiNative
  readonly #comm: number
  readonly #host: CommHost

  constructor(comm: number, host: CommHost) {
    this.#comm = comm
    this.#host = host
    this.#native = host.native
    this.rank = this.#native.rank(comm)
    this.size = this.#native.size(comm)
  }

  barrier(): void {
    this.#host.here()
    this.#native.barrier(this.#comm)
  }

  bcast<T>(value: T, root = 0): T {
    this.#checkRank(root, 'root')
    this.#host.here()
    if (isArray(value)) {
      this.#native.bcast(this.#comm, value, root)
      return value
    }
    const bytes = this.rank === root ? this.#host.pack(value) : NONE
    const length = new Float64Array([bytes.length])
    this.#native.bcast(this.#comm, length, root)
    const all = this.rank === root ? (bytes as Uint8Array) : new Uint8Array(length[0] as number)
    this.#native.bcast(this.#comm, all, root)
    return this.rank === root ? value : (this.#host.unpack(all) as T)
  }

  gather<T>(value: T, root = 0, into?: T): never {
    this.#checkRank(root, 'root')
    if (!isArray(value)) return this.#gatherValues(value, root) as never
    return this.#gather(value, root, into as MpiArray | undefined) as never
  }

  gatherv<T extends MpiArray>(part: T, root = 0, into?: T): T | null {
    this.#checkRank(root, 'root')
    return this.#gatherv(part, root, into)
  }

  allgather<T>(value: T, into?: T): never {
    if (!isArray(value)) return this.#gatherValues(value, -1) as never
    return this.#gather(value, -1, into as MpiArray | undefined) as never
  }

  allgatherv<T extends MpiArray>(part: T, into?: T): T {
    return this.#gatherv(part, -1, into) as T
  }

  scatter<T>(whole: T | readonly T[] | null, intoOrRoot?: T | number, root = 0): never {
    if (isArray(intoOrRoot)) return this.#scatter(whole as MpiArray | null, intoOrRoot, root) as never
    const from = intoOrRoot as number | undefined
    return this.#scatterValues(whole as readonly unknown[] | null, from ?? 0) as never
  }

  scatterv<T extends MpiArray>(whole: T | null, into: T, root = 0): T {
    this.#checkRank(root, 'root')
    this.#host.here()
    const counts = new Int32Array(this.size)
    this.#native.gather(this.#comm, new Int32Array([into.length]), counts, root, NONE, NONE, 0)
    if (this.rank === root) this.#checkLength(whole, sumOf(counts), 'scatterv')
    this.#native.scatter(this.#comm, whole ?? into, into, root, counts, startsOf(counts), 1)
    return into
  }

  reduce<T extends number | MpiArray>(values: T, op: ReduceOp = 'sum', root = 0, into?: T): never {
    this.#checkRank(root, 'root')
    const result = this.#reduce(values, op, root, into)
    return (this.rank === root ? result : null) as never
  }

  allreduce<T extends number | MpiArray>(values: T, op: ReduceOp = 'sum', into?: T): never {
    return this.#reduce(values, op, -1, into) as never
  }

  alltoall<T>(parts: T | readonly T[], into?: T): never {
    if (!isArray(parts)) return this.#alltoallValues(parts as readonly unknown[]) as never
    this.#checkEven(parts, 'alltoall')
    const target = (into as MpiArray | undefined) ?? like(parts, parts.length)
    this.#checkLength(target, parts.length, 'alltoall')
    this.#host.here()
    this.#native.alltoall(this.#comm, parts, target)
    return target as never
  }

  alltoallv<T extends MpiArray>(parts: T, counts: readonly number[]): T {
    const own = Int32Array.from(counts)
    if (own.length !== this.size) {
      throw misuse(`alltoallv: ${own.length} counts for ${this.size} ranks`, 'Give one for each rank.')
    }
    this.#checkLength(parts, sumOf(own), 'alltoallv')
    this.#host.here()
    const theirs = new Int32Array(this.size)
    this.#native.alltoall(this.#comm, own, theirs)
    const into = like(parts, sumOf(theirs))
    this.#native.alltoallv(this.#comm, parts, own, startsOf(own), into, theirs, startsOf(theirs))
    return into
  }

  send(value: unknown, to: number, tag = 0): void {
    this.#checkRank(to, 'to')
    this.#checkTag(tag)
    this.#host.here()
    if (isArray(value)) this.#host.messages.send(this.#comm, value, to, tag)
    else this.#host.messages.send(this.#comm, this.#host.pack(value), to, VALUES + tag)
  }

  recv(into: MpiArray, from = -1, tag = -1): Received {
    if (from >= 0) this.#checkRank(from, 'from')
    this.#host.here()
    this.#host.messages.recv(this.#comm, into, from, tag)
    return this.#host.messages.received
  }

  recvValue(from = -1, tag = 0): unknown {
    this.#host.here()
    this.#native.probe(this.#comm, from, VALUES + tag, 1)
    const { source, tag: itsTag, count } = this.#host.messages.received
    const bytes = new Uint8Array(count)
    this.#host.messages.recv(this.#comm, bytes, source, itsTag)
    return this.#host.unpack(bytes)
  }

  sendrecv<T extends MpiArray>(value: MpiArray, to: number, into: T, from = -1, tag = 0): Received {
    this.#checkRank(to, 'to')
    this.#checkTag(tag)
    this.#host.here()
    this.#host.messages.sendrecv(this.#comm, value, to, into, from, tag)
    return this.#host.messages.received
  }

  isend(value: unknown, to: number, tag = 0): Request {
    this.#checkRank(to, 'to')
    this.#checkTag(tag)
    const array = isArray(value) ? value : this.#host.pack(value)
    const number = this.#native.isend(this.#comm, array, to, isArray(value) ? tag : VALUES + tag)
    return this.#host.requests.add(this.#comm, number, [array])
  }

  irecv(into: MpiArray, from = -1, tag = -1): Request {
    if (from >= 0) this.#checkRank(from, 'from')
    return this.#host.requests.add(this.#comm, this.#native.irecv(this.#comm, into, from, tag), [into], true)
  }

  ibarrier(): Request {
    return this.#begin(I.barrier, NONE, NONE, 0, -1)
  }

  ibcast(array: MpiArray, root = 0): Request {
    return this.#begin(I.bcast, array, array, 0, root)
  }

  ireduce<T extends MpiArray>(values: T, op: ReduceOp = 'sum', root = 0, into: T = values): Request {
    this.#checkLength(into, values.length, 'ireduce')
    return this.#begin(I.reduce, values, into, this.#opOf(values, op), root)
  }

  iallreduce<T extends MpiArray>(values: T, op: ReduceOp = 'sum', into: T = values): Request {
    this.#checkLength(into, values.length, 'iallreduce')
    return this.#begin(I.reduce, values, into, this.#opOf(values, op), -1)
  }

  igather<T extends MpiArray>(part: T, root: number, into: T | null): Request {
    if (this.rank === root) this.#checkLength(into, part.length * this.size, 'igather')
    return this.#begin(I.gather, part, into ?? part, 0, root)
  }

  iallgather<T extends MpiArray>(part: T, into: T): Request {
    this.#checkLength(into, part.length * this.size, 'iallgather')
    return this.#begin(I.gather, part, into, 0, -1)
  }

  iscatter<T extends MpiArray>(whole: T | null, into: T, root = 0): Request {
    if (this.rank === root) this.#checkLength(whole, into.length * this.size, 'iscatter')
    return this.#begin(I.scatter, whole ?? into, into, 0, root)
  }

  ialltoall<T extends MpiArray>(parts: T, into: T): Request {
    this.#checkEven(parts, 'ialltoall')
    this.#checkLength(into, parts.length, 'ialltoall')
    return this.#begin(I.alltoall, parts, into, 0, -1)
  }

  probe(from = -1, tag = -1): Received {
    this.#host.here()
    this.#native.probe(this.#comm, from, tag, 1)
    return this.#host.messages.received
  }

  iprobe(from = -1, tag = -1): Received | null {
    return this.#native.probe(this.#comm, from, tag, 0) ? this.#host.messages.received : null
  }

  split(color: number, key = this.rank): Comm | null {
    this.#host.here()
    const comm = this.#native.split(this.#comm, color, key)
    if (comm < 0) return null
    this.#host.made(comm)
    return new RankComm(comm, this.#host)
  }

  dup(): Comm {
    return this.split(0) as Comm
  }

  file(path: string, options: MpiFileOptions = {}): MpiFile {
    this.#host.here()
    const file = new RankFile(this.#native, this.#comm, path, options, () => this.#host.here())
    this.#host.opened(file)
    return file
  }

  async hdf5(path: string, mode: 'r' | 'w' | 'r+' = 'w'): Promise<Hdf5File> {
    await this.#host.loadHdf5()
    const file = new RankHdf5File(
      { native: this.#native, comm: this.#comm, here: () => this.#host.here() },
      path,
      mode,
    )
    this.#host.opened(file)
    return file
  }

  wtime(): number {
    return this.#native.wtime()
  }

  // --- what several calls use ---

  #gather(part: MpiArray, root: number, into: MpiArray | undefined): MpiArray | null {
    const isHere = root < 0 || this.rank === root
    const target = isHere ? (into ?? like(part, part.length * this.size)) : part
    if (isHere) this.#checkLength(target, part.length * this.size, 'gather')
    this.#host.here()
    this.#native.gather(this.#comm, part, target, root, NONE, NONE, 0)
    return isHere ? target : null
  }

  #gatherv<T extends MpiArray>(part: T, root: number, into?: T): T | null {
    this.#host.here()
    const isHere = root < 0 || this.rank === root
    const counts = new Int32Array(this.size)
    this.#native.gather(this.#comm, new Int32Array([part.length]), counts, root, NONE, NONE, 0)
    const target = isHere ? (into ?? like(part, sumOf(counts))) : part
    if (isHere) this.#checkLength(target, sumOf(counts), 'gatherv')
    this.#native.gather(this.#comm, part, target, root, counts, startsOf(counts), 1)
    return isHere ? target : null
  }

  #gatherValues(value: unknown, root: number): unknown[] | null {
    this.#host.here()
    const bytes = this.#host.pack(value)
    const lengths = new Int32Array(this.size)
    this.#native.gather(this.#comm, new Int32Array([bytes.length]), lengths, -1, NONE, NONE, 0)
    const isHere = root < 0 || this.rank === root
    const all = new Uint8Array(isHere ? sumOf(lengths) : 0)
    const starts = startsOf(lengths)
    this.#native.gather(this.#comm, bytes, all, root, lengths, starts, 1)
    if (!isHere) return null
    return Array.from(starts, (start, i) =>
      this.#host.unpack(all.subarray(start, start + (lengths[i] as number))),
    )
  }

  #scatter(whole: MpiArray | null, into: MpiArray, root: number): MpiArray {
    this.#checkRank(root, 'root')
    if (this.rank === root) this.#checkLength(whole, into.length * this.size, 'scatter')
    this.#host.here()
    this.#native.scatter(this.#comm, whole ?? into, into, root, NONE, NONE, 0)
    return into
  }

  #scatterValues(values: readonly unknown[] | null, root: number): unknown {
    this.#checkRank(root, 'root')
    const packed = this.rank === root ? this.#packed(values, 'scatter') : null
    const counts = packed?.counts ?? NONE
    const own = new Int32Array(1)
    this.#host.here()
    this.#native.scatter(this.#comm, counts, own, root, NONE, NONE, 0)
    const into = new Uint8Array(own[0] as number)
    this.#native.scatter(this.#comm, packed?.bytes ?? into, into, root, counts, startsOf(counts), 1)
    return this.#host.unpack(into)
  }

  #alltoallValues(values: readonly unknown[]): unknown[] {
    const { bytes, counts } = this.#packed(values, 'alltoall')
    const parts = this.alltoallv(bytes, [...counts])
    // Each rank learns how long its parts are.
    const theirs = new Int32Array(this.size)
    this.#native.alltoall(this.#comm, counts, theirs)
    const starts = startsOf(theirs)
    return Array.from(starts, (start, i) =>
      this.#host.unpack(parts.subarray(start, start + (theirs[i] as number))),
    )
  }

  #packed(values: readonly unknown[] | null, what: string): { bytes: Uint8Array; counts: Int32Array } {
    if (!Array.isArray(values) || values.length !== this.size) {
      const got = Array.isArray(values) ? `${values.length} values` : typeof values
      throw misuse(`${what}: ${got} for ${this.size} ranks`, 'Give a list with one for each rank.')
    }
    const parts = values.map(value => this.#host.pack(value))
    return { bytes: Buffer.concat(parts), counts: Int32Array.from(parts, part => part.length) }
  }

  #reduce(values: number | MpiArray, op: ReduceOp, root: number, into?: number | MpiArray): unknown {
    const isNumber = typeof values === 'number'
    const code = this.#opOf(values, op)
    const whole = isNumber && code >= 4
    const from = isNumber ? (whole ? new Int32Array([values]) : new Float64Array([values])) : values
    const target = isNumber ? from : ((into as MpiArray | undefined) ?? like(values, values.length))
    this.#checkLength(target, from.length, 'reduce')
    this.#host.here()
    this.#native.reduce(this.#comm, from, target, code, root)
    return isNumber ? target[0] : target
  }

  #opOf(values: unknown, op: ReduceOp): number {
    const code = REDUCE_OPS.indexOf(op)
    if (code < 0) throw misuse(`'${op}' is no operation`, `It is one of ${REDUCE_OPS.join(', ')}.`)
    if (typeof values !== 'number' && !isArray(values)) {
      throw misuse(`${typeof values} cannot be reduced`, 'Give a number, or an array of numbers.')
    }
    if (code >= 4 && (values instanceof Float64Array || values instanceof Float32Array)) {
      throw misuse(`'${op}' is for whole numbers`, 'Use an Int32Array, or sum, prod, min or max.')
    }
    return code
  }

  #begin(kind: number, array: MpiArray, into: MpiArray, op: number, root: number): Request {
    if (root !== -1) this.#checkRank(root, 'root')
    this.#host.here()
    const number = this.#native.icollective(this.#comm, kind, array, into, op, root)
    return this.#host.requests.add(this.#comm, number, [array, into])
  }

  #checkRank(rank: number, what: string): void {
    if (Number.isInteger(rank) && rank >= 0 && rank < this.size) return
    throw misuse(
      `${what} is rank ${String(rank)}, and there are ${this.size}`,
      `Ranks go from 0 to ${this.size - 1}.`,
    )
  }

  #checkTag(tag: number): void {
    if (Number.isInteger(tag) && tag >= 0 && tag < VALUES) return
    throw misuse(`the tag is ${String(tag)}`, `Write a whole number from 0 to ${VALUES - 1}.`)
  }

  #checkEven(parts: MpiArray, what: string): void {
    if (parts.length % this.size === 0) return
    throw misuse(
      `${what}: ${parts.length} elements cannot be shared out evenly to ${this.size} ranks`,
      'Use alltoallv with the length of each part.',
    )
  }

  #checkLength(array: MpiArray | null, needed: number, what: string): void {
    if (array && array.length === needed) return
    const has = array ? `${array.length} elements` : 'no array'
    throw misuse(`${what}: rank ${this.rank} has ${has}, not ${needed}`, 'Look at the lengths of the arrays.')
  }
}
