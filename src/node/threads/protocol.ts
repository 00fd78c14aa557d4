import type { Holds } from '../../model/capture/call.ts'
import type { AccessMode } from '../../core/data/datum.ts'
import type { Demand } from '../../core/tasks/demand.ts'
import type { DatumKind } from '../../model/options/directions.ts'
import type { StreamRules } from '../../model/stream.ts'
import type { WireArgument, WireKept, WireStored } from './wire.ts'

/**
 * What the coordinator and its compute threads say to each other.
 *
 * Small tasks and small results go as byte records through two rings in shared memory; a message without
 * content only wakes the other side. What has buffers beside its bytes, and everything that is rare, goes
 * as a message. Both carry the same records:
 *
 * task record    how many messages with tasks, kinds or memory come before it; task, attempt, kind, flags; variant; CPUs and GPUs, if it has more than one CPU;
 *                slots; arguments; what earlier attempts released (see early-wire.ts); the list of its buffers, when
 *                they are not beside it, and where that begins, in four bytes
 * slot           how it is shared (SHARE), then its value or path
 * list           the number of its log, or 0 when it is not kept; how many elements the thread has; the value, or, when it has
 *                some, how many there are in all, how many bytes those take that it has, and the others with their length
 * argument       VALUE with the value, or SLOT with the slot, or INSIDE with the slot and the rest of a path, or PART with the
 *                slot and the number of an object in its value
 * result record  task, status (STATUS), whether it printed, start, duration; the outputs, or the error and,
 *                when they are wanted, the outputs as far as they came; for a task with the flag `steps`, milliseconds of
                decoding, waiting and encoding
 * release record task, status; start of the task, time of the release; the index of the value, its checksum (of a
 *                generator, that of all values so far), its size; the output
 * output         0 for memory written in place, and for what was released before; else the length plus one, the value, the number of its buffers
 *
 * A value whose bytes refer to buffers beside them is preceded by the index of its first buffer.
 */

export const SHARE = {
  /** Read by others too: must not be written. */
  read: 0,
  /** Belongs to the task, which may write it in place; it comes back as an output. */
  own: 1,
  /** The task writes a copy of its own, because others still read the original. */
  copy: 2,
  /** Shared memory that is written in place and needs no way back. */
  inPlace: 3,
  /** A file or directory: the path. */
  path: 4,
  /** A plain buffer that is lent for reading and comes back beside the result. */
  lend: 5,
  /** A plain buffer that several tasks want: the thread puts it into shared memory first and says so. */
  publish: 6,
  /** As inPlace, but a copy is kept and put back when the attempt fails. */
  guarded: 7,
  /** A list of which the thread may have the beginning (see kept-lists.ts), and that the task writes. */
  list: 8,
  /** The same for a task that reads it. */
  readList: 9,
  /** The same as what comes next; arguments are objects in the value. */
  parts: 10,
  /** The same; the values of other slots are inside, and their objects are numbered from these numbers on. */
  holds: 11,
} as const

export const ARGUMENT = { value: 0, slot: 1, inside: 2, part: 3 } as const

export const STATUS = { ok: 0, failed: 1, released: 2 } as const

export const FLAG = { partial: 1, early: 2, memory: 4, granted: 8, steps: 16 } as const

const LOOKS = 5

/**
 * Where `performance.now` of this thread begins, on the clock that all threads share: its `timeOrigin` is taken from the
 * wall clock, which may be set meanwhile.
 */
export function clockOrigin(): number {
  let origin = 0
  let least = Infinity
  // Between two looks at a clock the thread may be stopped for long: what came of the quickest looks holds.
  for (let i = 0; i < LOOKS; i++) {
    const before = performance.now()
    const shared = Number(process.hrtime.bigint()) / 1e6
    const took = performance.now() - before
    if (took >= least) continue
    least = took
    origin = shared - before - took / 2
  }
  return origin
}

/** What a thread needs to begin. */
export interface ThreadStart {
  toThread: SharedArrayBuffer
  fromThread: SharedArrayBuffer
  lane: number
  /** Carries I/O tasks: many at a time, each while the others wait for their devices. */
  io: boolean
  /** The program was sent to this machine, and is below this folder; null where it is at the paths that it has. */
  moduleRoot?: string | null
  /** Load modules through tsx. */
  typescript: boolean
  modules: string[]
  /** The program's own module, in case that a task is defined by code of another one. */
  entry: string | null
  logs: string | null
  /** When the run began, on the clock that all threads share. */
  startedAt: number
  /** Marks the processes that its tasks start, see watchdog.ts. */
  run: string
}

