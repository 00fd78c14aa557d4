import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
// The global one is looked up anew each time.
import { performance } from 'node:perf_hooks'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { MillraceError } from '../../core/errors.ts'
import { isAsync, isThenable } from '../../general/async.ts'
import { SpinBackoff } from '../../general/spin-backoff.ts'
import { Decoder } from '../../model/encoding/decode.ts'
import type { Definition, Variant } from '../../model/definition.ts'
import { Encoder } from '../../model/encoding/encode.ts'
import { memoryOf } from '../../model/encoding/typed-arrays.ts'
import { setHost } from '../../model/client.ts'
import { globalState } from '../../model/global-state.ts'
import { ThreadBinding } from './grants.ts'
import { KeptMemory } from './kept-memory.ts'
import { EarlyOutputs } from './early-outputs.ts'
import type { Releasing } from './early-outputs.ts'
import { TaskModules } from './modules.ts'
import type { Steps } from './outlet.ts'
import { STATUS, clockOrigin } from './protocol.ts'
import type { FromThread, ThreadStart, ToThread } from './protocol.ts'
import { ResultSender } from './result-sender.ts'
import { RingReader, RingWriter } from './ring.ts'
import { TaskReader } from './task-reader.ts'
import type { ReceivedTask } from './task-reader.ts'
import { OutputWriter } from './task-outputs.ts'
import { ThreadClient } from './thread-client.ts'
import { ThreadLog } from './thread-log.ts'
import { flushOutput, setEnvironment } from './thread-process.ts'

/**
 * A compute thread. Takes tasks from its ring or as messages, runs them one at a time, and sends results
 * back. While a task waits for tasks that it called, others may run; otherwise nothing is interleaved.
 *
 * An I/O thread does the same with I/O tasks, and never waits for one before it takes the next.
 */

/** How long to look for a next task before sleeping; milliseconds. */
const SPIN = 0.05
/** After this long in the loop over the ring, messages get their turn; milliseconds. */
const TURN = 2
/** After this long, what else waits for the event loop gets its turn, too; milliseconds. It costs 0.1 ms: code and data have left the caches. */
const WHOLE_TURN = 20
/** An I/O task that does not let go of its thread for this long is in the way of others; milliseconds. */
const BLOCKS = 4

const port = parentPort as MessagePort
const start = workerData as ThreadStart
const shift = clockOrigin() - start.startedAt
globalState.moduleRoot = start.moduleRoot ?? null

const modules = new TaskModules()
const toThread = new RingReader(start.toThread)
const ringDecoder = new Decoder(toThread.memory, hooksFor(null))
const encoder = new Encoder()
const outputs = new OutputWriter(encoder, modules)
const memory = new KeptMemory()
const reader = new TaskReader(memory)
const kinds = new Map<number, { key: string; module: string; definition: Definition | null }>()
const backoff = new SpinBackoff()
const binding = new ThreadBinding()
const inbox: Extract<ToThread, { type: 'task' }>[] = []
const results = new ResultSender(port, toThread, new RingWriter(start.fromThread), inbox, start.io)
const context = new AsyncLocalStorage<Running>()

type Running = Releasing

/** The task whose synchronous code runs now. */
let current: Running | null = null
/** A task is on the way that does not wait for others: nothing else may start. */
let busy = false
/** Tasks that have begun and wait for promises: they go on in turns of the event loop. */
let suspended = 0

const log = new ThreadLog(start.logs, () => current ?? context.getStore() ?? null)

const client = new ThreadClient(port, modules, () => current ?? context.getStore() ?? null, {
  blocked: task => {
    const { steps } = task as Running
    if (steps) steps.blockedAt = performance.now()
    // The coordinator will give this lane to others while the task waits.
    if (task !== active) return
    release(active)
    schedule()
  },
  resumed: task => {
    const { steps } = task as Running
    if (steps) steps.waited += performance.now() - steps.blockedAt
    if (start.io) return
    busy = true
    active = task as Running
  },
  ready: (task, index, value) => {
    if (task) client.rejectBusy(task, value)
    early.ready(task as Running | null, index, value)
  },
})
/** The task that `busy` is about. */
let active: Running | null = null
/** Tasks that were lent memory of others. */
const debtors = new Set<Running>()

// A task that ends its thread must not take with it what it only reads.
process.prependListener('exit', () => {
  for (const { id, lent } of debtors) post({ type: 'given-back', task: id, lent }, lent)
})

const early = new EarlyOutputs(modules, {
  shift,
  post,
  numberOf: future => client.numberOf(future),
  waitForRoom: (task, items, bytes) => client.waitForRoom(task, items, bytes),
  send: (record, task) => {
    results.lookedAt = performance.now()
    if (results.send(record, [], false, true)) task.hasPosted = true
  },
})
outputs.expectSame = (task, index, value) => early.expectSame(task, index, value)

setHost({
  client: () => client,
  main: () => Promise.resolve(),
})

function hooksFor(slots: unknown[] | null) {
  return {
    findClass: (module: string, name: string) => modules.findClass(module, name),
    slot: (index: number) => slots?.[index],
    stream: (id: number, memory: ArrayBufferLike) => client.takeStream(id, memory),
  }
}

