/** Buffers that were made on other machines, and whose content is only there. */
export interface Elsewhere {
  isAway(buffer: ArrayBufferLike): boolean
  /** It was on machines that are lost. */
  isLost(buffer: ArrayBufferLike): boolean
  /** No other machine than this node has it. */
  isOnlyOn(buffer: ArrayBufferLike, node: number): boolean
  /** Fills it with its content; null where that is here. Rejects with an error of a lost machine where it is lost. */
  bring(buffer: ArrayBufferLike): Promise<void> | null
}
