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
import { globalState } from '../../model/global-state.ts'
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
import { EarlyOutputs } from '../threads/early-outputs.ts'
import type { Releasing } from '../threads/early-outputs.ts'
import { KeptMemory } from '../threads/kept-memory.ts'
import { TaskModules } from '../threads/modules.ts'
import { clockOrigin, STATUS } from '../threads/protocol.ts'
import type { Steps } from '../threads/outlet.ts'
import { ReleaseWriter } from '../threads/release-writer.ts'
import { OutputWriter } from '../threads/task-outputs.ts'
import { TaskReader } from '../threads/task-reader.ts'
import type { ReceivedTask } from '../threads/task-reader.ts'
import { ThreadLog } from '../threads/thread-log.ts'
import { FrameReader, frame } from './frames.ts'
import type { FromRank, RankStart, TaskHeader, ToRank, WireBlob } from './frames.ts'
import { Messages } from './messages.ts'
import { loadMpi } from './native.ts'
import { PLACE_BYTES, WHERE } from './places.ts'
import { RankComm, isArray } from './rank-comm.ts'
import { SiteMerge, arraysIn, isFirstOnSite } from './rank-merge.ts'
import type { CommHost } from './rank-comm.ts'
import { loadHdf5 } from './rank-hdf5.ts'
import { RankSteps } from './rank-steps.ts'
import { Requests } from './requests.ts'
import { Values } from './values.ts'

const start = JSON.parse(process.env['MILLRACE_MPI'] ?? '{}') as RankStart
for (const name of ['MPI', 'RANK_COMMAND', 'NODE', 'START', 'STARTER']) delete process.env[`MILLRACE_${name}`]
globalState.moduleRoot = start.moduleRoot
process.chdir(start.cwd)
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
const messages = new Messages(native)

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
const writer = new ReleaseWriter(modules)
const shift = clockOrigin() - start.startedAt

let current: ReceivedTask | null = null
/** The task as it was defined, with what it released. */
let running: { header: TaskHeader; task: Releasing } | null = null
/** Of tasks that failed: MPI may still read and fill their arrays. */
const abandoned: Requests[] = []
const generators = new Map<number, RankSteps>()
let granted: Granted = ONE_CPU
const log = new ThreadLog(start.logs, () => current)

const refuse = (what: string): never => {
  throw new MillraceError('MR_MPI_MISUSE', `${what} was called in an MPI task`, {
    hint: 'MPI tasks call no tasks: return what the program needs for it.',
  })
}
const early = new EarlyOutputs(modules, {
  send: written => sendReleased(written),
  post: () => undefined,
  numberOf: () => null,
  waitForRoom: () => Promise.resolve(),
  shift,
})
/** Values of the task that runs here are released under the number of its rank. */
const ready = (index: number, value: unknown): void => {
  if (!running) throw new MillraceError('MR_RELEASE', `ready(${index}, …) was called outside a task`)
  const { header, task } = running
  const { returns, stream } = task.definition
  const why = stream
    ? 'a generator releases by `yield`'
    : returns === 0
      ? 'the task gives one result for all ranks'
      : index !== header.rank
        ? `this is rank ${header.rank}, which releases its own value only`
        : null
  if (why !== null) {
    throw new MillraceError('MR_RELEASE', `ready(${index}, …) in ${task.definition.name}: ${why}`, {
      hint: "Write returns: 'each' and ready(comm.rank, value).",
    })
  }
  early.ready(task, index, value)
}
const client = new Proxy({ granted: () => granted, ready } as Partial<Client>, {
  get: (own, name) => own[name as keyof Client] ?? (() => refuse(String(name))),
}) as Client
setHost({ client: () => client, main: () => Promise.resolve() })

// --- where the program is ---

