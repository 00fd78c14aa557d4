import type { PoolEvents, RankPool, SiteShare } from './pool.ts'
import type { RankSite } from './site.ts'

/** A machine with CPUs for ranks: opens a site there. */
export interface RankPlace {
  readonly node: string
  openSite(): RankSite
}

export interface PoolsParts {
  /** The machine itself. As many ranks are kept there. */
  readonly place: RankPlace
  readonly cpus: number
  events(pool: () => RankPool): PoolEvents
}

/** The launcher is started again after this many crashes; the next one is the error of the task. */
const MOST_CRASHES = 2

/** Places with numbers of ranks. */
export type Shares = readonly { readonly place: RankPlace; readonly count: number }[]

/** The processes of ranks: those that are kept, and those of single tasks. */
export class RankPools {
  readonly #parts: PoolsParts
  #kept: Promise<RankPool> | null = null
  #spare: { pool: RankPool; key: string } | null = null
  readonly #keptPools = new WeakSet<RankPool>()
  readonly #all = new Set<RankPool>()
  readonly #keys = new WeakMap<RankPool, string>()
  #isOver = false

  constructor(parts: PoolsParts) {
    this.#parts = parts
  }

  /** One for each CPU, for all tasks that need none of their own. */
  async kept(): Promise<RankPool> {
    const { place, cpus } = this.#parts
    this.#kept ??= this.open([{ place, count: cpus }]).catch((error: unknown) => {
      this.#kept = null
      throw error
    })
    const pool = await this.#kept
    this.#keptPools.add(pool)
    if (!pool.isGone) return pool
    this.#kept = null
    return this.kept()
  }

  /** Ranks for one task. They may have run other tasks before. */
  async borrow(shares: Shares): Promise<RankPool> {
    const spare = this.#spare
    this.#spare = null
    if (spare && spare.key === keyOf(shares) && !spare.pool.isGone) return spare.pool
    void spare?.pool.end()
    return this.open(shares)
  }

  /** A task is over. Of those that were borrowed the last is kept. */
  free(pool: RankPool, isReused: boolean): void {
    if (this.#keptPools.has(pool)) return
    if (!isReused || pool.isGone || this.#isOver) return void pool.end()
    void this.#spare?.pool.end()
    this.#spare = { pool, key: this.#keys.get(pool) as string }
  }

  gone(pool: RankPool): void {
    this.#all.delete(pool)
  }

  async open(shares: Shares, crashes = 0): Promise<RankPool> {
    // Programs without MPI tasks do not load it.
    const { RankPool: Pool } = await import('./pool.ts')
    const sites: SiteShare[] = shares.map(({ place, count }) => ({ site: place.openSite(), count }))
    const nodes = shares.map(({ place }) => place.node)
    const pool: RankPool = new Pool(
      sites,
      nodes,
      this.#parts.events(() => pool),
    )
    this.#all.add(pool)
    this.#keys.set(pool, keyOf(shares))
    if (this.#isOver) pool.endNow()
    try {
      await pool.ready
    } catch (error) {
      // Launchers crash at times while they start, and nothing has run so far.
      if (pool.hasCrashed && crashes < MOST_CRASHES && !this.#isOver) return this.open(shares, crashes + 1)
      throw error
    }
    return pool
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(Array.from(this.#all, pool => pool.end()))
  }

  endNow(): void {
    this.#isOver = true
    for (const pool of this.#all) pool.endNow()
  }
}

const keyOf = (shares: Shares): string => shares.map(({ place, count }) => `${place.node} ${count}`).join()
