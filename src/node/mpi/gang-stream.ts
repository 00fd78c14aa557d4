import { crc32 } from 'node:zlib'
import { MillraceError } from '../../core/errors.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import type { EarlyValue } from '../node.ts'
import { WORD, changed, hasRoom } from '../threads/early-wire.ts'
import type { GeneratorStart } from '../threads/early-wire.ts'
import { tellRanks } from './places.ts'

export interface GangStreamPorts {
  /** Asks all ranks for the next value, or tells them that no more are wanted. */
  ask(isWanted: boolean): void
  /** Resolves when the buffer has room again; the task holds no CPU meanwhile. */
  waitForRoom(items: number, bytes: number): Promise<unknown>
  /** One value of those of the ranks. */
  combine(values: readonly Kept[]): Kept
  release(value: EarlyValue): void
  /** The gang has not been given up. */
  isCurrent(): boolean
  fail(error: unknown): void
}

/**
 * The values of generators in the ranks of a task. The ranks are asked for their next value together, and what they yield
 * becomes one value of the stream: so its order does not depend on which rank is faster.
 */
export class GangStream {
  readonly #start: GeneratorStart
  readonly #words: Int32Array
  readonly #ports: GangStreamPorts
  readonly #step: (EarlyValue | null)[]
  readonly #ended = new Set<number>()
  #made = 0
  #madeBytes: number
  #check = 0

  constructor(start: GeneratorStart, ranks: number, ports: GangStreamPorts) {
    this.#start = start
    this.#words = new Int32Array(start.memory)
    this.#madeBytes = start.made | 0
    this.#ports = ports
    this.#step = Array.from({ length: ranks }, () => null)
  }

  begin(): void {
    void this.#next().catch((error: unknown) => this.#ports.fail(error))
  }

  /** A rank has yielded. */
  take(rank: number, value: EarlyValue): void {
    this.#step[rank] = value
    const all = this.#step.filter(one => one !== null)
    if (all.length < this.#step.length) return this.#compare()
    try {
      this.#complete(all)
    } catch (error) {
      return this.#ports.fail(error)
    }
    this.begin()
  }

  /** The generator of a rank has ended. */
  ended(rank: number): void {
    this.#ended.add(rank)
    this.#compare()
  }

  /** All ranks have ended: what is wrong with what they yielded before, or null. */
  atEnd(): MillraceError | null {
    const { count } = this.#start
    const isClosed = Atomics.load(this.#words, WORD.closed) === 1
    if (this.#made >= count || isClosed) return null
    return changed(`it ended after ${this.#made} values, of which ${count} were released`)
  }

  /** Where one has ended and another has yielded once more, no value will come of it. */
  #compare(): void {
    const yielded = this.#step.flatMap((value, rank) => (value ? [rank] : []))
    if (yielded.length === 0 || this.#ended.size === 0) return
    const count = `${this.#made} ${this.#made === 1 ? 'value' : 'values'}`
    this.#ports.fail(
      new MillraceError(
        'MR_MPI_MISUSE',
        `${tellRanks(this.#ended)} yielded ${count}, and ${tellRanks(yielded)} more`,
        { hint: 'All ranks yield equally often: a value of the stream is made of one of each.' },
      ),
    )
  }

  #complete(all: readonly EarlyValue[]): void {
    const { count, check: expected } = this.#start
    this.#check = crc32(
      Uint32Array.from(all, ({ check }) => check),
      this.#check,
    )
    const index = this.#made++
    if (this.#made === count && this.#check !== expected) {
      throw changed(`its first ${count === 1 ? 'value is' : `${count} values are`} different now`)
    }
    this.#step.fill(null)
    if (index < count) return
    const bytes = Math.min(
      2 ** 30,
      all.reduce((sum, one) => sum + one.bytes, 0),
    )
    this.#madeBytes = (this.#madeBytes + bytes) | 0
    const value = this.#ports.combine(all.map(one => one.value))
    this.#ports.release({ index, value, bytes, check: this.#check, at: Math.max(...all.map(({ at }) => at)) })
  }

  async #next(): Promise<void> {
    while (!this.#isClosed && !this.#hasRoom) {
      await this.#ports.waitForRoom(this.#made, this.#madeBytes >>> 0)
      if (!this.#ports.isCurrent()) return
    }
    this.#ports.ask(!this.#isClosed)
  }

  get #isClosed(): boolean {
    return Atomics.load(this.#words, WORD.closed) === 1
  }

  get #hasRoom(): boolean {
    return hasRoom(this.#words, this.#start, this.#made, this.#madeBytes)
  }
}
