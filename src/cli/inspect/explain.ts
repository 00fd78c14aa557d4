import { DeviceStatistics } from '../../report/statistics/device-statistics.ts'
import { findRun } from '../../report/journal/runs.ts'
import { eventsOf } from './events-of.ts'
import { printLines } from '../output.ts'
import { SimulatedEvents } from '../simulate/simulated-events.ts'
import type { Given } from '../spec.ts'

/** `millrace explain`: what a run found out about its storage. */
export async function execute({ operands: [name = 'last'] }: Given): Promise<void> {
  const run = await findRun(process.cwd(), name)
  const devices = new DeviceStatistics()
  const events = new SimulatedEvents(eventsOf(run))
  for await (const event of events) devices.observe(event)
  const lines = devices.explain()
  printLines(events.heading)
  printLines(lines.length > 0 ? lines : ['This run learned no limits, moved nothing, and no device failed.'])
}
