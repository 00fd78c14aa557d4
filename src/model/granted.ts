import { currentClient } from './client.ts'

/** What a task has while it runs. */
export interface Granted {
  /** How many CPUs: as many threads should compute at one time. */
  readonly cpus: number
  /** The numbers of the CPUs that it is bound to; null when it is not bound. */
  readonly bound: readonly number[] | null
  /** The ids of its GPUs, as CUDA_VISIBLE_DEVICES takes them. */
  readonly gpus: readonly string[]
}

export const ONE_CPU: Granted = { cpus: 1, bound: null, gpus: [] }

/** Inside a task: the CPUs and GPUs that it has. In the program itself: one CPU. */
export const granted = (): Granted => currentClient().granted()
