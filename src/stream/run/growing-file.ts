import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'

const NO_BYTES = Buffer.alloc(0)
const PART = 64 * 1024
/** Parts that are read of one file at a time: a program may write faster than this reads. */
const MOST_PARTS = 16

/** Reads a file that others write, from where it was read last. */
export class GrowingFile {
  readonly #path: string
  readonly #take: (bytes: Buffer) => void
  #buffer = NO_BYTES
  #file: FileHandle | null = null

  /** The file may not be there yet. `take` must not keep the bytes. */
  constructor(path: string, take: (bytes: Buffer) => void) {
    this.#path = path
    this.#take = take
  }

  /** Returns whether there may be more. Calls must not overlap. */
  async read(): Promise<boolean> {
    this.#file ??= await open(this.#path, 'r').catch(() => null)
    if (!this.#file) return false
    if (this.#buffer === NO_BYTES) this.#buffer = Buffer.alloc(PART)
    for (let parts = 0; parts < MOST_PARTS; parts++) {
      const { bytesRead } = await this.#file.read(this.#buffer, 0, PART, null)
      if (bytesRead === 0) return false
      this.#take(this.#buffer.subarray(0, bytesRead))
    }
    return true
  }

  /** Reads what is left. */
  async end(): Promise<void> {
    while (await this.read()) continue
    await this.#file?.close()
    this.#file = null
  }
}
