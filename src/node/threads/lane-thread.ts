import { messageOf } from '../../general/thrown.ts'
import { Worker } from 'node:worker_threads'
import { placesOf } from '../../general/places.ts'
import { Decoder } from '../../model/encoding/decode.ts'
import type { DecodeHooks } from '../../model/encoding/decode.ts'
import type { FromThread, ThreadStart, ToThread } from './protocol.ts'
import type { ThreadPort } from './thread-port.ts'
import { RingReader, RingWriter, createRing } from './ring.ts'

const RING_SIZE = 2 ** 18
/** What a thread gets to end by itself; milliseconds. */
const END_GRACE = 1000
/** A thread of I/O tasks that does not answer for this long is stuck in one of them; milliseconds. */
const SILENCE = 500

/** What a thread says about its tasks, beside results. */
export type ThreadMessage = Exclude<
  FromThread,
  { type: 'result' } | { type: 'ready' } | { type: 'flushed' } | { type: 'alive' }
>

export interface LaneThreadEvents {
  /** A result record; `end` is where it ends in the decoder's memory. */
  result(decoder: Decoder, end: number, blobs: readonly ArrayBufferLike[], lent: readonly ArrayBuffer[]): void
  message(message: ThreadMessage): void
  /** The class of an error that was thrown there. */
  findClass(module: string, name: string): Function | null
  /** There are results in the ring. */
  announced(): void
  /** Called once, also when the end was asked for. */
  ended(reason: string): void
}

export type LaneThreadOptions = Omit<ThreadStart, 'toThread' | 'fromThread'>

/** The coordinator's side of one compute thread. */
export class LaneThread implements ThreadPort {
  readonly sendTask = null
  readonly askBack = null
  readonly isCutOff = false
  isKilled = false
  readonly #worker: Worker
  readonly #to: RingWriter
  readonly #from: RingReader
  readonly #decoder: Decoder
  readonly #events: LaneThreadEvents
  readonly #hooks: DecodeHooks
  #reason = ''
  #unannounced = false
  #messages = 0
  #silence: NodeJS.Timeout | null = null
  /** What waits for the thread to have loaded its modules; null when it has. */
  #waiting: (() => void)[] | null = []

