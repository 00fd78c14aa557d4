import type { Observer } from '../core/events.ts'
import type { Policy } from '../core/schedule/policy.ts'
import { deviceFacts, ioFacts } from '../core/io/facts.ts'
import type { IoOptions } from '../core/io/io-core.ts'
import type { Platform } from './machine/platform.ts'
import { outcomeOf } from './outcome.ts'
import type { SimulatedOutcome } from './outcome.ts'
import { Simulation } from './simulation.ts'
import type { Workload } from './input/workload.ts'

export interface SimulateOptions extends IoOptions {
  platform: Platform
  policy?: Policy
  /** Sees every change of state, as that of a real run does. */
  observer?: Observer | null
  /** Compute times vary by so much at most: 0.1 is up to a tenth more or less. @default 0 */
  jitter?: number
  /** What chance begins with. @default 1 */
  seed?: number
  /** Bytes per second that each I/O task asks for, instead of what it says itself. */
  bandwidth?: number
}

/** How a simulated run calls itself. */
export interface RunFacts {
  run: string
  version: string
  wallTime: string
  program: string
  args: string[]
  cwd: string
}

const NO_PROGRAM: RunFacts = {
  run: 'simulated',
  version: '',
  wallTime: '1970-01-01T00:00:00.000Z',
  program: '',
  args: [],
  cwd: '',
}

/** Runs a workload on a platform, in virtual time, from beginning to end. */
export async function simulate(
  workload: Workload,
  options: SimulateOptions,
  facts: RunFacts = NO_PROGRAM,
): Promise<SimulatedOutcome> {
  const simulation = new Simulation(options)
  const { engine } = simulation
  engine.observer?.({
    type: 'run-started',
    at: 0,
    ...facts,
    program: facts.program || workload.name,
    pid: 0,
    nodes: options.platform.nodes.map(({ name, cpus, memory, ioExecutors }) => ({
      name,
      cpus,
      memory,
      ...(ioExecutors === undefined ? {} : { ioExecutors }),
    })),
    ...(engine.io.devices.length > 0
      ? { devices: deviceFacts(engine.io.devices), io: ioFacts(options) }
      : {}),
    policy: engine.policy.name,
    simulated: true,
  })
  try {
    await workload.begin(simulation)
    simulation.run()
  } catch (error) {
    const message = (error as Error).message.split('\n')[0] ?? ''
    engine.observer?.({ type: 'run-ended', at: simulation.clock.now, outcome: 'failed', message })
    throw error
  }
  engine.observer?.({ type: 'run-ended', at: simulation.clock.now, outcome: 'ok' })
  return outcomeOf(simulation)
}
