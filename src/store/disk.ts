import { close, closeSync, fdatasync, open, openSync, readSync, write } from 'node:fs'
import { promisify } from 'node:util'

const openFile = promisify(open)
const closeFile = promisify(close)
const syncFile = promisify(fdatasync)

/** A file that is only appended to. Tests put another one in its place, to cut and reorder what it writes. */
export interface Appender {
  append(bytes: Uint8Array): Promise<void>
  /** All that was appended is on the disk. */
  sync(): Promise<void>
  close(): Promise<void>
}

export type OpenAppender = (path: string) => Promise<Appender>

export const openAppender: OpenAppender = async path => {
  const file = await openFile(path, 'ax')
  return {
    append: bytes => writeAll(file, bytes),
    sync: () => syncFile(file),
    close: () => closeFile(file),
  }
}

/** The names in a folder are on the disk. Some file systems cannot, and need not, do that. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await openFile(path, 'r').catch(() => null)
  if (folder === null) return
  await syncFile(folder).catch(() => undefined)
  await closeFile(folder)
}

async function writeAll(file: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += await new Promise<number>((resolve, reject) =>
      write(file, bytes, at, bytes.length - at, null, (error, written) =>
        error ? reject(error) : resolve(written),
      ),
    )
  }
}

const WINDOW = 256 * 1024

/** Reads pieces of a file, which mostly follow each other. */
export class PieceReader {
  readonly #path: string
  #file = -1
  #window: Buffer | null = null
  #begin = 0
  #filled = 0

  constructor(path: string) {
    this.#path = path
  }

  /** Null when there are not as many bytes. The buffer is the caller's. */
  read(offset: number, length: number): Buffer | null {
    if (this.#file < 0) this.#file = openSync(this.#path, 'r')
    if (length > WINDOW)
      return this.#readFully(Buffer.allocUnsafeSlow(length), offset) === length ? this.#last : null
    const isInside = offset >= this.#begin && offset + length <= this.#begin + this.#filled
    if (!isInside) {
      // A new one each time: pieces of the last one are in use.
      this.#window = Buffer.allocUnsafeSlow(WINDOW)
      this.#begin = offset
      this.#filled = this.#readFully(this.#window, offset)
      if (this.#filled < length) return null
    }
    const from = offset - this.#begin
    return (this.#window as Buffer).subarray(from, from + length)
  }

  #last: Buffer | null = null

  #readFully(into: Buffer, offset: number): number {
    let at = 0
    for (;;) {
      const size = readSync(this.#file, into, at, into.length - at, offset + at)
      at += size
      if (size === 0 || at === into.length) break
    }
    this.#last = into
    return at
  }

  close(): void {
    if (this.#file >= 0) closeSync(this.#file)
    this.#file = -1
    this.#window = null
    this.#filled = 0
  }
}
