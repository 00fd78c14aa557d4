import { readJournal } from '../report/journal-reader.ts'
import { findRun } from '../report/runs.ts'
import { story } from '../report/story.ts'
import { printLines } from './output.ts'
import { SimulatedEvents } from './simulated-events.ts'
import type { Given } from './spec.ts'

/** `millrace story` */
export async function execute({ operands: [task = '', name = 'last'] }: Given): Promise<void> {
  const run = await findRun(process.cwd(), name)
  const events = new SimulatedEvents(readJournal(run.journal))
  const lines = await story(events, task)
  printLines([...events.heading, ...lines])
}
