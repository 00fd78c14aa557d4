import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'

const PART = 64 * 1024
/** Parts that are read of one log before others have their turn: a step may print faster than this reads. */
const MOST_PARTS = 16

/** Passes on, line by line, what steps print, as their logs grow. */
export class StepOutput {
  readonly #print: (step: string, line: string) => void
  readonly #logs = new Map<string, Log>()
  readonly #buffer = Buffer.alloc(PART)

  constructor(print: (step: string, line: string) => void) {
    this.#print = print
  }

  /** The log may not be there yet. */
  follow(step: string, path: string): void {
    this.#logs.set(path, new Log(path, line => this.#print(step, line)))
  }

  /** Prints the complete lines that have come. Calls must not overlap. */
  async read(): Promise<void> {
    for (const log of this.#logs.values()) await log.read(this.#buffer)
  }

  /** All steps have ended: prints what is left. */
  async end(): Promise<void> {
    for (const log of this.#logs.values()) {
      while (await log.read(this.#buffer)) continue
      await log.end()
    }
    this.#logs.clear()
  }
}

class Log {
  readonly #path: string
  readonly #print: (line: string) => void
  readonly #decoder = new StringDecoder('utf8')
  #file: FileHandle | null = null
  #rest = ''

  constructor(path: string, print: (line: string) => void) {
    this.#path = path
    this.#print = print
  }

  /** Returns whether there may be more. */
  async read(buffer: Buffer): Promise<boolean> {
    this.#file ??= await open(this.#path, 'r').catch(() => null)
    if (!this.#file) return false
    for (let parts = 0; parts < MOST_PARTS; parts++) {
      const { bytesRead } = await this.#file.read(buffer, 0, PART, null)
      if (bytesRead === 0) return false
      const lines = (this.#rest + this.#decoder.write(buffer.subarray(0, bytesRead))).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.#print(line)
    }
    return true
  }

  async end(): Promise<void> {
    const rest = this.#rest + this.#decoder.end()
    this.#rest = ''
    if (rest !== '') this.#print(rest)
    await this.#file?.close()
    this.#file = null
  }
}
