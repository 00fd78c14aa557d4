/** A version of a file or directory that is on nodes only, where tasks made and read it. */
export interface Away {
  readonly bytes: number
  /** The nodes that had it are gone. */
  readonly isLost: boolean
  /** Calls when it is here, was dropped, or is to be made again: it is not away any more. */
  over: () => void
  /** Brings it here because its node has little room; null until it is known how. */
  bringSoon: (() => Promise<void>) | null
  /** No other node than this one has it. */
  isOnlyOn(node: number): boolean
  /** Writes it to a path here. Rejects with an error of a lost machine where no node has it any more. */
  bring(path: string): Promise<void>
  /** It is not needed any more. */
  drop(): void
}
