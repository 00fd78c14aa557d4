import {
  closeSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { write } from 'node:fs'
import { crc32 } from 'node:zlib'
import { MillraceError } from '../../core/errors.ts'

/** One change of the state. */
export type Entry =
  | ['log', generation: number]
  | [
      'file',
      path: string,
      size: number,
      mtime: number,
      ino: number,
      stamp: number,
      racy: number,
      ctime?: number,
    ]
  | [
      'task',
      text: number,
      outputs: string[],
      outputStamps: number[],
      inputs: (string | null)[],
      inputStamps: number[],
    ]
  | ['gone', firstOutput: string]

/** A line per entry: the CRC-32 of the JSON, and the JSON. */
function encode(entry: Entry): string {
  const json = JSON.stringify(entry)
  return `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`
}

/** The entries up to the first that is not whole, and how many bytes they take. */
export function readLog(path: string): { entries: Entry[]; length: number } {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch {
    return { entries: [], length: 0 }
  }
  const entries: Entry[] = []
  let length = 0
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, length)) {
    const line = bytes.toString('utf8', length, end)
    const json = line.slice(9)
    if (line[8] !== ' ' || Number.parseInt(line.slice(0, 8), 16) !== crc32(json)) break
    entries.push(JSON.parse(json) as Entry)
    length = end + 1
  }
  return { entries, length }
}

/** The log of what changed since the snapshot. What is appended is there before anything that depends on it happens. */
export class StateLog {
  readonly #path: string
  readonly #file: number
  #waiting: string[] = []
  #writing: Promise<void> | null = null
  #next: Promise<void> | null = null
  #broken: MillraceError | null = null

  /** Goes on after `length` bytes: what comes after them is the rest of a write that was cut. */
  constructor(path: string, length: number, generation: number) {
    this.#path = path
    try {
      if (length === 0) {
        writeFileSync(`${path}.new`, encode(['log', generation]))
        renameSync(`${path}.new`, path)
      }
      this.#file = openSync(path, length === 0 ? 'a' : 'r+')
      if (length > 0) {
        ftruncateSync(this.#file, length)
        closeSync(this.#file)
        this.#file = openSync(path, 'a')
      }
    } catch (cause) {
      throw unwritable(path, cause)
    }
  }

  /** Resolves when it is written. Entries that come while others are being written go together. */
  append(entries: readonly Entry[]): Promise<void> {
    if (this.#broken) return Promise.reject(this.#broken)
    for (const entry of entries) this.#waiting.push(encode(entry))
    if (!this.#writing) return (this.#writing = this.#write())
    return (this.#next ??= this.#writing.then(() => {
      this.#next = null
      return (this.#writing = this.#write())
    }))
  }

  /** For plans, whose write is not awaited. */
  appendNow(entries: readonly Entry[]): void {
    try {
      const text = Buffer.from(entries.map(encode).join(''))
      for (let at = 0; at < text.length;) at += writeSync(this.#file, text, at)
    } catch (cause) {
      this.#broken ??= unwritable(this.#path, cause)
      throw this.#broken
    }
  }

  close(): void {
    closeSync(this.#file)
  }

  async #write(): Promise<void> {
    const text = Buffer.from(this.#waiting.join(''))
    this.#waiting = []
    try {
      for (let at = 0; at < text.length;) at += await this.#writeSome(text, at)
    } catch (cause) {
      this.#broken ??= unwritable(this.#path, cause)
      throw this.#broken
    } finally {
      if (!this.#next) this.#writing = null
    }
  }

  #writeSome(text: Buffer, at: number): Promise<number> {
    return new Promise((resolve, reject) => {
      write(this.#file, text, at, text.length - at, null, (error, written) =>
        error ? reject(error) : resolve(written),
      )
    })
  }
}

function unwritable(path: string, cause: unknown): MillraceError {
  const { message } = cause as Error
  return new MillraceError('MR_FLOW_STATE', `${path} cannot be written: ${message}`, { cause })
}
