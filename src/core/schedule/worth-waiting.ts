import { suits } from './machine.ts'
import type { Node } from './machine.ts'
import { starved } from './ready-queue.ts'
import type { Implementation, Task } from '../tasks/task.ts'

/**
 * Whether a task that could start now had better wait for a GPU: an implementation of it that needs one is so much faster
 * that the GPU would be through with all `waiting` tasks before this one is done without it.
 */
export function isWorthWaiting(
  task: Task,
  best: Implementation,
  nodes: readonly Node[],
  waiting: number,
  now: number,
): boolean {
  // A task that was overtaken often enough would keep others from starting.
  if (best.ended === 0 || starved(task)) return false
  for (const one of task.kind.implementations) {
    const { demand } = one
    if (!demand || demand.gpus === 0 || one.ended === 0 || one.estimate >= best.estimate) continue
    for (const node of nodes) {
      if (node.isPaused || !suits(node, task) || !node.suits(demand)) continue
      const free = nextGpu(node, now)
      if (free !== null && free + waiting * one.estimate < best.estimate) return true
    }
  }
  return false
}

/** Milliseconds until a task that holds a GPU is expected to end; null where that is not known. */
function nextGpu(node: Node, now: number): number | null {
  let soonest: number | null = null
  for (const holder of node.gpus.holders()) {
    // One that waits for others may wait for the very task in question.
    if (holder.state !== 'running' || holder.implementation.ended === 0) return null
    const elapsed = holder.startedAt < 0 ? 0 : now - holder.startedAt
    const { estimate } = holder.implementation
    // One that takes longer than expected is expected to take as long again.
    const left = elapsed < estimate ? estimate - elapsed : elapsed
    if (soonest === null || left < soonest) soonest = left
  }
  return soonest
}
