import type { MessagePort } from 'node:worker_threads'
import type { Encoder } from '../../model/encoding/encode.ts'
import { Announcements } from './announcements.ts'
import { withRecord } from './protocol.ts'
import type { FromThread } from './protocol.ts'
import type { RingReader, RingWriter } from './ring.ts'

/** Sends results to the coordinator: through the ring, or as a message where they have memory of their own or no room there. */
export class ResultSender {
  /** When the clock was looked at last: that costs as much as a short task. */
  lookedAt = 0
  readonly #announcements = new Announcements()
  readonly #port: MessagePort
  readonly #toThread: RingReader
  readonly #fromThread: RingWriter
  readonly #inbox: { readonly length: number }
  readonly #isIo: boolean
  /** There are results in the ring that the coordinator was not woken for. */
  #isUntold = false

  /** `inbox`: tasks that came as messages, and wait. */
  constructor(
    port: MessagePort,
    toThread: RingReader,
    fromThread: RingWriter,
    inbox: { readonly length: number },
    isIo: boolean,
  ) {
    this.#port = port
    this.#toThread = toThread
    this.#fromThread = fromThread
    this.#inbox = inbox
    this.#isIo = isIo
  }

  post(message: FromThread, transfer: readonly ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  /** Returns whether the record went as a message. */
  send(record: Encoder, lent: ArrayBuffer[], asMessage: boolean, isUrgent: boolean): boolean {
    const { blobs, length } = record
    if (asMessage || blobs.length > 0 || lent.length > 0 || length > this.#fromThread.largest) {
      const moved = blobs.filter((blob): blob is ArrayBuffer => !(blob instanceof SharedArrayBuffer))
      const bytes = record.copy()
      this.post({ type: 'result', bytes, blobs, lent }, withRecord(bytes, [...moved, ...lent]))
      return true
    }
    while (this.#fromThread.write(record.bytes, length) === null) {
      this.announce()
      this.#fromThread.waitForRoom(5)
    }
    this.#isUntold = true
    const isAwaited = isUrgent || this.#isIo || this.#toThread.isAwaited
    const waiting = this.#toThread.waiting + this.#inbox.length
    if (this.#announcements.isDue(this.lookedAt, waiting, isAwaited)) this.announce()
    return false
  }

  /** Wakes the coordinator for results of which it was not told, unless it is awake. */
  announce(): void {
    if (!this.#isUntold) return
    this.#isUntold = false
    this.#announcements.made(this.lookedAt)
    if (this.#fromThread.shouldWake()) this.#port.postMessage(null)
  }
}
