import type { Device } from '../core/io/device.ts'

/** Where one version of a file or directory is. */
export class FileCopy {
  path: string
  /** Not at the place where the user wants it, but in a staging folder beside it, or on another device. */
  staged: boolean
  /** The device that it is kept on until somebody wants it at its place. */
  tier: Device | null

  constructor(path: string, staged: boolean, tier: Device | null = null) {
    this.path = path
    this.staged = staged
    this.tier = tier
  }
}
