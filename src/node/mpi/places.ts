/** Where each rank is: the layout is that of `struct place` in native/mpi/status.c. */

export const PLACE_BYTES = 1024
export const WHERE = { at: 560, size: 320 } as const

/** Names of the calls by their number; the first ones are collective. */
const CALLS = [
  'nothing',
  'barrier',
  'bcast',
  'reduce',
  'allreduce',
  'gather',
  'gatherv',
  'allgather',
  'allgatherv',
  'scatter',
  'scatterv',
  'alltoall',
  'alltoallv',
  'split',
  'file open',
  'readAtAll',
  'writeAtAll',
  'setView',
  'setSize',
  'sync',
  'file close',
  'send',
  'recv',
  'wait',
  'probe',
  'readAt',
  'writeAt',
] as const
const LAST_COLLECTIVE = 20

export interface Place {
  /** The call that the rank is in; null for none. */
  readonly call: (typeof CALLS)[number] | null
  readonly isCollective: boolean
  readonly comm: number
  /** Ranks of the communicator. */
  readonly size: number
  /** Collective calls on it so far. */
  readonly sequence: number
  /** All calls so far. */
  readonly calls: number
  /** Of messages: the other rank, or -1 for any. */
  readonly peer: number
  readonly rank: number
  /** The line of the program, or ''. */
  readonly where: string
}

export function readPlace(bytes: Buffer, index: number): Place {
  const at = index * PLACE_BYTES
  const kind = bytes.readInt32LE(at)
  const text = bytes.toString('utf8', at + WHERE.at, at + WHERE.at + WHERE.size)
  return {
    call: kind === 0 ? null : (CALLS[kind] ?? null),
    isCollective: kind > 0 && kind <= LAST_COLLECTIVE,
    peer: bytes.readInt32LE(at + 12),
    comm: bytes.readUInt32LE(at + 16),
    size: bytes.readInt32LE(at + 20),
    sequence: bytes.readInt32LE(at + 24),
    calls: bytes.readInt32LE(at + 28),
    rank: bytes.readInt32LE(at + 40),
    where: text.slice(0, text.indexOf('\0') < 0 ? text.length : text.indexOf('\0')),
  }
}

/** Why the ranks of a task will never go on, or null when they may. `ended`: those whose function is over. */
export function standstill(places: readonly Place[], ended: ReadonlySet<number>): string | null {
  const live = places.filter((_, rank) => !ended.has(rank))
  if (live.length === 0) return null
  const missed = live.find(place => place.isCollective && place.size === places.length && place.comm === 1)
  if (missed && ended.size > 0) return `${listOf(ended)} ended while others wait: ${tellAll(places, ended)}`
  if (live.some(place => place.call === null || canGoOn(place, live))) return null
  return `no rank can go on: ${tellAll(places, ended)}`
}

/** Whether the call that the rank is in can complete by what the others do now. */
function canGoOn(place: Place, live: readonly Place[]): boolean {
  const { call, comm, sequence, size } = place
  if (call === 'readAt' || call === 'writeAt') return true
  if (place.isCollective) {
    const there = live.filter(
      other => other.isCollective && other.comm === comm && other.sequence === sequence,
    )
    return there.length >= size
  }
  if (call === 'send') return live.some(other => isReceiving(other) && comm === other.comm && other !== place)
  if (call === 'wait')
    return live.some(other => other !== place && (isReceiving(other) || other.call === 'send'))
  return live.some(other => other !== place && (other.call === 'send' || other.call === 'wait'))
}

const isReceiving = ({ call }: Place): boolean => call === 'recv' || call === 'wait' || call === 'probe'

const listOf = (ranks: ReadonlySet<number>): string =>
  ranks.size === 1 ? `rank ${[...ranks][0]}` : `ranks ${[...ranks].sort((a, b) => a - b).join(', ')}`

/** Maximum number of ranks listed. */
const MOST_TOLD = 16

function tellAll(places: readonly Place[], ended: ReadonlySet<number>): string {
  const told = places.slice(0, MOST_TOLD).map((place, rank) => {
    if (ended.has(rank)) return `rank ${rank} has ended`
    const what = place.call === null ? 'computes' : `is in ${tell(place)}`
    return `rank ${rank} ${what}${place.where === '' ? '' : ` (${place.where})`}`
  })
  const rest = places.length - told.length
  return told.join('; ') + (rest > 0 ? `; and ${rest} more` : '')
}

function tell({ call, isCollective, sequence, peer }: Place): string {
  if (isCollective) return `${call}, its collective call ${sequence}`
  if (call === 'send') return `send to rank ${peer}`
  if (call === 'recv' || call === 'probe') return `${call} from ${peer < 0 ? 'any rank' : `rank ${peer}`}`
  return String(call)
}
