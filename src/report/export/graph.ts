import type { RunEvent } from '../../core/events.ts'
import { groupedGraph, KindGraph } from './graph-kinds.ts'
import { detailedGraph, TaskGraph } from './graph-tasks.ts'
import { Statistics } from '../statistics/statistics.ts'
import { writeWhole } from './write-whole.ts'

/** Above this many tasks a picture of each shows nothing. */
export const MAX_DRAWN_TASKS = 2000

/**
 * The graph of a run as DOT. The same program gives the same bytes at any timing, so that two runs
 * can be compared with `diff`: no times, no version numbers, everything sorted, and tasks numbered by their
 * place in the program (see graph-tasks.ts).
 */
export async function writeGraph(events: AsyncIterable<RunEvent>, path: string): Promise<void> {
  const lines = await graphLines(events)
  await writeWhole(
    path,
    lines.map(line => `${line}\n`),
  )
}

export async function graphLines(events: AsyncIterable<RunEvent>): Promise<string[]> {
  const statistics = new Statistics()
  const kinds = new KindGraph()
  const tasks = new TaskGraph(MAX_DRAWN_TASKS)
  for await (const event of events) {
    statistics.observe(event)
    kinds.observe(event)
    tasks.observe(event)
  }
  const names = new Map([...statistics.kinds.values()].map(kind => [kind.kind, kind.name]))
  const lines = tasks.isTooLarge
    ? groupedGraph(kinds, statistics, MAX_DRAWN_TASKS)
    : detailedGraph(tasks, names)
  if (statistics.run?.simulated) lines.splice(1, 0, '  label="simulated"')
  return lines
}