function post(message: FromThread, transfer: readonly ArrayBuffer[] = []): void {
  results.post(message, transfer)
}

// --- taking tasks ---

let scheduled = false
function schedule(): void {
  if (scheduled) return
  scheduled = true
  setImmediate(() => {
    scheduled = false
    pumpApart()
  })
}

/** A task that is suspended may have called for it: the next one must not run as if that had. */
const pumpApart = AsyncResource.bind(pump)

let begun = false
/** Messages with tasks or memory so far: records say how many come before them. */
let received = 0
/** A record that waits for messages which were sent before it, or -1. */
let claimed = -1

function pump(): void {
  if (!begun) return
  toThread.awake()
  const begunAt = performance.now()
  let until = begunAt + TURN
  let ran = false
  while (!busy) {
    const message = inbox.shift()
    if (message) {
      receive(new Decoder(message.bytes, hooksFor(null)), message.blobs)
      continue
    }
    let at = claimed
    claimed = -1
    if (at < 0) at = toThread.next()
    if (at < 0 && ran) {
      results.announce()
      at = spin()
      ran = false
    }
    if (at < 0) break
    ran = true
    ringDecoder.at = at
    const before = ringDecoder.word()
    if (before > received) {
      claimed = at
      if (takeMessages(before)) continue
      results.announce()
      return schedule()
    }
    ringDecoder.at = at
    const known = reader.peekKind(ringDecoder, kinds)
    if (known) receiveFromRing()
    else {
      const bytes = toThread.memory.slice(at, toThread.end)
      toThread.release()
      receive(new Decoder(bytes, hooksFor(null)), [])
    }
    if (results.lookedAt > until) {
      if (suspended > 0 || results.lookedAt > begunAt + WHOLE_TURN) return schedule()
      takeMessages(Infinity)
      until = results.lookedAt + TURN
    }
  }
  results.announce()
  if (busy) return
  toThread.sleep()
  if (!toThread.empty || inbox.length > 0) schedule()
}

/** Takes messages that have not had their turn yet, until there are so many with tasks or memory. Returns whether there are. */
function takeMessages(until: number): boolean {
  while (received < until) {
    const next = receiveMessageOnPort(port) as { message: ToThread | null } | undefined
    if (!next) return false
    if (next.message !== null) handle(next.message)
  }
  return true
}

/**
 * The coordinator often has an answer to what it was just told, and waking a thread takes several times as
 * long as giving it: so look for a moment before going to sleep.
 */
function spin(): number {
  if (!backoff.maySpin) return -1
  const end = performance.now() + SPIN
  do {
    for (let i = 0; i < 20; i++) {
      if (toThread.empty) continue
      backoff.found()
      return toThread.next()
    }
  } while (performance.now() < end)
  backoff.spunInVain()
  return -1
}

function receiveFromRing(): void {
  const at = ringDecoder.at
  let task: ReceivedTask | null = null
  const header = reader.header(ringDecoder, kinds)
  const buffers = reader.buffers(ringDecoder, toThread.end, [], header)
  try {
    task = reader.rest(ringDecoder, buffers, header, hooksFor)
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    const bytes = toThread.memory.slice(at, toThread.end)
    toThread.release()
    return receive(new Decoder(bytes, hooksFor(null)), [], buffers)
  }
  toThread.release()
  run(task)
}

/** For tasks whose module may have to be loaded first. */
function receive(
  decoder: Decoder,
  beside: readonly ArrayBufferLike[],
  taken: readonly ArrayBufferLike[] | null = null,
): void {
  const header = reader.header(decoder, kinds)
  const blobs = taken ?? reader.buffers(decoder, decoder.length, beside, header)
  const { key, module, definition } = header.kind
  const ready =
    definition && (header.variant === 0 || modules.has(definition.variants[header.variant]?.module ?? ''))
  if (ready && definition) {
    const task = decodeRest(decoder, blobs, header)
    if (task) run(task)
    return
  }
  busy = true
  modules
    .find(key, module, start.entry)
    .then(async found => {
      header.kind.definition = found
      for (const variant of found.variants) if (variant.module) await modules.load(variant.module)
      const task = decodeRest(decoder, blobs, header)
      busy = false
      if (task) run(task)
    })
    .catch((error: unknown) => {
      busy = false
      fail(header.task, error)
    })
    .finally(schedule)
    .catch(() => undefined)
}

function decodeRest(
  decoder: Decoder,
  blobs: readonly ArrayBufferLike[],
  header: ReturnType<TaskReader['header']>,
) {
  try {
    return reader.rest(decoder, blobs, header, hooksFor)
  } catch (error) {
    fail(header.task, error)
    return null
  }
}

// --- running ---

