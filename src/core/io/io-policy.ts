import { nearest } from '../../general/nearest.ts'
import { MillraceError } from '../errors.ts'
import type { Task } from '../task.ts'
import type { IoQueue } from './io-queue.ts'
import type { Spot } from './storage.ts'

/** What an I/O policy may ask and do in one round. */
export interface IoRound {
  readonly queue: IoQueue
  readonly now: number
  /** The highest layer that has room for the task now, or null. */
  find(task: Task): Spot | null
  start(task: Task, spot: Spot): void
}

/** In which order ready I/O tasks are tried, and which of them may start. */
export interface IoPolicy {
  readonly name: string
  run(round: IoRound): void
}

/** First come, first served (Algorithm 2): who does not fit waits, and the next one is tried. */
const fcfs: IoPolicy = {
  name: 'fcfs',
  run(round) {
    for (;;) {
      const next = firstThatFits(round)
      if (!next) return
      round.start(next.task, next.spot)
    }
  },
}

function firstThatFits({ queue, find }: IoRound): { task: Task; spot: Spot } | null {
  const heads = headsOf(queue).sort(byRank)
  for (const task of heads) {
    const spot = find(task)
    if (spot) return { task, spot }
  }
  return null
}

const headsOf = (queue: IoQueue): Task[] => {
  const heads: Task[] = []
  for (const one of queue.filled) {
    const task = one.head()
    if (task) heads.push(task)
  }
  return heads
}

const byRank = (a: Task, b: Task): number => b.priority - a.priority || b.score - a.score || a.turn - b.turn

const POLICIES: Record<string, IoPolicy> = { fcfs }

export const IO_POLICIES: readonly string[] = Object.keys(POLICIES)

export function findIoPolicy(name: string): IoPolicy {
  const policy = Object.hasOwn(POLICIES, name) ? POLICIES[name] : undefined
  if (policy) return policy
  const near = nearest(name, IO_POLICIES)
  throw new MillraceError('MR_POLICY', `there is no I/O policy '${name}'`, {
    hint: near ? `Did you mean ${near}?` : `Use ${IO_POLICIES.join(', ')}.`,
  })
}
