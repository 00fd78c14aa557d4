import { mkdir, open, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { SharedGarbage } from '../../node/threads/shared-garbage.ts'

/** Smaller buffers stay: among them is memory that changes while threads look at it. */
const LEAST = 1 << 18

export interface SpillOptions {
  readonly folder: string
  /** So much of what is kept here may be in memory; bytes. */
  readonly limit: number
  /** Called once, when the first buffer goes. */
  readonly began: () => void
  /** What was written cannot be read again. */
  readonly failed: (error: Error) => void
}

/**
 * Buffers that do not fit into the memory of a node: those that were used least lately go to its disk, and come back when they
 * are wanted. They do not change, so what was written once is not written again. Where the disk has no room they stay.
 */
export class Spill {
  readonly #options: SpillOptions
  /** Those in memory; the last was used last. */
  readonly #here: Map<number, ArrayBufferLike>
  /** Sizes of those that are on disk, be they in memory or not. */
  readonly #written = new Map<number, number>()
  /** How often they are waited for; these stay. */
  readonly #wanted = new Map<number, number>()
  /** These are changed in place. */
  readonly #pinned = new Set<number>()
  readonly #garbage = new SharedGarbage()
  #bytes = 0
  #isAtWork = false
  /** Something can go that could not when the work began. */
  #isToLookAgain = false
  #hasBegun = false
  /** The disk had no room: it is tried again when there is so much more. */
  #tryFrom = 0

  constructor(here: Map<number, ArrayBufferLike>, options: SpillOptions) {
    this.#here = here
    this.#options = options
    for (const { byteLength } of here.values()) this.#bytes += byteLength
    this.#look()
  }

  isOut(number: number): boolean {
    return this.#written.has(number) && !this.#here.has(number)
  }

  added(number: number, { byteLength }: ArrayBufferLike): void {
    this.#bytes += byteLength
    this.used(number)
    this.#look()
  }

  used(number: number): void {
    const buffer = this.#here.get(number)
    if (!buffer) return
    this.#here.delete(number)
    this.#here.set(number, buffer)
  }

  /** It is not in memory any more. */
  removed({ byteLength }: ArrayBufferLike): void {
    this.#bytes -= byteLength
    if (byteLength >= LEAST) this.#garbage.add(byteLength)
  }

  /** It is not needed any more. */
  forget(number: number): void {
    this.#pinned.delete(number)
    if (this.#written.delete(number)) void unlink(this.#path(number)).catch(() => undefined)
  }

  pin(number: number): void {
    this.#pinned.add(number)
  }

  want(number: number): void {
    this.#wanted.set(number, (this.#wanted.get(number) ?? 0) + 1)
  }

  unwant(number: number): void {
    const left = (this.#wanted.get(number) ?? 1) - 1
    if (left > 0) return void this.#wanted.set(number, left)
    this.#wanted.delete(number)
    this.#look()
  }

  #look(): void {
    if (this.#bytes <= Math.max(this.#options.limit, this.#tryFrom)) return
    if (this.#isAtWork) this.#isToLookAgain = true
    else void this.#makeRoom()
  }

  /** Reads one that is out. */
  async load(number: number): Promise<SharedArrayBuffer> {
    const buffer = new SharedArrayBuffer(this.#written.get(number) ?? 0)
    const bytes = new Uint8Array(buffer)
    const file = await open(this.#path(number))
    try {
      for (let at = 0; at < bytes.length;) {
        const { bytesRead } = await file.read(bytes, at, bytes.length - at, at)
        if (bytesRead === 0) throw new Error('it is shorter than it was')
        at += bytesRead
      }
    } finally {
      await file.close()
    }
    return buffer
  }

  /** A buffer that is out cannot be read. */
  failed(error: Error): void {
    this.#options.failed(error)
  }

  async #makeRoom(): Promise<void> {
    this.#isAtWork = true
    try {
      for (const [number, buffer] of this.#here) {
        if (this.#bytes <= this.#options.limit) break
        if (buffer.byteLength < LEAST || this.#isInUse(number)) continue
        if (!this.#written.has(number)) await this.#write(number, buffer)
        if (this.#here.get(number) !== buffer) this.forget(number)
        else if (!this.#isInUse(number)) {
          this.#here.delete(number)
          this.removed(buffer)
        }
      }
    } catch {
      // The disk is full, or cannot be written: what is left stays in memory.
      this.#tryFrom = this.#bytes * 1.25
    } finally {
      this.#isAtWork = false
    }
    const again = this.#isToLookAgain
    this.#isToLookAgain = false
    if (again) this.#look()
  }

  #isInUse(number: number): boolean {
    return this.#wanted.has(number) || this.#pinned.has(number)
  }

  async #write(number: number, buffer: ArrayBufferLike): Promise<void> {
    const { folder, began } = this.#options
    if (!this.#hasBegun) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      began()
    }
    this.#hasBegun = true
    const path = this.#path(number)
    const file = await open(path, 'w', 0o600)
    try {
      const bytes = new Uint8Array(buffer)
      for (let at = 0; at < bytes.length;) {
        const { bytesWritten } = await file.write(bytes, at, bytes.length - at, at)
        at += bytesWritten
      }
    } catch (error) {
      await rm(path, { force: true })
      throw error
    } finally {
      await file.close()
    }
    this.#written.set(number, buffer.byteLength)
  }

  #path(number: number): string {
    return join(this.#options.folder, String(number))
  }
}
