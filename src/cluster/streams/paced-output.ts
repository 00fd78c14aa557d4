import type { Writable } from 'node:stream'
import { keep, letGo } from './slabs.ts'

/** Bytes that may wait before the sources are held, and with how few of them they go on. */
const MOST_WAITING = 8 << 20
const FEW_WAITING = 4 << 20
/** Bytes that the stream gets at once. */
const BATCH = 1 << 20

export interface Pauses {
  pause(): void
  resume(): void
}

/**
 * Frames on their way into a stream, in batches. A stream that has everything writes it in one piece, and asks for more
 * only when all of it is gone: the network would stand still until its source has begun again. Here the next batch is always there.
 */
export class PacedOutput {
  readonly #output: Writable
  readonly #held = new Set<Pauses>()
  #frames: Buffer[] = []
  #waiting = 0
  #isWriting = false

  constructor(output: Writable) {
    this.#output = output
    output.on('close', () => {
      for (const frame of this.#frames) letGo(frame)
      this.#frames = []
      this.#waiting = 0
      this.#release()
    })
  }

  /** The sources stop while too much waits. */
  write(frame: Buffer, sources: readonly Pauses[]): void {
    if (this.#output.destroyed) return
    keep(frame)
    this.#frames.push(frame)
    this.#waiting += frame.length
    if (!this.#isWriting) this.#next()
    if (this.#waiting < MOST_WAITING) return
    // Another output may have let a source go on meanwhile.
    for (const source of sources) {
      this.#held.add(source)
      source.pause()
    }
  }

  /** Leaves all to the stream, so that what is written to it next comes behind. */
  flush(): void {
    for (const frame of this.#frames) this.#output.write(frame, () => letGo(frame))
    this.#frames = []
    this.#waiting = 0
    this.#release()
  }

  #next(): void {
    let bytes = 0
    let count = 0
    while (count < this.#frames.length && bytes < BATCH) bytes += this.#frames[count++]?.length ?? 0
    this.#isWriting = count > 0
    if (count === 0) return
    const batch = this.#frames.splice(0, count)
    const written = (): void => {
      for (const frame of batch) letGo(frame)
      this.#waiting = Math.max(0, this.#waiting - bytes)
      this.#next()
      if (this.#waiting <= FEW_WAITING) this.#release()
    }
    const pieces = joined(batch)
    const last = pieces.length - 1
    if (last > 0) this.#output.cork()
    for (const [i, piece] of pieces.entries()) this.#output.write(piece, i === last ? written : undefined)
    if (last > 0) this.#output.uncork()
  }

  #release(): void {
    const held = [...this.#held]
    this.#held.clear()
    for (const source of held) source.resume()
  }
}

/** Frames that lie one behind the other in memory are one piece: TLS makes a copy of several. */
function joined(frames: readonly Buffer[]): Buffer[] {
  const pieces: Buffer[] = []
  for (const frame of frames) {
    const last = pieces.at(-1)
    if (last && last.buffer === frame.buffer && last.byteOffset + last.length === frame.byteOffset)
      pieces[pieces.length - 1] = Buffer.from(frame.buffer, last.byteOffset, last.length + frame.length)
    else pieces.push(frame)
  }
  return pieces
}
