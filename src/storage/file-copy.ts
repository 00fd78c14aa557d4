import type { Version } from '../core/data.ts'
import type { Device } from '../core/io/device.ts'

/** Where one version of a file or directory is. */
export class FileCopy {
  path: string
  /** Not at the place where the user wants it, but in a staging folder beside it, or on another device. */
  staged: boolean
  /** The device that it is kept on until somebody wants it at its place. */
  tier: Device | null
  /** As it was committed; 0 for folders. */
  bytes = 0
  /** Somebody has seen that it is a plain file. */
  isPlain = false

  constructor(path: string, staged: boolean, tier: Device | null = null) {
    this.path = path
    this.staged = staged
    this.tier = tier
  }
}

/** What was committed, as far as anybody has measured it. */
export const bytesIn = ({ value, place }: Version): number =>
  (value instanceof FileCopy ? value.bytes : 0) || (place?.measured ?? 0)

/** A version that could not be brought to its place, and where it is. */
export interface Stranded {
  version: Version
  path: string
  error: unknown
}
