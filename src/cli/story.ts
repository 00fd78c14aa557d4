import { findRun } from '../report/runs.ts'
import { story } from '../report/story.ts'
import { eventsOf } from './events-of.ts'
import { printLines } from './output.ts'
import { SimulatedEvents } from './simulated-events.ts'
import type { Given } from './spec.ts'

/** `millrace story` */
export async function execute({ operands: [task = '', name = 'last'] }: Given): Promise<void> {
  const run = await findRun(process.cwd(), name)
  const events = new SimulatedEvents(eventsOf(run))
  const lines = await story(events, task)
  printLines([...events.heading, ...lines])
}
