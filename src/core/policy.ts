import { MillraceError } from './errors.ts'
import type { Task } from './task.ts'
import { nearest } from '../general/nearest.ts'

/** What a policy may know of the moment in which a task becomes ready. */
export interface Situation {
  readonly now: number
  /** Grows by one with every task that becomes ready. */
  readonly turn: number
  /** The task whose end, or early release, made this one ready; null when it waited for nothing. */
  readonly releasedBy: Task | null
}

/**
 * A scheduling policy. Among ready tasks the one of highest `priority` runs first; among equals the one of
 * highest score; among equals the one that became ready first. The score is asked once, at that moment.
 */
export interface Policy {
  readonly name: string
  score(task: Task, situation: Situation): number
  /** Tasks released by the task that has just ended on a lane go first on that lane. */
  readonly successorsFirst?: boolean
}

/** First in, first out: in the order of becoming ready. */
export const fifo: Policy = { name: 'fifo', score: () => 0 }

/** Last in, first out: what became ready last is probably still in a cache. */
export const lifo: Policy = { name: 'lifo', score: (_task, { turn }) => turn }

/** Successors of the task that has just ended first, in order; then FIFO. */
export const fifoData: Policy = { name: 'fifo-data', score: () => 0, successorsFirst: true }

export const POLICIES: readonly Policy[] = [fifo, lifo, fifoData]

export function findPolicy(name: string): Policy {
  const found = POLICIES.find(policy => policy.name === name.toLowerCase())
  if (found) return found
  const names = POLICIES.map(policy => policy.name)
  const close = nearest(name, names)
  throw new MillraceError(
    'MR_POLICY',
    `there is no policy called '${name}'${close ? `; did you mean ${close}?` : ''}`,
    {
      hint: `Policies: ${names.join(', ')}, or the path of a module whose default export is a policy.`,
    },
  )
}

/** Checked at the border, so that a wrong policy of a user is named instead of scrambling the queue. */
export function scoreOf(policy: Policy, task: Task, situation: Situation): number {
  let score: number
  try {
    score = policy.score(task, situation)
  } catch (cause) {
    throw new MillraceError('MR_POLICY', `policy '${policy.name}' threw for ${task.name}: ${String(cause)}`, {
      cause,
    })
  }
  if (typeof score !== 'number' || Number.isNaN(score)) {
    throw new MillraceError(
      'MR_POLICY',
      `policy '${policy.name}' gave ${String(score)} as the score of ${task.name}`,
    )
  }
  return score
}
