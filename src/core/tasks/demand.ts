/** Limits between which a bandwidth is learned, each trial `delta` times the one before. */
export interface BoundedAuto {
  readonly min: number
  readonly max: number
  readonly delta: number
}

/** Bytes per second, or how they are found; null asks for none and has no limit. */
export type Bandwidth = number | 'auto' | BoundedAuto | 'adaptive' | null

/** What a task asks of the storage of its node. */
export interface StorageDemand {
  readonly bandwidth: Bandwidth
  /** Which way its bytes go; null: writing if it writes files, else reading if it reads files. */
  readonly direction: 'read' | 'write' | null
  /** Bytes that it writes; null: as much as its kind wrote so far. */
  readonly size: number | null
  /** The only device that it may use; null: the highest layer with room. */
  readonly device: string | null
}

/** How a task that runs in several processes may be on several nodes. */
export interface Spread {
  /** CPUs of one process, which are on one node. */
  readonly unit: number
  /** CPUs of one node at most. */
  readonly perNode: number
}

/** What is asked of a node while a task runs there. Made by `demandOf` and those below. */
export class Demand {
  readonly id: number
  /** The one of all that are nearly equal for which queues are kept; itself, unless it was made by `withSize`. */
  readonly alike: Demand
  /** 0 for I/O tasks. */
  readonly cpus: number
  /** Bytes. */
  readonly memory: number
  readonly tags: readonly string[]
  /** Whole devices, or a share of one below 1. */
  readonly gpus: number
  /** Holds an I/O executor instead of CPUs. */
  readonly io: boolean
  readonly storage: StorageDemand | null
  /** Null for the many that are on one node. */
  readonly spread: Spread | null

  constructor(
    id: number,
    cpus: number,
    memory: number,
    tags: readonly string[],
    io: boolean,
    storage: StorageDemand | null,
    gpus: number,
    spread: Spread | null,
    alike: Demand | null = null,
  ) {
    this.id = id
    this.alike = alike ?? this
    this.cpus = cpus
    this.memory = memory
    this.tags = tags
    this.gpus = gpus
    this.io = io
    this.storage = storage
    this.spread = spread
  }
}

const demands = new Map<string, Demand>()

/**
 * Equal demands are one object, so that queues can be kept per demand. A caller that computes a demand per call
 * rounds it (`roundMemory`), or there would be as many queues as tasks.
 */
export function demandOf(
  cpus: number,
  memory: number,
  tags: readonly string[],
  io = false,
  storage: StorageDemand | null = null,
  gpus = 0,
  spread: Spread | null = null,
): Demand {
  const apart = spread ? ` ${spread.unit} ${spread.perNode}` : ''
  const more = io || storage || gpus > 0 || spread ? ` ${io} ${JSON.stringify(storage)} ${gpus}${apart}` : ''
  const key = `${cpus} ${memory} ${tags.join(',')}${more}`
  let demand = demands.get(key)
  if (!demand) {
    demand = new Demand(demands.size, io ? 0 : cpus, memory, [...tags], io, storage, gpus, spread)
    demands.set(key, demand)
  }
  return demand
}

export interface IoWishes {
  bandwidth?: Bandwidth
  direction?: 'read' | 'write' | null
  size?: number | null
  device?: string | null
}

/** The demand of an I/O task, or with `cpus` of a compute task that also asks for storage. */
export function ioDemandOf(
  wishes: IoWishes = {},
  cpus = 0,
  memory = 0,
  tags: readonly string[] = [],
  gpus = 0,
): Demand {
  const { bandwidth = null, direction = null, size = null, device = null } = wishes
  const plain = bandwidth === null && size === null && device === null && direction === null
  const storage = plain ? null : { bandwidth, direction, size, device }
  return demandOf(cpus, memory, tags, cpus === 0, storage, gpus)
}

/**
 * A demand like the other, but for a size of its own. Sizes that are computed per call are exact this way, while
 * there is one queue for all that are nearly equal: the other one has the size rounded up.
 */
export function withSize(demand: Demand, size: number): Demand {
  const { id, alike, cpus, memory, tags, io, storage, gpus, spread } = demand
  if (!storage || storage.size === size) return alike
  return new Demand(id, cpus, memory, tags, io, { ...storage, size }, gpus, spread, alike)
}

/** Rounds up to four significant bits: at most 16 values per power of two, at most 6% too much. */
export function roundMemory(bytes: number): number {
  if (bytes < 16) return Math.ceil(bytes)
  const unit = 2 ** (Math.floor(Math.log2(bytes)) - 4)
  return Math.ceil(bytes / unit) * unit
}
