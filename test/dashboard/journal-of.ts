import { createJournal } from '../../src/report/journal/writer.ts'
import type { RunEvent } from '../../src/core/events.ts'
import { runStarted } from '../report/sample-run.ts'

/** Writes a journal of these events and returns its path. */
export async function journalOf(path: string, events: Iterable<RunEvent>): Promise<string> {
  const journal = createJournal(path, { flushEvery: Infinity })
  for (const event of events) journal.observe(event)
  await journal.close()
  if (journal.error) throw journal.error
  return path
}

/** A run of very many short tasks on some lanes, with a failure now and then. */
export function* manyTasks(count: number, lanes = 8): Generator<RunEvent> {
  yield { ...runStarted, run: 'many-tasks', nodes: [{ name: 'big', cpus: lanes, memory: 8e9 }] } as RunEvent
  for (let kind = 0; kind < 3; kind++) {
    const name = ['read', 'compute', 'store'][kind] as string
    yield { type: 'kind-defined', at: 0, kind, name, form: 'function', module: '/home/ada/many.ts' }
  }
  const free = new Float64Array(lanes)
  for (let task = 1; task <= count; task++) {
    const lane = task % lanes
    const begin = (free[lane] as number) + 0.01
    const end = begin + 0.5 + ((task * 7919) % 1000) / 500
    free[lane] = end
    const reads = task > lanes ? [task - lanes] : []
    yield {
      type: 'submitted',
      at: 0,
      task,
      kind: task % 3,
      parent: null,
      group: null,
      priority: 0,
      reads,
      writes: [task],
    }
    yield { type: 'ready', at: begin, task }
    yield { type: 'started', at: begin, task, attempt: 1, node: 0, lane, cpus: 1 }
    if (task % 100_000 === 77)
      yield {
        type: 'failed',
        at: end,
        task,
        attempt: 1,
        failure: { name: 'Error', message: 'the disk is gone' },
        next: 'cancelSuccessors',
      }
    else yield { type: 'finished', at: end, task, attempt: 1 }
  }
  yield { type: 'run-ended', at: Math.max(...free), outcome: 'failed' }
}
