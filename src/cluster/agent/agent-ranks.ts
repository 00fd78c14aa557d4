import { MillraceError } from '../../core/errors.ts'
import { LocalSite } from '../../node/mpi/local-site.ts'
import type { LocalSiteParts } from '../../node/mpi/local-site.ts'
import type { RankError, RankNews, RankOrder } from '../link/rank-orders.ts'
import { FROM_AGENT } from '../link/frame-types.ts'
import type { FrameReader, FrameWriter } from '../link/frames.ts'
import { pack, unpack } from '../link/structured.ts'
import { Ordered } from '../transfer/incoming.ts'
import type { AgentMemory } from './agent-memory.ts'

interface Host {
  readonly writer: FrameWriter
  readonly memory: AgentMemory
  changed(): void
  siteParts(): LocalSiteParts
}

interface Pool {
  readonly site: LocalSite
  readonly orders: Ordered
  isClosed: boolean
}

const atOnce = (ready: () => void): void => ready()

/** Ranks of MPI tasks on this machine, as the coordinator drives them through the link. */
export class AgentRanks {
  readonly #host: Host
  readonly #pools = new Map<number, Pool>()

  constructor(host: Host) {
    this.#host = host
  }

  order(content: FrameReader): void {
    const number = content.varint()
    const order = unpack(content.block()) as RankOrder
    if (order.op === 'open') return this.#open(number, order)
    const pool = this.#pools.get(number)
    if (!pool) return
    const { site, orders } = pool
    if (order.op === 'places') return this.#tell(number, { op: 'places', bytes: site.places() })
    if (order.op === 'kill') return site.kill(order.processes)
    if (order.op === 'close') return this.#close(number, pool)
    if (order.op !== 'share') return orders.push(atOnce, () => this.#do(number, pool, order))
    let bytes: Uint8Array | null = null
    orders.push(
      ready =>
        this.#host.memory.resolve([order.reference], ([buffer]) => {
          bytes = new Uint8Array(buffer as SharedArrayBuffer)
          ready()
        }),
      () => {
        if (!pool.isClosed) site.share(order.name, bytes as Uint8Array)
      },
    )
  }

  /** Bytes for a process that has connected. */
  write(content: FrameReader): void {
    const pool = this.#pools.get(content.varint())
    const channel = content.varint()
    const bytes = Buffer.from(content.block())
    pool?.orders.push(atOnce, () => pool.site.write(channel, bytes))
  }

  end(): void {
    for (const [number, pool] of this.#pools) {
      pool.site.kill([])
      this.#close(number, pool)
    }
  }

  #open(number: number, { size, nodes }: RankOrder & { op: 'open' }): void {
    const site = new LocalSite(this.#host.siteParts())
    const pool: Pool = { site, orders: new Ordered(), isClosed: false }
    this.#pools.set(number, pool)
    const facts = site.open(
      { size, nodes },
      {
        data: (channel, chunk) => this.#said(number, channel, chunk),
        closed: channel => this.#tell(number, { op: 'closed', channel }),
        printed: (isOutput, bytes) => this.#tell(number, { op: 'printed', isOutput, bytes }),
        exited: (program, code, reason) => this.#tell(number, { op: 'exited', program, code, reason }),
        lost: () => undefined,
      },
    )
    facts.then(
      known => {
        if (pool.isClosed) site.close()
        this.#tell(number, { op: 'opened', facts: known })
      },
      (error: unknown) => this.#tell(number, { op: 'refused', error: told(error) }),
    )
  }

  #do(
    number: number,
    { site, isClosed }: Pool,
    order: Exclude<RankOrder, { op: 'open' | 'share' | 'places' | 'kill' | 'close' }>,
  ): void {
    if (isClosed) return
    switch (order.op) {
      case 'run':
        return site.run(order.program, order.words, order.isRank)
      case 'make':
        return site.make(order.name, order.size)
      case 'remove':
        return site.remove(order.names)
      case 'read': {
        const buffer = new SharedArrayBuffer(order.size)
        site.read(order.name, order.from, new Uint8Array(buffer))
        this.#tell(number, { op: 'read', id: order.id, number: this.#host.memory.sendOnce(buffer) })
      }
    }
  }

  #close(number: number, pool: Pool): void {
    pool.isClosed = true
    pool.site.close()
    this.#pools.delete(number)
  }

  #said(pool: number, channel: number, chunk: Buffer): void {
    const { writer } = this.#host
    writer.begin(FROM_AGENT.fromRank)
    writer.varint(pool)
    writer.varint(channel)
    writer.block(chunk)
    writer.end()
    this.#host.changed()
  }

  #tell(pool: number, news: RankNews): void {
    const { writer } = this.#host
    writer.begin(FROM_AGENT.ranks)
    writer.varint(pool)
    writer.block(pack(news).bytes)
    writer.end()
    this.#host.changed()
  }
}

const told = (error: unknown): RankError =>
  error instanceof MillraceError
    ? { code: error.code, message: error.shortMessage, hint: error.hint }
    : { code: null, message: (error as Error).message, hint: undefined }
