import type { Holds } from './channel.ts'

/** Bytes that were taken before their node is told. */
const PIECE = 1 << 20

/** Counts what came from a node by the coordinator, and tells that node how much of it was taken: it sends no more than so much ahead. */
export class Carried implements Holds {
  readonly #tell: (bytes: number) => void
  #bytes = 0
  #isPaused = false

  constructor(tell: (bytes: number) => void) {
    this.#tell = tell
  }

  took(bytes: number): void {
    this.#bytes += bytes
    this.#look()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#look()
  }

  #look(): void {
    if (this.#isPaused || this.#bytes < PIECE) return
    this.#tell(this.#bytes)
    this.#bytes = 0
  }
}
