/**
 * The process of one rank. It is started by mpirun and kept for the whole run: for each task it gets a communicator of its
 * own, runs the function and waits for the next. While it waits, it uses no CPU.
 */
import { createConnection } from 'node:net'
import { writeFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { MillraceError } from '../../core/errors.ts'
import { messageOf } from '../../general/thrown.ts'
import { setHost } from '../../model/client.ts'
import type { Client } from '../../model/client.ts'
import type { Variant } from '../../model/definition.ts'
import { Decoder } from '../../model/encoding/decode.ts'
import type { DecodeHooks } from '../../model/encoding/decode.ts'
import { Encoder } from '../../model/encoding/encode.ts'
import { bytesOf } from '../../model/encoding/typed-arrays.ts'
import { ONE_CPU } from '../../model/granted.ts'
import type { Granted } from '../../model/granted.ts'
import type { MpiArray } from '../../model/mpi/comm.ts'
import { partOf } from '../../model/mpi/form.ts'
import { KeptMemory } from '../threads/kept-memory.ts'
import { TaskModules } from '../threads/modules.ts'
import { clockOrigin, STATUS } from '../threads/protocol.ts'
import { OutputWriter } from '../threads/task-outputs.ts'
import { TaskReader } from '../threads/task-reader.ts'
import type { ReceivedTask } from '../threads/task-reader.ts'
import { ThreadLog } from '../threads/thread-log.ts'
import { FrameReader, frame } from './frames.ts'
import type { FromRank, RankStart, TaskHeader, ToRank, WireBlob } from './frames.ts'
import { loadMpi } from './native.ts'
import { PLACE_BYTES, WHERE } from './places.ts'
import { RankComm, isArray } from './rank-comm.ts'
import type { CommHost } from './rank-comm.ts'
import type { RankFile } from './rank-file.ts'
import { Values } from './values.ts'

const start = JSON.parse(process.env['MILLRACE_MPI'] ?? '{}') as RankStart
delete process.env['MILLRACE_MPI']
/** Results up to this size go through the socket. */
const INLINE = 64 * 1024

const socket = createConnection(start.socket)
socket.on('close', () => process.exit(1))
socket.on('error', () => process.exit(1))
const say = (header: FromRank, parts: readonly Uint8Array[] = []): void => {
  socket.write(frame(header, parts))
}

const native = (() => {
  try {
    return loadMpi(start.addon)
  } catch (error) {
    say({ type: 'refused', reason: messageOf(error) })
    throw error
  }
})()
native.init()
const world = native.rank(0)
const places = new Uint8Array(native.map(start.places, start.placesBytes))
native.places(places, world)

const modules = new TaskModules()
const hooks: DecodeHooks = {
  findClass: (module, name) => modules.findClass(module, name),
  slot: () => undefined,
}
const hooksFor = (slots: unknown[] | null): DecodeHooks => ({ ...hooks, slot: index => slots?.[index] })
const encoder = new Encoder()
const outputs = new OutputWriter(encoder, modules)
const reader = new TaskReader(new KeptMemory(), true)
const values = new Values(modules, hooks)
const shift = clockOrigin() - start.startedAt

let current: ReceivedTask | null = null
let granted: Granted = ONE_CPU
const log = new ThreadLog(start.logs, () => current)

const refuse = (what: string): never => {
  throw new MillraceError('MR_MPI_MISUSE', `${what} was called in an MPI task`, {
    hint: 'MPI tasks call no tasks: return what the program needs for it.',
  })
}
const client = new Proxy({ granted: () => granted } as Partial<Client>, {
  get: (own, name) => own[name as keyof Client] ?? (() => refuse(String(name))),
}) as Client
setHost({ client: () => client, main: () => Promise.resolve() })

// --- where the program is ---

const where = places.subarray(world * PLACE_BYTES + WHERE.at, world * PLACE_BYTES + WHERE.at + WHERE.size - 1)
/** To look takes as long as several calls: after so many, it is done once in a millisecond. */
const LOOKS = 100
/** Where our own code is. */
const ours = new URL('.', import.meta.url).href
let looks = 0
let lookedAt = 0

function here(): void {
  if (++looks > LOOKS) {
    const now = performance.now()
    if (now - lookedAt < 1) return
    lookedAt = now
  }
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 8
  const lines = (new Error('where').stack ?? '').split('\n').slice(1)
  Error.stackTraceLimit = stackTraceLimit
  const own = lines.find(line => !line.includes(ours) && !line.includes('node:'))
  const text = /\(?(?:file:\/\/)?([^()\s]+:\d+):\d+\)?$/.exec(own ?? '')?.[1] ?? ''
  where.fill(0)
  new TextEncoder().encodeInto(text, where)
}

// --- running ---

async function run(header: TaskHeader, bytes: Buffer): Promise<void> {
  const startedAt = performance.now()
  let task: ReceivedTask | null = null
  const given: ArrayBufferLike[] = []
  let status: number = STATUS.ok
  let result: unknown
  native.begin(header.rank)
  looks = 0
  const files: RankFile[] = []
  const comms: number[] = []
  try {
    const definition = await modules.find(header.key, header.module, start.entry)
    let at = header.record
    for (const blob of header.blobs) {
      if ('path' in blob) given.push(native.map(blob.path, blob.size))
      else if ('size' in blob) {
        given.push(new Uint8Array(bytes.subarray(at, at + blob.size)).buffer)
        at += blob.size
      }
    }
    const kinds = new Map([[header.kind, { key: header.key, module: header.module, definition }]])
    const decoder = new Decoder(new Uint8Array(bytes.subarray(0, header.record)), hooksFor(null))
    task = reader.rest(decoder, given, reader.header(decoder, kinds), hooksFor)
    task.definition = { ...definition, returns: 0 }
    current = task
    granted = { cpus: header.threads, bound: header.cpus.length > 0 ? header.cpus : null, gpus: header.gpus }
    const scratch = new Scratch(task, header, given)
    const comm = native.create(Int32Array.from(header.ranks), header.tag)
    comms.push(comm)
    const host: CommHost = {
      native,
      here,
      pack: value => values.pack(value),
      unpack: packed => values.unpack(packed),
      opened: file => files.push(file),
      made: made => comms.push(made),
    }
    const ranks = new RankComm(comm, host)
    scratch.begin(ranks)
    const args = parts(task, header, ranks.size)
    const { run: body } = definition.variants[task.variant] as Variant
    result = await (body(ranks, ...args) as unknown)
    for (const file of files.splice(0).reverse()) file.close()
    const reduce = definition.mpi?.reduce
    if (reduce) result = ranks.reduce(result as number, reduce, 0)
    scratch.end(ranks)
    if ((header.root ?? header.rank) !== header.rank) result = undefined
    if (header.rank !== 0) task.written = []
  } catch (error) {
    status = STATUS.failed
    result = error
  }
  for (const comm of status === STATUS.ok ? comms.reverse() : []) native.free(comm)
  native.begin(header.rank)
  end(header, task, status, result, startedAt, given)
}

/** What each rank gets of the arguments. */
const parts = (task: ReceivedTask, { layout, rank }: TaskHeader, size: number): unknown[] =>
  task.args.map((value, i) => {
    const own = layout[i]
    if (!own) return value
    if (!isArray(value) && !Array.isArray(value)) {
      throw new MillraceError(
        'MR_MPI_MISUSE',
        `parameter ${i} has a layout, and is neither an array nor a list`,
      )
    }
    const [from, to] = partOf(own, value.length, rank, size)
    return isArray(value) ? value.subarray(from, to) : value.slice(from, to)
  })

/** Small arrays that a task writes came inside its record: the ranks share them in one file. */
class Scratch {
  readonly #pairs: { own: Uint8Array; shared: Uint8Array }[] = []

  constructor(task: ReceivedTask, { scratch, rank }: TaskHeader, given: readonly ArrayBufferLike[]) {
    if (!scratch) return
    const memory = native.map(scratch.path, scratch.size)
    let at = 0
    for (const { value } of task.written) {
      if (!isArray(value) || value.byteLength === 0 || value.byteLength + at > scratch.size) continue
      if (given.includes(value.buffer)) continue
      const type = value.constructor as new (buffer: ArrayBuffer, offset: number, length: number) => MpiArray
      const shared = new type(memory, at, value.length)
      at += Math.ceil(value.byteLength / 8) * 8
      if (rank === 0) bytesOf(shared).set(bytesOf(value))
      this.#pairs.push({ own: bytesOf(value), shared: bytesOf(shared) })
      task.args = task.args.map(argument => (argument === value ? shared : argument))
    }
  }

  begin(ranks: RankComm): void {
    if (this.#pairs.length > 0) ranks.barrier()
  }

  end(ranks: RankComm): void {
    if (this.#pairs.length === 0) return
    ranks.barrier()
    for (const { own, shared } of this.#pairs) own.set(shared)
  }
}

let made = 0

function end(
  header: TaskHeader,
  task: ReceivedTask | null,
  status: number,
  result: unknown,
  startedAt: number,
  given: readonly ArrayBufferLike[],
): void {
  const took = performance.now() - startedAt
  const printed = log.take(task)
  if (task) outputs.write(task, status, result, startedAt + shift, took, printed)
  else {
    outputs.writeError(header.id, result, startedAt + shift, took, printed)
    encoder.varint(0)
  }
  current = null
  const behind: Uint8Array[] = []
  const blobs = encoder.blobs.map((blob): WireBlob => {
    const place = given.indexOf(blob)
    if (place >= 0) return { given: place }
    const bytes = new Uint8Array(blob)
    if (bytes.length <= INLINE) {
      behind.push(bytes)
      return { size: bytes.length }
    }
    const path = `${start.folder}/r${world}-${++made}`
    writeFileSync(path, bytes)
    return { path, size: bytes.length }
  })
  const { id, attempt, rank } = header
  const record = encoder.copy()
  // Whether it failed is in the record: what could not be sent is a failure too.
  const ok = record[varintLength(record)] === STATUS.ok
  say({ type: 'ended', id, attempt, rank, ok, blobs, record: record.length }, [record, ...behind])
}

function varintLength(bytes: Uint8Array): number {
  let at = 0
  while ((bytes[at] as number) > 0x7f) at++
  return at + 1
}

const frames = new FrameReader<ToRank>((header, bytes) => {
  if (header.type === 'end') {
    native.finalize()
    process.exit(0)
  }
  void run(header, bytes)
})

async function begin(): Promise<void> {
  if (start.typescript) await modules.enableTypescript()
  for (const module of start.modules) await modules.load(module).catch(() => undefined)
  log.isQuiet = false
  say({ type: 'hello', rank: world, size: native.size(0), pid: process.pid, mpi: native.version() })
  socket.on('data', chunk => frames.take(chunk as Buffer))
}

void begin()
