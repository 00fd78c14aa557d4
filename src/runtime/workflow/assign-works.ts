import type { Node } from '../../core/schedule/machine.ts'
import { TaskGraph } from '../../core/schedule/task-graph.ts'
import type { Rule } from '../../flow/language/registry.ts'
import { NO_FILE, placeOf } from '../../flow/plan/work.ts'
import type { Work } from '../../flow/plan/work.ts'
import type { FlowState } from '../../flow/run/run-state.ts'
import { divide } from '../../node/processes/gpmetis.ts'
import type { PartitionWay } from '../../node/processes/gpmetis.ts'

/**
 * The node of each work, each after what it needs. A file counts by its size; one that is not there yet, by what its rule made
 * before, or else by what the work reads. Less than a work for each node is not divided.
 */
export function assignWorks(
  works: readonly Work[],
  nodes: readonly Node[],
  state: FlowState,
  way: PartitionWay,
): Map<Work, number> {
  const assigned = new Map<Work, number>()
  if (works.length < nodes.length) return assigned
  const graph = new TaskGraph()
  const sizes = new Sizes(works, state)
  for (const work of works) {
    const reads = work.inputs.flatMap(input => {
      if (input === NO_FILE) return []
      const maker = state.makerOf(input)
      // A file inside a directory that a task makes is read as part of it.
      const isInside = maker && placeOf(input, maker) < 0
      return [[isInside ? maker.outputs[0] : input, sizes.of(input)] as const]
    })
    graph.add(1, reads, work.outputs)
    sizes.made(
      work,
      reads.reduce((sum, [, bytes]) => sum + bytes, 0),
    )
  }
  const parts = divide(
    graph.graph(nodes.length),
    nodes.map(({ cpus }) => cpus),
    way,
  )
  for (const [i, work] of works.entries()) assigned.set(work, (nodes[parts[i] as number] as Node).index)
  return assigned
}

/** Bytes of files, as far as that can be known before they are made. */
class Sizes {
  readonly #state: FlowState
  readonly #means = new Map<Rule, { sum: number; count: number }>()
  readonly #guesses = new Map<number, number>()

  constructor(works: readonly Work[], state: FlowState) {
    this.#state = state
    for (const { rule, outputs } of works) {
      for (const output of outputs) {
        const bytes = this.#seen(output)
        if (bytes === null) continue
        const mean = this.#means.get(rule) ?? { sum: 0, count: 0 }
        this.#means.set(rule, { sum: mean.sum + bytes, count: mean.count + 1 })
      }
    }
  }

  of(file: number): number {
    return this.#seen(file) ?? this.#guesses.get(file) ?? 0
  }

  /** `read`: bytes that the work reads. */
  made({ rule, outputs }: Work, read: number): void {
    const mean = this.#means.get(rule)
    const guess = mean ? mean.sum / mean.count : read / outputs.length
    for (const output of outputs) this.#guesses.set(output, guess)
  }

  #seen(file: number): number | null {
    const { files } = this.#state
    return files.exists(file) && !files.folders.has(file) ? (files.nowSize[file] as number) : null
  }
}
