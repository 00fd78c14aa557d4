/** Where each rank is: the layout is that of `struct place` in native/mpi/status.c. */

export const PLACE_BYTES = 1024
export const WHERE = { at: 560, size: 320 } as const
const AT = { sending: 44, peer: 880, tag: 884, awaits: 888, receiving: 892, isWhole: 896 } as const

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
  'ibarrier',
  'ibcast',
  'ireduce',
  'iallreduce',
  'igather',
  'iallgather',
  'iscatter',
  'ialltoall',
  'split',
  'file open',
  'readAtAll',
  'writeAtAll',
  'setView',
  'setSize',
  'sync',
  'file close',
  'hdf5 open',
  'hdf5 dataset',
  'hdf5 write',
  'hdf5 read',
  'hdf5 close',
  'send',
  'recv',
  'wait',
  'probe',
  'readAt',
  'writeAt',
  'sendrecv',
] as const
const LAST_COLLECTIVE = 33
/** For those that other libraries make. */
export const CALL_NUMBERS = Object.fromEntries(CALLS.map((name, i) => [name, i])) as Record<
  (typeof CALLS)[number],
  number
>
/** The communicator of all ranks of the task. */
const TASK = 1

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
  /** Of messages: the other rank of the communicator, and the tag; -1 for any. */
  readonly peer: number
  readonly tag: number
  /** In a wait: the call that began what it waits for. */
  readonly awaits: (typeof CALLS)[number] | null
  /** Sends and receives that have begun and are not complete. */
  readonly sending: number
  readonly receiving: number
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
    peer: bytes.readInt32LE(at + AT.peer),
    tag: bytes.readInt32LE(at + AT.tag),
    awaits: CALLS[bytes.readInt32LE(at + AT.awaits)] ?? null,
    sending: bytes.readInt32LE(at + AT.sending),
    receiving: bytes.readInt32LE(at + AT.receiving),
    comm: bytes.readInt32LE(at + AT.isWhole) === 1 ? TASK : bytes.readUInt32LE(at + 16),
    size: bytes.readInt32LE(at + 20),
    sequence: bytes.readInt32LE(at + 24),
    calls: bytes.readInt32LE(at + 28),
    rank: bytes.readInt32LE(at + 40),
    where: text.slice(0, text.indexOf('\0') < 0 ? text.length : text.indexOf('\0')),
  }
}

export interface Standstill {
  readonly why: string
  /** It follows from the calls alone. Else messages may be on their way, and only time tells. */
  readonly isCertain: boolean
}

/** Why the ranks of a task will never go on, or null when they may. `ended`: those whose function is over. */
export function standstill(places: readonly Place[], ended: ReadonlySet<number>): Standstill | null {
  const live = places.filter((_, rank) => !ended.has(rank))
  if (live.length === 0) return null
  const missed = live.find(place => place.isCollective && place.size === places.length && place.comm === TASK)
  if (missed && ended.size > 0) {
    return { why: `${tellRanks(ended)} ended while others wait: ${tellAll(places, ended)}`, isCertain: true }
  }
  if (live.some(({ call }) => call === null || isFileCall(call))) return null
  const isCertain = !live.some(place => canGoOn(place, live))
  return { why: `no rank can go on: ${tellAll(places, ended)}`, isCertain }
}

/** How long a file takes is not ours to say. */
const isFileCall = (call: string): boolean => /^(?:read|write|file|set|sync|hdf5)/.test(call)

/** Whether the call that the rank is in can complete by what the others do now. */
function canGoOn(place: Place, live: readonly Place[]): boolean {
  const { comm, sequence, size } = place
  if (place.isCollective) {
    const there = live.filter(
      other => other.isCollective && other.comm === comm && other.sequence === sequence,
    )
    return there.length >= size
  }
  if (sends(place)) return live.some(other => other !== place && (other.receiving > 0 || meet(place, other)))
  if (receives(place)) return live.some(other => other !== place && (other.sending > 0 || meet(other, place)))
  // A collective call that has begun goes on while the ranks are in other calls.
  return true
}

const started = ({ call, awaits }: Place): string | null => (call === 'wait' ? awaits : call)
const sends = (place: Place): boolean => ['send', 'sendrecv'].includes(started(place) ?? '')
const receives = (place: Place): boolean => ['recv', 'probe', 'sendrecv'].includes(started(place) ?? '')

/** One sends what the other waits for. Who the ranks of a part of the task are is not known here: any may be the one. */
function meet(from: Place, to: Place): boolean {
  if (!sends(from) || !receives(to) || from.comm !== to.comm) return false
  if (from.tag >= 0 && to.tag >= 0 && from.tag !== to.tag) return false
  if (from.comm !== TASK) return true
  const isForIt = from.call === 'sendrecv' || from.peer === to.rank
  return isForIt && (to.peer < 0 || to.peer === from.rank)
}

export const tellRanks = (ranks: Iterable<number>): string => {
  const sorted = [...ranks].sort((a, b) => a - b)
  return sorted.length === 1 ? `rank ${sorted[0]}` : `ranks ${sorted.join(', ')}`
}

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

function tell({ call, isCollective, sequence, peer, tag, awaits }: Place): string {
  if (isCollective) return `${call}, its collective call ${sequence}`
  const what = call === 'wait' && awaits ? `wait of i${awaits.replace(/^i/, '')}` : String(call)
  const isMessage = ['send', 'recv', 'probe', 'sendrecv'].includes(
    call === 'wait' ? String(awaits) : String(call),
  )
  if (!isMessage) return what
  const direction = call === 'send' || awaits === 'send' ? 'to' : 'from'
  return `${what} ${direction} ${peer < 0 ? 'any rank' : `rank ${peer}`}${tag > 0 ? ` with tag ${tag}` : ''}`
}