export interface CallRequest {
  type: 'call'
  task: number
  key: string
  module: string
  args: WireArgument[]
  slots: {
    id: number
    kind: DatumKind
    mode: AccessMode
    initial: WireStored | null
    path: string | null
    inPlace: boolean
    /** The value that the calling task gave it, when it is new. */
    value: WireKept
    fresh: boolean
    stream?: StreamRules
    named?: string
    hasParts?: boolean
    holds?: Holds
  }[]
  results: number[]
  group: string | null
  demand: Demand
  priority: number
  label: string
  /** What the task's `key` says. */
  extraKey?: string
}

/** What a running task asks of the coordinator and waits for. */
export type Question =
  | { ask: 'value'; id: number }
  | { ask: 'file'; path: string }
  /** `isEnd`: the task ends, and takes nothing any more. */
  | { ask: 'barrier'; isEnd: boolean }
  /** `failed`: its body did, with an error of ours that it was told, or of itself. */
  | { ask: 'group-end'; name: string; failed: 'told' | 'itself' | null }
  | { ask: 'cancel'; name: string }
  | { ask: 'remove-file'; path: string }
  /** A generator has made so much, and there is no room for more. */
  | { ask: 'room'; items: number; bytes: number }
  /** Values of a stream that the task was given. When they have arrived already, the task keeps its CPU. */
  | { ask: 'take'; stream: number; isThere: boolean }
  /** Futures of a stream that the task called for, under these numbers. */
  | { ask: 'next'; stream: number; items: number[] }
  /** An output is complete: its inode, size and time of its last change. */
  | { ask: 'committed'; path: string; file: number; size: number; modified: number }

export type FromThread =
  | { type: 'ready' }
  /** What was printed has gone out; the thread can be stopped. */
  | { type: 'flushed' }
  | { type: 'result'; bytes: Uint8Array; blobs: ArrayBufferLike[]; lent: ArrayBuffer[] }
  | { type: 'published'; task: number; slot: number; blobs: SharedArrayBuffer[] }
  /** Memory that the task will write in place, and a copy of it as it is now. */
  | { type: 'guarded'; task: number; target: Uint8Array; backup: Uint8Array }
  /** The thread ends under the task; these buffers were lent to it. */
  | { type: 'given-back'; task: number; lent: ArrayBuffer[] }
  | { type: 'log'; text: string }
  /** An I/O task kept its thread busy for so long, although others wait for it; milliseconds. */
  | { type: 'blocking'; task: number; milliseconds: number }
  /** The thread is not busy for ever. */
  | { type: 'alive' }
  | CallRequest
  | { type: 'ask'; request: number; task: number; question: Question }
  | { type: 'group'; task: number; name: string; parent: string | null }
  | { type: 'remove'; task: number; id: number }
  /** The value at this index will be what a called task makes. */
  | { type: 'link'; task: number; index: number; id: number }
  /** The loop over a stream was left; the stream was passed to the task, or is one that it called for. */
  | { type: 'close-stream'; task: number; stream: number; isPassed: boolean }
  /** The task cannot reach what it knew by this number any more. */
  | { type: 'forget'; task: number; id: number }

export type ToThread =
  | { type: 'task'; bytes: Uint8Array; blobs: readonly ArrayBufferLike[] }
  /** What records mean by the number of a kind. By itself: a record may be taken back, or overtaken by another. */
  | { type: 'kind'; number: number; key: string; module: string }
  /** Shared memory that records refer to by number; see kept-memory.ts. */
  | { type: 'memory'; entries: readonly number[]; buffers: readonly SharedArrayBuffer[] }
  /** Variables that the program has set, or deleted, since the thread began. */
  | { type: 'environment'; changes: readonly [string, string | undefined][] }
  | { type: 'forget-memory'; number: number }
  | { type: 'forget-list'; number: number }
  /** The task was cancelled while it waited: it gets no answers any more. */
  | { type: 'abandon'; task: number }
  | {
      type: 'answer'
      request: number
      ok: boolean
      /** The encoded value, or the error. */
      bytes: Uint8Array
      blobs: readonly ArrayBufferLike[]
    }
  | { type: 'alive?' }
  | { type: 'end' }

/** From this size on (bytes), transferring a record is faster than the two copies that a message makes. */
const GIVEN_AWAY = 16 * 1024

/** What goes to the other side with a message whose record is in `bytes`, which is its own. */
export function withRecord(bytes: Uint8Array, transfer: readonly ArrayBuffer[]): readonly ArrayBuffer[] {
  return bytes.length < GIVEN_AWAY ? transfer : [...transfer, bytes.buffer as ArrayBuffer]
}