  constructor(options: LaneThreadOptions, events: LaneThreadEvents) {
    const toThread = createRing(RING_SIZE)
    const fromThread = createRing(RING_SIZE)
    this.#to = new RingWriter(toThread)
    this.#from = new RingReader(fromThread)
    this.#hooks = {
      findClass: (module, name) => events.findClass(module, name),
      slot: () => undefined,
    }
    this.#decoder = new Decoder(this.#from.memory, this.#hooks)
    this.#events = events
    const workerData: ThreadStart = { ...options, toThread, fromThread }
    this.#worker = new Worker(new URL('./thread.js', import.meta.url), {
      name: `millrace ${options.io ? 'io ' : ''}${options.lane}`,
      workerData,
      // A module may read them as it is loaded, here and there.
      argv: process.argv.slice(2),
      env: { ...process.env, MILLRACE_RUN: options.run },
      execArgv: [...loaderArguments(), '--conditions=millrace-thread'],
    })
    this.#worker.on('message', (message: FromThread | null) => this.#receive(message))
    this.#worker.on('error', error => {
      const { code } = error as NodeJS.ErrnoException
      this.#reason =
        code === 'ERR_WORKER_OUT_OF_MEMORY'
          ? 'the thread ran out of memory'
          : `the thread crashed: ${crash(error)}`
    })
    this.#worker.on('exit', code => {
      this.drain()
      events.ended(this.#reason || `the thread ended with process.exit(${code})`)
    })
    this.#worker.unref()
    this.#from.sleep()
  }

  /** The largest record that goes through the ring. */
  get largest(): number {
    return this.#to.largest
  }

  /** Returns the position in the ring, for `revoke`; null when it is full. */
  sendRecord(bytes: Uint8Array, length: number): number | null {
    const position = this.#to.write(bytes, length)
    if (position !== null) this.#unannounced = true
    return position
  }

  /** Wakes the thread for the records that were sent, once for all of them. */
  announce(): void {
    if (!this.#unannounced) return
    this.#unannounced = false
    if (this.#to.shouldWake()) this.#worker.postMessage(null)
  }

  /** Messages that records may refer to, so far. */
  get messages(): number {
    return this.#messages
  }

  sendCounted(
    message: Extract<ToThread, { type: 'task' | 'kind' | 'memory' | 'environment' | 'forget-list' }>,
    transfer?: readonly ArrayBuffer[],
  ): void {
    this.#messages++
    this.send(message, transfer)
  }

  send(message: ToThread, transfer: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer)
  }

  /** The task that began last, by its number. */
  get began(): number {
    return this.#to.note
  }

  /**
   * Someone waits for a task that was sent: its result is to be announced at once. Where it went as a message, a record
   * that comes after it may be claimed before it runs. Returns whether there are results already, of which we are not told.
   */
  hurry(asMessage = false): boolean {
    this.#to.hurry(asMessage ? 1 : 0)
    return !this.#from.empty
  }

  revoke(position: number): boolean {
    return this.#to.revoke(position)
  }

  isTaken(position: number): boolean {
    return this.#to.isTaken(position)
  }

  /** Takes results that are there already. Unless someone looks again soon, the thread has to wake us for more. */
  drain(looksAgain = false): void {
    if (looksAgain) this.#from.awake()
    else this.#from.sleep()
    this.#take()
  }

  #take(): void {
    let hasResults = false
    for (let at = this.#from.next(); at >= 0; at = this.#from.next()) {
      this.#decoder.at = at
      const { end } = this.#from
      this.#events.result(this.#decoder, end, [], [])
      this.#from.release()
      hasResults = true
    }
    // A program that does not pause never gets the message.
    if (hasResults && this.#waiting) this.#becomeReady()
  }

  #becomeReady(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = null
    for (const go of waiting) go()
  }

  /** Its modules are loaded: what it is sent begins at once. */
  get isReady(): boolean {
    return this.#waiting === null
  }

  /** It ended by itself, and before it could begin with anything. */
  get isStillborn(): boolean {
    return !this.isReady && !this.isKilled
  }

  whenReady(go: () => void): void {
    if (this.#waiting) this.#waiting.push(go)
    else go()
  }

  /** Lets the thread hand over what its tasks have printed, and end; stops it when it does not. */
  async end(): Promise<void> {
    this.#reason = 'the run ended'
    const ended = new Promise<void>(resolve => this.#worker.once('exit', () => resolve()))
    const timer = setTimeout(() => void this.#worker.terminate(), END_GRACE)
    if (this.isReady) this.send({ type: 'end' })
    else void this.#worker.terminate()
    await ended
    clearTimeout(timer)
  }

  /** Calls back if the thread is stuck in a task that does not let go of it. */
  checkAlive(isStuck: () => void): void {
    if (this.#silence) return
    this.#silence = setTimeout(isStuck, SILENCE)
    this.#silence.unref()
    this.send({ type: 'alive?' })
  }

  /** Stops the thread where it is. */
  kill(reason: string): void {
    this.#reason = reason
    this.isKilled = true
    void this.#worker.terminate()
  }

  #receive(message: FromThread | null): void {
    if (message === null) return this.#events.announced()
    // What was in the ring when the message was sent comes before it.
    this.#take()
    if (message.type === 'alive') {
      clearTimeout(this.#silence ?? undefined)
      this.#silence = null
    } else if (message.type === 'flushed') void this.#worker.terminate()
    else if (message.type === 'ready') this.#becomeReady()
    else if (message.type === 'result') {
      const { bytes, blobs, lent } = message
      this.#events.result(new Decoder(bytes, this.#hooks), bytes.length, blobs, lent)
    } else this.#events.message(message)
  }
}

/**
 * Loaders of the program are handed down, except tsx: it does not reach threads on Node 20, so threads
 * load it themselves. Other options of node concern the whole process and are refused for threads.
 */
function loaderArguments(): string[] {
  const kept: string[] = []
  const { execArgv } = process
  for (let i = 0; i < execArgv.length; i++) {
    const argument = execArgv[i] as string
    const [name = '', inline] = argument.split('=', 2)
    if (
      !['--import', '--require', '-r', '--loader', '--experimental-loader', '-C', '--conditions'].includes(
        name,
      )
    )
      continue
    const value = inline ?? execArgv[++i] ?? ''
    if (!/[\\/]tsx[\\/]|^tsx\b/.test(value)) kept.push(name, value)
  }
  return kept
}

/** An error that could not be caught, and the line of the program that threw it. */
function crash(error: unknown): string {
  const [own] = placesOf(error)
  return own ? `${messageOf(error)}, ${own.trim()}` : messageOf(error)
}
