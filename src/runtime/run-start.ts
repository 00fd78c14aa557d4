import type { RunEvent } from '../core/events.ts'
import type { NodeDescription } from '../core/schedule/machine.ts'
import type { Policy } from '../core/schedule/policy.ts'
import type { Reporting } from './reporting.ts'
import type { RunOptions } from './run-options.ts'
import type { Runtime } from './runtime.ts'
import { packageVersion } from './version.ts'

type RunStarted = Extract<RunEvent, { type: 'run-started' }>

/** Unique now and before: the process number may come back, the time does not. */
export const runId = (): string =>
  `${process.pid.toString(36)}${Date.now().toString(36)}${Math.floor(Math.random() * 36 ** 3).toString(36)}`

/** The first event of a run. */
export const runStarted = (
  runtime: Runtime,
  { run }: Reporting,
  { again }: RunOptions,
  nodes: readonly NodeDescription[],
  { name: policy }: Policy,
  facts: Pick<RunStarted, 'program' | 'args' | 'devices' | 'io'>,
): RunEvent => ({
  type: 'run-started',
  at: 0,
  run,
  version: packageVersion(),
  wallTime: new Date(Date.now() - runtime.now()).toISOString(),
  ...(again === undefined ? {} : { again }),
  cwd: process.cwd(),
  pid: process.pid,
  nodes: nodes.map(nodeFacts),
  policy,
  simulated: false,
  ...facts,
})

function nodeFacts({ name, cpus, memory, ioExecutors, storage }: NodeDescription) {
  const facts = { name, cpus, memory }
  return storage && ioExecutors !== undefined ? { ...facts, ioExecutors } : facts
}

/** Tells the observers that the run has begun, and whether it leaves a journal. */
export function announce(runtime: Runtime, reporting: Reporting, started: RunEvent): void {
  runtime.engine.observer?.(started)
  if (reporting.isUnrecorded)
    runtime.note('warning', `${process.cwd()} cannot be written: this run leaves no journal and no logs`)
}