const where = places.subarray(world * PLACE_BYTES + WHERE.at, world * PLACE_BYTES + WHERE.at + WHERE.size - 1)
/** A look takes as long as many calls. After this many, the rank spends that fraction of its time on looks, and reads the clock only now and then. */
const LOOKS = 100
const SHARE = 200
const CLOCK = 0xf
/** Where our own code is. */
const ours = new URL('.', import.meta.url).href
let looks = 0
let nextLook = 0

function here(): void {
  if (++looks > LOOKS && ((looks & CLOCK) !== 0 || performance.now() < nextLook)) return
  const began = performance.now()
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 8
  const lines = (new Error('where').stack ?? '').split('\n').slice(1)
  Error.stackTraceLimit = stackTraceLimit
  const own = lines.find(line => !line.includes(ours) && !line.includes('node:'))
  const text = /\(?(?:file:\/\/)?([^()\s]+:\d+):\d+\)?$/.exec(own ?? '')?.[1] ?? ''
  where.fill(0)
  new TextEncoder().encodeInto(text, where)
  const ended = performance.now()
  nextLook = ended + SHARE * (ended - began)
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
  const files: { close(): void }[] = []
  const comms: number[] = []
  let requests: Requests | null = null
  try {
    const definition = await modules.find(header.key, header.module, start.entry)
    let at = header.record
    for (const blob of header.blobs) {
      if ('path' in blob) given.push(native.map(`${start.folder}/${blob.path}`, blob.size))
      else if ('size' in blob) {
        given.push(new Uint8Array(bytes.subarray(at, at + blob.size)).buffer)
        at += blob.size
      }
    }
    const kinds = new Map([[header.kind, { key: header.key, module: header.module, definition }]])
    const decoder = new Decoder(new Uint8Array(bytes.subarray(0, header.record)), hooksFor(null))
    task = reader.rest(decoder, given, reader.header(decoder, kinds), hooksFor)
    running = { header, task: { ...task, startedAt } }
    task.definition = { ...definition, returns: 0 }
    task.early = null
    current = task
    native.bind(Int32Array.from(header.cpus))
    granted = { cpus: header.threads, bound: header.cpus.length > 0 ? header.cpus : null, gpus: header.gpus }
    const written = new Written(task, header, given)
    const comm = native.create(Int32Array.from(header.ranks), header.tag)
    comms.push(comm)
    requests = new Requests(native, here)
    const host: CommHost = {
      native,
      here,
      pack: value => values.pack(value),
      unpack: packed => values.unpack(packed),
      opened: file => files.push(file),
      made: made => comms.push(made),
      requests,
      messages,
      loadHdf5: () => loadHdf5(start.compiler),
    }
    const ranks = new RankComm(comm, host)
    written.begin(ranks)
    const args = parts(task, header, ranks.size)
    const { run: body } = definition.variants[task.variant] as Variant
    const reduce = definition.mpi?.reduce
    const own = (value: unknown): unknown => {
      const one = reduce ? (ranks.reduce(value as number, reduce, 0) as unknown) : value
      return (header.root ?? header.rank) === header.rank ? one : undefined
    }
    const returned = body(ranks, ...args) as unknown
    const steps = generators.get(header.id)
    if (steps) {
      await steps.run(returned as Steps, (step, value) => {
        writer.write(header.id, startedAt + shift, performance.now() + shift, step, own(value), 0)
        sendReleased(writer.encoder)
      })
    } else result = await returned
    requests.finish()
    for (const file of files.splice(0).reverse()) file.close()
    if (!steps) result = own(result)
    written.end(ranks)
    if (header.rank !== 0) task.written = []
    if (definition.returns > 0 && released(running)) {
      early.expectSame(running.task, header.rank, result)
      result = undefined
    }
  } catch (error) {
    status = STATUS.failed
    result = error
    if (requests?.isEmpty === false) abandoned.push(requests)
  }
  messages.forget()
  for (const comm of status === STATUS.ok ? comms.reverse() : []) native.free(comm)
  end(header, task, status, result, startedAt, given)
  running = null
  generators.delete(header.id)
}

