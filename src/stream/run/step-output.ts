import { StringDecoder } from 'node:string_decoder'
import { GrowingFile } from './growing-file.ts'

/** Passes on, line by line, what steps print, as their logs grow. */
export class StepOutput {
  readonly #print: (step: string, line: string) => void
  readonly #logs: Log[] = []

  constructor(print: (step: string, line: string) => void) {
    this.#print = print
  }

  /** The log may not be there yet. */
  follow(step: string, path: string): void {
    this.#logs.push(new Log(path, line => this.#print(step, line)))
  }

  /** Prints the complete lines that have come. Calls must not overlap. */
  async read(): Promise<void> {
    for (const log of this.#logs) await log.file.read()
  }

  /** All steps have ended: prints what is left. */
  async end(): Promise<void> {
    for (const log of this.#logs.splice(0)) await log.end()
  }
}

class Log {
  readonly file: GrowingFile
  readonly #print: (line: string) => void
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''

  constructor(path: string, print: (line: string) => void) {
    this.#print = print
    this.file = new GrowingFile(path, bytes => this.#take(bytes))
  }

  #take(bytes: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(bytes)).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#print(line)
  }

  async end(): Promise<void> {
    await this.file.end()
    const rest = this.#rest + this.#decoder.end()
    if (rest !== '') this.#print(rest)
  }
}
