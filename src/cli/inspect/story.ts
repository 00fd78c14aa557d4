import { findRun } from '../../report/journal/runs.ts'
import { story } from '../../report/story/story.ts'
import { eventsOf } from './events-of.ts'
import { printLines } from '../output.ts'
import { SimulatedEvents } from '../simulate/simulated-events.ts'
import type { Given } from '../spec.ts'

/** `millrace story` */
export async function execute({ operands: [task = '', name = 'last'] }: Given): Promise<void> {
  const run = await findRun(process.cwd(), name)
  const events = new SimulatedEvents(eventsOf(run))
  const lines = await story(events, task)
  printLines([...events.heading, ...lines])
}
