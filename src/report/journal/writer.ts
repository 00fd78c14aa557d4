import { close, mkdirSync, openSync, write, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import type { RunEvent } from '../../core/events.ts'
import { BlockEncoder } from './encode.ts'
import { MAX_BLOCK_BYTES, journalHeader } from './format.ts'
import type { Reporter } from '../reporter.ts'

export interface Journal extends Reporter {
  /** Writes all that was observed before it returns; for the `exit` of a process. */
  flushSync(): void
  /** Why journalling stopped, if it did. The run goes on without it; what was written stays readable. */
  readonly error: Error | null
}

/** The calls that a journal makes on a disk; tests give one that fails or is slow. */
export interface JournalDisk {
  /** Makes a new file. Fails if there is one, because a journal is never overwritten. */
  open(path: string): number
  write(
    fd: number,
    bytes: Buffer,
    position: number,
    done: (error: Error | null, written: number) => void,
  ): void
  writeSync(fd: number, bytes: Buffer, position: number): number
  close(fd: number, done: (error: Error | null) => void): void
}

export interface JournalOptions {
  disk?: JournalDisk
  /** A block is flushed when it has this many bytes … */
  blockBytes?: number
  /** … or this many milliseconds after its first event; infinite: equal events have equal bytes. */
  flushEvery?: number
  /** Journalling stops when the disk is this many bytes behind, so that a dead disk cannot eat the memory. */
  maxBehind?: number
}

const realDisk: JournalDisk = {
  open(path) {
    // Arguments of commands that failed are in it, and logs beside it.
    mkdirSync(dirname(dirname(path)), { recursive: true })
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    return openSync(path, 'wx', 0o600)
  },
  write: (fd, bytes, position, done) => write(fd, bytes, 0, bytes.length, position, done),
  writeSync: (fd, bytes, position) => writeSync(fd, bytes, 0, bytes.length, position),
  close,
}

/** Buffers kept for reuse; two are in use when the disk keeps up. */
const SPARE = 4
const HEADROOM = 16 * 1024

export function createJournal(path: string, options: JournalOptions = {}): Journal {
  return new JournalWriter(path, options)
}

class JournalWriter implements Journal {
  error: Error | null = null

  readonly #path: string
  readonly #disk: JournalDisk
  readonly #blockBytes: number
  readonly #flushEvery: number
  readonly #maxBehind: number
  readonly #encoder: BlockEncoder
  readonly #spare: Buffer[] = []
  #fd: number | null = null
  /** Sealed and not yet wholly written. Only the first is ever being written, so order on disk is kept. */
  #queue: Buffer[] = []
  #queuedBytes = 0
  #position = 0
  #isWriting = false
  /** Counts calls of flushSync: a write begun before one must not advance the position after it. */
  #epoch = 0
  /** Writes that the system still has. The file stays open for them: its number may be given to another. */
  #underWay = 0
  #isTimerSet = false
  #isClosed = false
  readonly #waiters: (() => void)[] = []

  constructor(path: string, options: JournalOptions) {
    this.#path = path
    this.#disk = options.disk ?? realDisk
    this.#blockBytes = options.blockBytes ?? 256 * 1024
    this.#flushEvery = options.flushEvery ?? 50
    this.#maxBehind = options.maxBehind ?? 1024 ** 3
    this.#encoder = new BlockEncoder(this.#buffer())
    try {
      this.#fd = this.#disk.open(path)
      this.#push(journalHeader())
      this.#setTimer()
    } catch (error) {
      this.#stop(error)
    }
  }

  observe = (event: RunEvent): void => {
    if (this.#fd === null || this.#isClosed) return
    this.#encoder.add(event)
    if (this.#encoder.size >= this.#blockBytes) {
      this.#seal()
      // The first write of a queue leaves from the event loop: no file is touched inside observe.
      if (this.#queue.length === 1) setImmediate(this.#drain).unref()
    } else if (event.type === 'run-started') {
      // A run that is killed at once is to be known by name: the first block does not wait for others.
      if (this.#flushEvery !== Infinity) setImmediate(this.#flush).unref()
    } else if (!this.#isTimerSet) {
      this.#setTimer()
    }
  }

  flushSync(): void {
    if (this.#fd === null) return
    this.#seal()
    this.#epoch++
    this.#isWriting = false
    try {
      // A write under way is done again at the same place with the same bytes, which changes nothing.
      for (const block of this.#queue) {
        for (let done = 0; done < block.length;) {
          const written = this.#disk.writeSync(this.#fd!, block.subarray(done), this.#position)
          done += written
          this.#position += written
        }
      }
      this.#queue = []
      this.#queuedBytes = 0
    } catch (error) {
      this.#stop(error)
    }
  }

  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true
      this.#seal()
      this.#drain()
    }
    while (this.#underWay > 0) await new Promise<void>(resolve => this.#waiters.push(resolve))
    const fd = this.#fd
    if (fd === null) return
    this.#fd = null
    const error = await new Promise<Error | null>(resolve => this.#disk.close(fd, resolve))
    if (error) this.#stop(error)
  }

  #setTimer(): void {
    this.#isTimerSet = true
    if (this.#flushEvery === Infinity) return
    setTimeout(() => {
      this.#isTimerSet = false
      this.#flush()
    }, this.#flushEvery).unref()
  }

  readonly #flush = (): void => {
    this.#seal()
    this.#drain()
  }

  #seal(): void {
    if (this.#fd === null || this.#encoder.isEmpty) return
    if (this.#encoder.size > MAX_BLOCK_BYTES) return this.#stop(new Error('an event is too large to journal'))
    this.#push(this.#encoder.seal(this.#buffer()))
  }

  #push(block: Buffer): void {
    this.#queue.push(block)
    this.#queuedBytes += block.length
    if (this.#queuedBytes > this.#maxBehind) this.#stop(new Error('the disk is too slow for the journal'))
  }

  readonly #drain = (): void => {
    const block = this.#queue[0]
    if (block === undefined || this.#isWriting || this.#fd === null) return
    this.#isWriting = true
    this.#underWay++
    const epoch = this.#epoch
    this.#disk.write(this.#fd, block, this.#position, (error, written) => {
      this.#underWay--
      if (epoch === this.#epoch) this.#wrote(block, error, written)
      if (this.#underWay === 0) for (const resolve of this.#waiters.splice(0)) resolve()
    })
  }

  #wrote(block: Buffer, error: Error | null, written: number): void {
    this.#isWriting = false
    if (error) return this.#stop(error)
    this.#position += written
    this.#queuedBytes -= written
    if (written < block.length) {
      this.#queue[0] = block.subarray(written)
    } else {
      this.#queue.shift()
      if (this.#spare.length < SPARE && block.buffer.byteLength === this.#bufferBytes) {
        this.#spare.push(Buffer.from(block.buffer))
      }
    }
    this.#drain()
  }

  #stop(cause: unknown): void {
    this.error ??= new MillraceError('MR_JOURNAL', `the journal ${this.#path} cannot be written`, {
      cause,
      hint: `${cause instanceof Error ? cause.message : String(cause)}. The run goes on without a journal.`,
    })
    const fd = this.#fd
    this.#fd = null
    this.#queue = []
    this.#queuedBytes = 0
    this.#epoch++
    this.#isWriting = false
    if (fd === null) return
    // Not awaited: close() waits for the writes, and the number is not used again.
    const release = (): void => this.#disk.close(fd, () => {})
    if (this.#underWay > 0) this.#waiters.push(release)
    else release()
  }

  get #bufferBytes(): number {
    return this.#blockBytes + HEADROOM
  }

  #buffer(): Buffer {
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(this.#bufferBytes)
  }
}
