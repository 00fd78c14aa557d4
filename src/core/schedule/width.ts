import type { Implementation, Task } from '../tasks/task.ts'

/** How much faster a task is expected to be on n CPUs while it has not been measured: n to the power of this. */
const SCALING = 0.8

export const timeCost = ({ estimate }: Implementation): number => estimate

/**
 * What each number of CPUs costs a task that may have several, where there are `cpus` in all. Its own time counts, and that of the `queued` tasks behind it, as
 * if all were as wide: with few of them the fastest is best, with many the one that takes the least CPU time.
 */
export function widthCost(
  task: Task,
  cpus: number,
  queued: number,
): (implementation: Implementation) => number {
  const crowd = (queued - 1) / Math.max(1, cpus)
  const widthOf = ({ demand }: Implementation): number => (demand ?? task.demand).cpus
  const known = task.kind.implementations.find(one => one.ended > 0)
  const onOne = known ? known.estimate * widthOf(known) ** SCALING : 1
  return one => {
    const width = widthOf(one)
    const time = one.ended > 0 ? one.estimate : onOne / width ** SCALING
    return time * (1 + crowd * width)
  }
}
