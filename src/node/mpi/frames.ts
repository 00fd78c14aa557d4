import type { Layout } from '../../model/mpi/form.ts'

/**
 * What the coordinator and the ranks say to each other, through a socket: the length of a header, its JSON, and the bytes that it
 * announces. Large arrays are in files in memory, which the ranks map.
 */

/**
 * A buffer that goes with a record: in a file of the folder of its site, behind the header, or the one that came with the task at
 * this place.
 */
export type WireBlob =
  { readonly path: string; readonly size: number } | { readonly size: number } | { readonly given: number }

export interface TaskHeader {
  readonly type: 'task'
  readonly id: number
  readonly attempt: number
  readonly kind: number
  readonly key: string
  readonly module: string
  /** Ranks of the world, in the order of the ranks of the task. */
  readonly ranks: readonly number[]
  readonly rank: number
  readonly tag: number
  /** Only what this rank returns counts; null for all. */
  readonly root: number | null
  readonly layout: Readonly<Record<number, Layout>>
  readonly isGenerator: boolean
  /** A file for small arrays that the task writes, in the folder of each site. */
  readonly scratch: { readonly path: string; readonly size: number } | null
  readonly cpus: readonly number[]
  readonly threads: number
  readonly gpus: readonly string[]
  readonly blobs: readonly WireBlob[]
  /** Of the ranks on several machines: by rank, the number of its machine; null where all are on one. */
  readonly sites: readonly number[] | null
  readonly record: number
}

export type ToRank =
  | TaskHeader
  /** The next value of a generator is wanted, or none any more. */
  | { readonly type: 'step'; readonly id: number; readonly isWanted: boolean }
  | { readonly type: 'end' }
  /** The process that was asked for by `start` has ended. */
  | { readonly type: 'over'; readonly code: number }

export interface EndHeader {
  readonly type: 'ended'
  readonly id: number
  readonly attempt: number
  readonly rank: number
  readonly ok: boolean
  /** What it returns was released before. */
  readonly isReleased: boolean
  readonly blobs: readonly WireBlob[]
  readonly record: number
}

/** A value that a rank released by `ready`, or yielded. */
export interface ReleasedHeader {
  readonly type: 'released'
  readonly id: number
  readonly attempt: number
  readonly rank: number
  readonly blobs: readonly WireBlob[]
  readonly record: number
}

export type FromRank =
  | {
      readonly type: 'hello'
      readonly rank: number
      readonly size: number
      readonly pid: number
      readonly mpi: string
    }
  | { readonly type: 'refused'; readonly reason: string }
  /** A launcher wants this line of a shell to be run on another site. */
  | { readonly type: 'start'; readonly host: string; readonly line: string }
  | EndHeader
  | ReleasedHeader

export const bytesBehind = (header: ToRank | FromRank): number => {
  if (!('blobs' in header)) return 0
  let bytes = header.record
  for (const blob of header.blobs) if ('size' in blob && !('path' in blob)) bytes += blob.size
  return bytes
}

export function frame(header: ToRank | FromRank, parts: readonly Uint8Array[] = []): Buffer {
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(text.length)
  return Buffer.concat([length, text, ...parts])
}

/** Puts frames together again. */
export class FrameReader<H extends ToRank | FromRank> {
  #rest: Buffer = Buffer.alloc(0)
  readonly #onFrame: (header: H, bytes: Buffer) => void

  constructor(onFrame: (header: H, bytes: Buffer) => void) {
    this.#onFrame = onFrame
  }

  take(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    for (;;) {
      if (this.#rest.length < 4) return
      const end = 4 + this.#rest.readUInt32LE(0)
      if (this.#rest.length < end) return
      const header = JSON.parse(this.#rest.toString('utf8', 4, end)) as H
      const whole = end + bytesBehind(header)
      if (this.#rest.length < whole) return
      const bytes = this.#rest.subarray(end, whole)
      this.#rest = this.#rest.subarray(whole)
      this.#onFrame(header, bytes)
    }
  }
}

/** What the processes of the ranks are started with, as JSON in MILLRACE_MPI. */
export interface RankStart {
  readonly socket: string
  readonly addon: string
  /** Of the site's MPI. */
  readonly compiler: string
  readonly places: string
  readonly placesBytes: number
  /** Where results that are large are put. */
  readonly folder: string
  readonly modules: readonly string[]
  readonly entry: string | null
  readonly typescript: boolean
  readonly logs: string | null
  readonly startedAt: number
  /** The working folder. */
  readonly cwd: string
  /** Where the modules of the program are, on machines that have a copy of it. */
  readonly moduleRoot: string | null
}
