import type { Task } from '../../core/tasks/task.ts'
import { jobOf } from '../../node/job.ts'
import type { Content } from './file-digests.ts'
import type { Inputs } from './keys.ts'

/** What is known for keeping the results of one task. */
export class Keeping {
  /** Which call of its kind it is, from 1. */
  readonly ordinal: number
  /** What its `key` says. */
  readonly extra: string | null
  /** Undefined until they are needed; null when they cannot be known. */
  inputs: Inputs | Promise<Inputs | null> | null | undefined = undefined
  /** Why its results are not kept; null when they are. */
  why: string | null = null
  /** Values that it released before its end, as they are kept. */
  early: Map<number, Buffer> | null = null
  earlyBytes = 0
  /** Its output files, by slot. */
  files: Map<number, Promise<Content | null>> | null = null

  constructor(ordinal: number, extra: string | null) {
    this.ordinal = ordinal
    this.extra = extra
  }
}

export const keepingOf = (task: Task): Keeping | null => jobOf(task).keeping as Keeping | null

/** Neither the task nor those that called it are kept. */
export function spoil(task: Task | null, why: string): void {
  for (let at = task; at; at = at.parent) {
    const keeping = keepingOf(at)
    if (keeping) keeping.why ??= why
  }
}