/** This attempt, or one before it, has released what this rank returns. */
function released(own: { header: TaskHeader; task: Releasing } | null): boolean {
  if (!own) return false
  const { early: known, released: now } = own.task
  const { rank } = own.header
  return now?.has(rank) === true || (known?.type === 'ready' && known.checks.has(rank))
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

/** Arrays that a task writes. Small ones came inside its record: the ranks of a machine share them in one file. */
class Written {
  readonly #header: TaskHeader
  readonly #pairs: { own: Uint8Array; shared: Uint8Array }[] = []
  /** On several machines: what has to be joined at the end. */
  readonly #joined = new Set<MpiArray>()
  #merge: SiteMerge | null = null

  constructor(task: ReceivedTask, header: TaskHeader, given: readonly ArrayBufferLike[]) {
    this.#header = header
    const { scratch, sites } = header
    if (!scratch) return
    if (sites) for (const { value } of task.written) arraysIn(value, given, this.#joined)
    const memory = native.map(`${start.folder}/${scratch.path}`, scratch.size)
    let at = 0
    for (const { value } of task.written) {
      if (!isArray(value) || value.byteLength === 0 || value.byteLength + at > scratch.size) continue
      if (given.includes(value.buffer)) continue
      const type = value.constructor as new (buffer: ArrayBuffer, offset: number, length: number) => MpiArray
      const shared = new type(memory, at, value.length)
      at += Math.ceil(value.byteLength / 8) * 8
      if (isFirstOnSite(header)) bytesOf(shared).set(bytesOf(value))
      if (sites) this.#joined.add(shared)
      this.#pairs.push({ own: bytesOf(value), shared: bytesOf(shared) })
      task.args = task.args.map(argument => (argument === value ? shared : argument))
    }
  }

  begin(ranks: RankComm): void {
    if (this.#joined.size > 0) this.#merge = new SiteMerge(this.#header, ranks.dup(), [...this.#joined])
    if (this.#pairs.length > 0 || this.#merge) ranks.barrier()
  }

  end(ranks: RankComm): void {
    if (this.#pairs.length === 0 && !this.#merge) return
    ranks.barrier()
    this.#merge?.end()
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
  const { blobs, behind } = beside(encoder.blobs, given)
  const { id, attempt, rank } = header
  const record = encoder.copy()
  // Whether it failed is in the record: what could not be sent is a failure too.
  const ok = record[varintLength(record)] === STATUS.ok
  const isReleased = ok && released(running)
  say({ type: 'ended', id, attempt, rank, ok, isReleased, blobs, record: record.length }, [record, ...behind])
}

/** What goes with a record: small buffers behind it, large ones in files, and those that came with the task by their place. */
function beside(
  buffers: readonly ArrayBufferLike[],
  given: readonly ArrayBufferLike[],
): { blobs: WireBlob[]; behind: Uint8Array[] } {
  const behind: Uint8Array[] = []
  const blobs = buffers.map((blob): WireBlob => {
    const place = given.indexOf(blob)
    if (place >= 0) return { given: place }
    const bytes = new Uint8Array(blob)
    if (bytes.length <= INLINE) {
      behind.push(bytes)
      return { size: bytes.length }
    }
    const path = `r${world}-${++made}`
    writeFileSync(`${start.folder}/${path}`, bytes)
    return { path, size: bytes.length }
  })
  return { blobs, behind }
}

/** The values in it are copies. */
function sendReleased(written: Encoder): void {
  if (!running) return
  const { id, attempt, rank } = running.header
  const { blobs, behind } = beside(written.blobs, [])
  const record = written.copy()
  say({ type: 'released', id, attempt, rank, blobs, record: record.length }, [record, ...behind])
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
  if (header.type === 'step') return generators.get(header.id)?.ask(header.isWanted)
  if (header.type === 'over') return
  if (header.isGenerator) generators.set(header.id, new RankSteps())
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
