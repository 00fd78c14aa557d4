import { MillraceError } from '../errors.ts'
import type { Task } from '../tasks/task.ts'
import { nearest } from '../../general/nearest.ts'

/** What a policy may know of the moment in which a task becomes ready. */
export interface Situation {
  readonly now: number
  /** Grows by one with every task that becomes ready. */
  readonly turn: number
  /** The task whose end, or early release, made this one ready; null when it waited for nothing. */
  readonly releasedBy: Task | null
}

/** What a policy that goes by rank may know when a task is to be taken: the ready tasks of one priority. */
export interface ReadyRanks {
  /** CPUs of the nodes that these tasks are for. */
  readonly cores: number
  readonly size: number
  /** The highest rank among them, and how many have it. */
  readonly highest: number
  readonly atHighest: number
  /** A rank by chance, each as likely as its tasks are short, by the mean of those that have ended. */
  pick(): number
}

/** A node that could run a task, as a policy sees it. */
export interface Place {
  readonly node: number
  readonly name: string
  readonly cpus: number
  /** CPUs that no task holds now. */
  readonly freeCpus: number
  readonly tags: ReadonlySet<string>
  /** Names of the implementations of the task that could run here; see `implement`. */
  readonly implementations: readonly string[]
  /** Bytes of what the task reads that this node has: on a disk, in its page cache, in memory. */
  readonly bytes: number
  /** Bytes of all that the task reads, as far as they are known. */
  readonly allBytes: number
  /** All nodes that could run the task, this one among them. */
  readonly all: readonly Place[]
}

/** The rank to take a task of, the one with the freshest inputs first, then the last in; null: of all ranks. */
export type Choose = (ranks: ReadyRanks) => number | null

/**
 * A scheduling policy. Among ready tasks the one of highest `priority` runs first; among equals the one of
 * highest score; among equals the one that became ready first. The score is asked once, at that moment.
 */
export interface Policy {
  readonly name: string
  score(task: Task, situation: Situation): number
  /**
   * How well a node suits a task, where there are several. Asked once for each node that could run it, when it becomes ready; it
   * then waits for the node with the highest number, and runs elsewhere only when another is idle. `Infinity`: it runs there and
   * nowhere else, unless that node is lost, paused or about to end. Where all are equal it waits for none. Without this, it waits
   * for the node that has most of what it reads.
   */
  place?(task: Task, place: Place): number
  /** Tasks released by the task that has just ended on a lane go first on that lane. */
  readonly successorsFirst?: boolean
  /**
   * Asked each time a task is taken, instead of the score. The rank of a task is its distance from the end of
   * the graph, and rises as the graph grows.
   */
  readonly choose?: Choose
}

/** First in, first out: in the order of becoming ready. */
export const fifo: Policy = { name: 'fifo', score: () => 0 }

/** Last in, first out: what became ready last is probably still in a cache. */
export const lifo: Policy = { name: 'lifo', score: (_task, { turn }) => turn }

/** Successors of the task that has just ended first, in order; then FIFO. */
export const fifoData: Policy = { name: 'fifo-data', score: () => 0, successorsFirst: true }

/** Highest rank first: what the longest way to the end begins with, so that nothing trails behind. */
export const hrf: Policy = { name: 'hrf', score: () => 0, choose: ({ highest }) => highest }

/** What is probably in a cache first while there is plenty of the highest rank, else highest rank first. */
export const lifoHrf: Policy = {
  name: 'lifo+hrf',
  score: () => 0,
  choose: ({ cores, highest, atHighest }) => (atHighest > cores ? null : highest),
}

/** Tasks of all ranks side by side, so that those that compute run with those that read; at the end by rank. */
export const rank: Policy = {
  name: 'rank',
  score: () => 0,
  choose: ranks => (ranks.size < ranks.cores ? ranks.highest : ranks.pick()),
}

export const POLICIES: readonly Policy[] = [fifo, lifo, fifoData, hrf, lifoHrf, rank]

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

/** The node that a policy of its own wants for a task; null: any. `isOnly`: and no other one. */
export function placeOf(
  policy: Policy,
  task: Task,
  places: readonly Place[],
): { node: number; isOnly: boolean } | null {
  let best: Place | null = null
  let most = -Infinity
  let isEqual = true
  for (const place of places) {
    const score = checked(policy, task, () => policy.place?.(task, place) ?? 0)
    if (best && score !== most) isEqual = false
    if (best && score <= most) continue
    best = place
    most = score
  }
  if (!best || (isEqual && places.length > 1)) return null
  return { node: best.node, isOnly: most === Infinity }
}

/** Checked at the border, so that a wrong policy of a user is named instead of scrambling the queue. */
function checked(policy: Policy, task: Task, ask: () => number): number {
  let score: number
  try {
    score = ask()
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

export const scoreOf = (policy: Policy, task: Task, situation: Situation): number =>
  checked(policy, task, () => policy.score(task, situation))
