import type { Work } from '../plan/work.ts'

/** Outputs by what they were made of: command, contents of inputs, names. */
export interface OutputCache {
  /** Null when an input cannot be known by what is in it. */
  keyOf(work: Work): Promise<Buffer | null>
  /** Writes the outputs to these places; false when they are not known, or not as they were kept: then nothing is there. */
  restore(key: Buffer, work: Work, staged: readonly string[]): Promise<boolean>
  /** Keeps the outputs that are at these places; what goes wrong with that is no failure of the task. */
  store(key: Buffer, work: Work, staged: readonly string[]): Promise<void>
}
