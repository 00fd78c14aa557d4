import { Worker } from 'node:worker_threads'
import type { Look } from './file-table.ts'

/** Files of up to this size are read in one piece; bytes. */
export const SMALL = 64 * 2 ** 10

/** A small plain file: what it looked like, then what was in it, and when that was. */
export interface Seen {
  readonly look: Look
  readonly stamp: number
  readonly at: number
}

/** For each file its numbers in this order, or zeros for one that the caller has to look at. */
export const COLUMNS = ['size', 'mtime', 'ctime', 'ino', 'stamp', 'at'] as const

export interface StampRequest {
  readonly paths: readonly string[]
  readonly how: readonly How[]
}

/** What is meant where there is a link: itself, what it points to, or only what that looks like; or all that is in a folder. */
export type How = 'link' | 'target' | 'outside' | 'folder'

interface Waiting {
  path: string
  how: How
  resolve(seen: Seen | null): void
}

/**
 * Looks into small files on a thread of its own, many at a time. One by one each costs four ways to other threads and
 * back, which takes longer than a small program.
 */
export class StampThread {
  readonly #worker: Worker
  #waiting: Waiting[] = []
  readonly #sent: Waiting[][] = []
  #isReady = false
  readonly #online: Promise<void>

  constructor() {
    this.#worker = new Worker(new URL('./flow-stamp-worker.js', import.meta.url), { execArgv: [] })
    this.#online = new Promise(resolve => {
      for (const event of ['online', 'error', 'exit']) this.#worker.once(event, () => resolve())
    })
    this.#worker.on('online', () => (this.#isReady = true))
    this.#worker.on('message', (columns: Float64Array) => this.#receive(columns))
    this.#worker.on('error', () => this.#gone())
    this.#worker.on('exit', () => this.#gone())
    this.#worker.unref()
  }

  /** Null for all that is not small and plain, and whenever something is wrong: then it is looked at the long way. */
  see(path: string, follow: boolean): Promise<Seen | null> {
    return this.#ask(path, follow ? 'target' : 'link')
  }

  /** The same without the content, and for files of any size. */
  async look(path: string): Promise<Look | null> {
    return (await this.#ask(path, 'outside'))?.look ?? null
  }

  /** The stamp of a folder: it may have very many files. */
  async digest(path: string): Promise<number | null> {
    // Nothing else may keep the process alive meanwhile.
    this.#worker.ref()
    await this.#online
    return (await this.#ask(path, 'folder'))?.stamp ?? null
  }

  #ask(path: string, how: How): Promise<Seen | null> {
    if (!this.#isReady) return Promise.resolve(null)
    return new Promise(resolve => {
      if (this.#waiting.push({ path, how, resolve }) === 1) setImmediate(this.#send)
    })
  }

  stop(): void {
    this.#gone()
    void this.#worker.terminate()
  }

  readonly #send = (): void => {
    const batch = this.#waiting
    if (batch.length === 0) return
    this.#waiting = []
    this.#sent.push(batch)
    const request: StampRequest = {
      paths: batch.map(({ path }) => path),
      how: batch.map(({ how }) => how),
    }
    // Pending requests keep the process alive.
    this.#worker.ref()
    this.#worker.postMessage(request)
  }

  #receive(columns: Float64Array): void {
    const batch = this.#sent.shift() ?? []
    if (this.#sent.length === 0) this.#worker.unref()
    for (const [i, { resolve }] of batch.entries()) {
      const [size = 0, mtime = 0, ctime = 0, ino = 0, stamp = 0, at = 0] = columns.subarray(
        i * COLUMNS.length,
        (i + 1) * COLUMNS.length,
      )
      resolve(stamp === 0 ? null : { look: { size, mtime, ctime, ino }, stamp, at })
    }
  }

  #gone(): void {
    this.#isReady = false
    for (const { resolve } of [...this.#sent.flat(), ...this.#waiting]) resolve(null)
    this.#sent.length = 0
    this.#waiting = []
  }
}
