import { pathToFileURL } from 'node:url'
import { MillraceError } from '../../core/errors.ts'
import { modulePath, taskModules } from '../../model/definition.ts'
import type { Watchdog } from '../processes/watchdog.ts'
import { clockOrigin } from '../threads/protocol.ts'
import { findMpi, withoutScheduler } from './launcher.ts'
import type { PoolEvents, RankPool } from './pool.ts'
import { sharedFolder } from './shared-files.ts'

export interface PoolsParts {
  readonly run: string
  readonly logs: string | null
  /** The name of the node. */
  readonly node: string
  /** As many ranks are kept. */
  readonly cpus: number
  readonly watchdog: Watchdog
  /** Milliseconds since the run began. */
  now(): number
  events(pool: () => RankPool): PoolEvents
}

/** The processes of ranks: those that are kept, and those of single tasks. */
export class RankPools {
  readonly #parts: PoolsParts
  #kept: Promise<RankPool> | null = null
  #spare: RankPool | null = null
  readonly #keptPools = new WeakSet<RankPool>()
  readonly #all = new Set<RankPool>()
  readonly #folders = new WeakMap<RankPool, string>()
  #isOver = false

  constructor(parts: PoolsParts) {
    this.#parts = parts
  }

  /** One for each CPU, for all tasks that need none of their own. */
  async kept(): Promise<RankPool> {
    this.#kept ??= this.open(this.#parts.cpus).catch((error: unknown) => {
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
  async borrow(size: number): Promise<RankPool> {
    const spare = this.#spare
    this.#spare = null
    if (spare?.size === size && !spare.isGone) return spare
    void spare?.end()
    return this.open(size)
  }

  /** A task is over. Of those that were borrowed the last is kept. */
  free(pool: RankPool, isReused: boolean): void {
    if (this.#keptPools.has(pool)) return
    if (!isReused || pool.isGone || this.#isOver) return void pool.end()
    void this.#spare?.end()
    this.#spare = pool
  }

  /** For what the ranks map. */
  folderOf(pool: RankPool): string {
    return this.#folders.get(pool) as string
  }

  gone(pool: RankPool): void {
    this.#all.delete(pool)
  }

  async open(size: number): Promise<RankPool> {
    const { run, logs, watchdog, node } = this.#parts
    const mpi = findMpi()
    if (!mpi.compiler) {
      throw new MillraceError(
        'MR_MPI',
        'there is no mpicc on this machine, which builds what connects MPI to Node',
      )
    }
    const { mpiAddon } = await import('../../native/mpi-addon.ts')
    // Programs without MPI tasks do not load it.
    const { RankPool: Pool } = await import('./pool.ts')
    const addon = await mpiAddon(mpi.compiler).catch((error: unknown) => {
      throw new MillraceError(
        'MR_MPI',
        `what connects MPI to Node could not be built: ${(error as Error).message}`,
      )
    })
    watchdog.start()
    const folder = sharedFolder(run)
    watchdog.folder(folder)
    const entry = process.argv[1] ? pathToFileURL(process.argv[1]).href : null
    const modules = [...taskModules()]
    const all = entry ? [...modules, entry] : modules
    const typescript = all.some(module => /\.[cm]?tsx?$/.test(modulePath(module)))
    const startedAt = clockOrigin() + performance.now() - this.#parts.now()
    const own = withoutScheduler(process.env as Record<string, string>)
    const environment = { ...own, MILLRACE_RUN: run }
    const pool: RankPool = new Pool(
      {
        mpi,
        size,
        folder,
        node,
        start: { addon, compiler: mpi.compiler, modules, entry, typescript, logs, startedAt },
        environment,
        execArgv: ['--conditions=millrace-thread'],
      },
      this.#parts.events(() => pool),
    )
    this.#all.add(pool)
    this.#folders.set(pool, folder)
    if (this.#isOver) pool.endNow()
    await pool.ready
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
