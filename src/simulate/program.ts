import { MillraceError } from '../core/errors.ts'
import type { Client, Host } from '../model/client.ts'
import { ProgramClient } from './program-client.ts'
import { programFailure } from './program-failure.ts'
import type { Workload } from './workload.ts'

/** The host of a program that is simulated: it keeps what `main` was given, to run it as often as needed. */
export class SimulatedHost implements Host {
  body: (() => unknown) | null = null
  current: Client | null = null

  client(): Client {
    if (this.current) return this.current
    throw new MillraceError('MR_SIMULATION', 'the program calls tasks outside main', {
      hint: 'Put the calls into main(async () => { … }): a simulation runs it, perhaps several times.',
    })
  }

  main(body: () => unknown): Promise<void> {
    this.body = body
    return Promise.resolve()
  }
}

/**
 * A program as a workload: `main` runs for real, what it calls is simulated. Time goes on only while the
 * program waits for something simulated, and stands still while it computes or does something of its own.
 */
export function programWorkload(name: string, body: () => unknown, host: SimulatedHost): Workload {
  return {
    name,
    async begin(simulation) {
      const client = new ProgramClient(simulation)
      host.current = client
      let ended = false
      const program = (async () => body())().finally(() => (ended = true))
      // It is looked at again below; until then nobody must complain that nobody does.
      program.catch(() => undefined)
      try {
        for (;;) {
          await untilIdle()
          simulation.decide()
          if (client.woken) {
            client.woken = false
            continue
          }
          if (ended) break
          if (client.waits === 0) continue
          while (!client.woken && simulation.clock.step()) simulation.decide()
          if (!client.woken) throw stuck(simulation.engine.root.live)
          client.woken = false
        }
        await program.catch((error: unknown) => {
          throw programFailure(name, error)
        })
      } finally {
        host.current = null
      }
    },
  }
}

const stuck = (live: number): MillraceError =>
  new MillraceError(
    'MR_SIMULATION',
    `the program waits for ever: ${live} tasks are left, and none can start`,
    {
      hint: 'Look at what they ask for: no node of this platform has room for it.',
    },
  )

/** Whatever the program can do without waiting for us is done then. */
const untilIdle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
