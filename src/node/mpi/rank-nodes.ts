import { MillraceError } from '../../core/errors.ts'
import type { Node } from '../../core/schedule/machine.ts'
import type { Task } from '../../core/tasks/task.ts'
import { attemptOf } from '../job.ts'
import type { RankPlace, Shares } from './rank-pools.ts'

/** A node with CPUs for ranks. */
export interface RankNode {
  readonly machine: Node
  readonly place: RankPlace
  /** The node is this machine, or an agent on it. */
  readonly isHere: boolean
  /** It does not see our folders. */
  readonly isApart: boolean
}

/**
 * Where the ranks of a task over several nodes are. It has `lanes` lanes of its own node, and has borrowed the others. Agents on
 * this machine are one place.
 */
export function spreadShares(
  task: Task,
  unit: number,
  lanes: number,
  own: RankNode,
  nodes: readonly RankNode[],
): Shares {
  const all = nodes.flatMap(node => {
    const held = node === own ? lanes : node.machine.lanesLentTo(task)
    return held > 0 ? [{ node, count: held / unit }] : []
  })
  if (own.isHere) return [{ place: own.place, count: all.reduce((sum, { count }) => sum + count, 0) }]
  const apart = all.find(({ node }) => node.isApart)
  if (apart && attemptOf(task).paths) {
    throw new MillraceError(
      'MR_MPI',
      `${task.name} has files and ranks on several nodes, and node ${apart.node.machine.name} does not see the working folder`,
      { hint: 'Use a folder that all nodes see, or ask for no more ranks than one node has CPUs.' },
    )
  }
  return all.map(({ node, count }) => ({ place: node.place, count }))
}
