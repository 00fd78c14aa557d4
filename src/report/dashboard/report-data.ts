import type { Comparison } from '../compare/comparison.ts'
import type { SectionName, Sections, TaskFacts } from './protocol.ts'
import { Lane } from './state/lanes.ts'

/** What a report has inside: all sections, the slices of the timeline, and some tasks in full. */
export interface ReportData {
  sections: { [N in SectionName]: Sections[N] }
  lanes: PackedLane[]
  /** Slices that were merged, because there are very many. */
  merged: number
  tasks: TaskFacts[]
}

/** What the page of `millrace compare` has inside. */
export interface CompareData {
  comparison: Comparison
}

/** Slices of a lane in microseconds; each start counts from the end before it, each task from the task before it. */
export interface PackedLane {
  node: number
  lane: number
  isIo: boolean
  gaps: number[]
  lengths: number[]
  tasks: number[]
  kinds: number[]
  outcomes: number[]
}

const micros = (ms: number): number => Math.round(ms * 1000)

export function packLane(lane: Lane): PackedLane {
  const packed = emptyPacked(lane)
  let end = 0
  let task = 0
  for (let i = 0; i < lane.size; i++) {
    const start = micros(lane.starts.get(i))
    packed.gaps.push(start - end)
    end = micros(lane.ends.get(i))
    packed.lengths.push(end - start)
    packed.tasks.push(lane.tasks.get(i) - task)
    task = lane.tasks.get(i)
    packed.kinds.push(lane.kinds.get(i))
    packed.outcomes.push(lane.outcomes.get(i))
  }
  return packed
}

export const emptyPacked = ({ node, lane, isIo }: Pick<Lane, 'node' | 'lane' | 'isIo'>): PackedLane => ({
  node,
  lane,
  isIo,
  gaps: [],
  lengths: [],
  tasks: [],
  kinds: [],
  outcomes: [],
})

export function unpackLane(packed: PackedLane): Lane {
  const lane = new Lane(packed.node, packed.lane, packed.isIo)
  let end = 0
  let task = 0
  packed.gaps.forEach((gap, i) => {
    const start = end + gap
    end = start + (packed.lengths[i] ?? 0)
    task += packed.tasks[i] ?? 0
    lane.push(start / 1000, end / 1000, task, packed.kinds[i] ?? 0, packed.outcomes[i] ?? 0)
  })
  return lane
}