function run(task: ReceivedTask): void {
  for (const { slot, blobs } of task.published) post({ type: 'published', task: task.id, slot, blobs })
  for (const { value, backup } of task.written) {
    // Kept by the coordinator too, because this thread may end under the task.
    if (backup) post({ type: 'guarded', task: task.id, target: memoryOf(value as Uint8Array), backup })
  }
  const running = task as Running
  if (task.lent.length > 0) debtors.add(running)
  const now = performance.now()
  results.lookedAt = now
  running.startedAt = now
  current = running
  if (!start.io) binding.for(task.grant)
  // If the thread ends now, it is because of this one: others may be claimed, and wait.
  if (!start.io) toThread.note = task.id
  // Already now: the task may wait for tasks that it calls before its function returns a promise.
  busy = !start.io
  active = start.io ? null : running
  let result: unknown
  try {
    const { run: body } = task.definition.variants[task.variant] as Variant
    result =
      start.io || isAsync(body)
        ? context.run(running, () => body(...task.args) as unknown)
        : (body(...task.args) as unknown)
  } catch (error) {
    current = null
    if (client.hasCalled(running)) return void finishLater(running, () => Promise.reject(error as Error))
    release(running)
    return settle(running, STATUS.failed, error)
  }
  current = null
  if (start.io) noticeBlocking(running)
  if (running.early?.type === 'generator') {
    const generator = result as Steps
    return void finishLater(running, () => early.runGenerator(running, generator))
  }
  if (isThenable(result) || client.hasCalled(running)) return void finishLater(running, () => result)
  release(running)
  settle(running, STATUS.ok, result)
}

/** Work that is not asynchronous blocks all tasks of the thread: kinds that do it get threads of their own. */
function noticeBlocking({ id, startedAt }: Running): void {
  const milliseconds = performance.now() - startedAt
  if (milliseconds > BLOCKS) post({ type: 'blocking', task: id, milliseconds })
}

/** The thread is free for others, unless they have it already. */
function release(task: Running): void {
  if (active !== task) return
  busy = false
  active = null
}

async function finishLater(task: Running, result: () => unknown): Promise<void> {
  suspended++
  let status: number = STATUS.ok
  let value: unknown
  try {
    value = await context.run(task, async () => (await result()) as unknown)
    early.linkReturned(task, value)
  } catch (error) {
    status = STATUS.failed
    value = error
  }
  try {
    await client.finish(task)
    const written = task.written.filter(({ inPlace }) => !inPlace)
    if (status === STATUS.ok) {
      // What the task took out of what it writes, too: the program may still have it.
      const known = written.flatMap(({ graph }) => graph?.objects ?? [])
      await client.complete(task, [value, ...written.map(({ value: one }) => one)], known)
    }
  } catch (error) {
    if (status === STATUS.ok) {
      status = STATUS.failed
      value = error
    }
  }
  suspended--
  release(task)
  settle(task, status, value)
  schedule()
}

// --- results ---

function settle(task: Running, status: number, value: unknown): void {
  const now = performance.now()
  results.lookedAt = now
  const took = now - task.startedAt
  const printed = log.take(task)
  const lent = outputs.write(task, status, value, task.startedAt + shift, took, printed)
  task.ended = true
  if (task.steps) {
    encoder.double(task.startedAt - task.steps.from)
    encoder.double(task.steps.waited)
    encoder.double(performance.now() - now)
  }
  if (lent.length > 0) debtors.delete(task)
  results.send(encoder, lent, task.hasPosted, status !== STATUS.ok)
}

/** A task that could not even begin. */
function fail(id: number, error: unknown): void {
  results.lookedAt = performance.now()
  outputs.writeError(id, error, results.lookedAt + shift, 0, log.take(null))
  results.send(encoder, [], false, true)
}

// --- messages ---

const COUNTED: readonly string[] = ['task', 'kind', 'memory', 'environment', 'forget-list']

port.on('message', (message: ToThread | null) => {
  if (message !== null) handle(message)
  if (message === null || COUNTED.includes(message.type)) pump()
})

function handle(message: ToThread): void {
  switch (message.type) {
    case 'task':
      received++
      return void inbox.push(message)
    case 'kind':
      received++
      return void kinds.set(message.number, { ...message, definition: null })
    case 'environment':
      received++
      return setEnvironment(message.changes)
    case 'memory':
      received++
      return memory.add(message.entries, message.buffers)
    case 'forget-list':
      received++
      return reader.lists.forget(message.number)
    case 'forget-memory':
      return memory.forget(message.number)
    case 'abandon':
      client.abandon(message.task)
      // It may have held the thread for an answer that was to come at once.
      if (active?.id === message.task) {
        release(active)
        schedule()
      }
      return
    case 'answer':
      return client.answer(message)
    case 'alive?':
      return post({ type: 'alive' })
    case 'end':
      // Not process.exit: the program's own handlers for the end are not meant for threads.
      return void flushOutput().then(() => post({ type: 'flushed' }))
  }
}

async function begin(): Promise<void> {
  if (start.typescript) await modules.enableTypescript()
  // A module that cannot be loaded fails the tasks that need it, not the thread.
  for (const module of start.modules) await modules.load(module).catch(() => undefined)
  begun = true
  log.isQuiet = false
  post({ type: 'ready' })
  pump()
}

void begin()
