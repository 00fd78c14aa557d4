import { nearest } from '../../general/nearest.ts'
import { StreamError } from '../../stream/stream-error.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import type { PlacedCommand } from './messages.ts'

interface Place {
  readonly name: string
  readonly cpus: number
}

/**
 * Which instances of which steps run on which node. A step with `nodes` has `times` instances on each of them. The others fill
 * the nodes one after the other, so that steps that read from each other share a node while its CPUs last.
 */
export function placeSteps(commands: readonly StepCommand[], nodes: readonly Place[]): PlacedCommand[][] {
  const placed: PlacedCommand[][] = nodes.map(() => [])
  const taken = nodes.map(() => 0)
  const numbers = new Map<string, number>()
  const put = (command: StepCommand, node: number, times: number): void => {
    const first = numbers.get(command.step) ?? 0
    numbers.set(command.step, first + times)
    taken[node] = (taken[node] ?? 0) + times
    placed[node]?.push({ ...command, first, times })
  }
  for (const command of commands) {
    for (const name of command.nodes ?? [])
      put(command, indexOf(name, command.step, nodes), command.times ?? 1)
  }
  const roomAt = (node: number): number => (nodes[node]?.cpus ?? 1) - (taken[node] ?? 0)
  for (const command of commands) {
    if (command.nodes) continue
    for (let left = command.times ?? 1; left > 0;) {
      const free = nodes.findIndex((_, i) => roomAt(i) > 0)
      // More steps than CPUs: each node gets its share.
      const node = free >= 0 ? free : leastLoaded(taken, nodes)
      const times = free >= 0 ? Math.min(left, roomAt(free)) : 1
      put(command, node, times)
      left -= times
    }
  }
  return placed
}

function indexOf(name: string, step: string, nodes: readonly Place[]): number {
  const index = nodes.findIndex(node => node.name === name)
  if (index >= 0) return index
  const names = nodes.map(node => node.name)
  const near = nearest(name, names)
  throw new StreamError(
    'MR_STREAM_STEPS',
    `step '${step}' is for a node '${name}', which is not among the nodes of this run`,
    near === undefined ? `the nodes are ${names.join(', ')}` : `did you mean '${near}'?`,
  )
}

function leastLoaded(taken: readonly number[], nodes: readonly Place[]): number {
  let best = 0
  const load = (i: number): number => (taken[i] ?? 0) / Math.max(1, nodes[i]?.cpus ?? 1)
  for (let i = 1; i < nodes.length; i++) if (load(i) < load(best)) best = i
  return best
}
