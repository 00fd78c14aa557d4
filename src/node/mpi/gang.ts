import type { Task } from '../../core/tasks/task.ts'
import { attemptOf, jobOf } from '../job.ts'
import type { Attempt } from '../attempt.ts'
import type { Result } from '../threads/results.ts'
import type { PlacedMemory } from '../threads/thread-port.ts'
import type { RankPool } from './pool.ts'
import type { GangStream } from './gang-stream.ts'
import { standstill } from './places.ts'

/** Milliseconds that no rank has moved before this is taken for a standstill. */
const STILL = 2000
/** The same where messages may be on their way: as long as the largest of them could take. */
const STILL_FOR_LONG = 120_000

/** One attempt at an MPI task, with the ranks that it has. */
export class Gang {
  readonly task: Task
  readonly attempt: Attempt
  readonly pool: RankPool
  /** Ranks of the pool. */
  readonly ranks: readonly number[]
  /** Names of files that the ranks map, by the place of the buffer; '' for those that went through the socket. */
  readonly paths: readonly string[]
  readonly sizes: readonly number[]
  /** Memory of the program that is written in place. */
  readonly placed: readonly PlacedMemory[]
  readonly blobs: readonly ArrayBufferLike[]
  readonly results: (Result | null)[]
  /** Reads memory of the ranks, when all of them have ended. */
  readonly late: (() => Promise<void> | null)[] = []
  /** Of generators. */
  stream: GangStream | null = null
  /** It was told to stop. */
  isStopped = false
  /** The rank that failed first. */
  failed: number | null = null
  #calls = ''
  #stillSince = 0

  constructor(facts: {
    task: Task
    pool: RankPool
    ranks: readonly number[]
    paths: readonly string[]
    placed: readonly PlacedMemory[]
    blobs: readonly ArrayBufferLike[]
  }) {
    this.task = facts.task
    this.attempt = attemptOf(facts.task)
    this.pool = facts.pool
    this.ranks = facts.ranks
    this.paths = facts.paths
    this.placed = facts.placed
    this.blobs = facts.blobs
    this.sizes = facts.blobs.map(blob => blob.byteLength)
    this.results = facts.ranks.map(() => null)
  }

  /** The attempt that it was made for has not been given up. */
  get isCurrent(): boolean {
    return jobOf(this.task).attempt === this.attempt
  }

  get isComplete(): boolean {
    return this.results.every(result => result !== null)
  }

  /** Why the ranks will never go on, or null. Certain only when nothing has moved for a while. */
  standstill(now: number): string | null {
    const places = this.pool.placesOf(this.ranks)
    // Nothing new is known of ranks on other machines.
    if (!places) return null
    const ended = new Set(this.results.flatMap((result, rank) => (result ? [rank] : [])))
    const found = standstill(places, ended)
    const calls = places.map(place => `${place.calls} ${place.call}`).join()
    if (found === null || calls !== this.#calls) {
      this.#calls = calls
      this.#stillSince = now
      return null
    }
    // Where some have ended, no message can be under way for long.
    const after = found.isCertain ? (ended.size > 0 ? STILL / 4 : STILL) : STILL_FOR_LONG
    return now - this.#stillSince >= after ? found.why : null
  }
}
