import { MillraceError } from '../../core/errors.ts'
import type { Client, Host } from '../../model/client.ts'
import { ProgramClient } from './program-client.ts'
import { programFailure } from './program-failure.ts'
import type { Workload } from '../input/workload.ts'

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
      let idle = 0
      let isDry = false
      const program = (async () => body())().finally(() => (ended = true))
      // It is awaited below; until then it must not count as an unhandled rejection.
      program.catch(() => undefined)
      try {
        for (;;) {
          await untilIdle()
          simulation.decide()
          if (client.woken) {
            client.woken = false
            isDry = false
            continue
          }
          if (ended) break
          if (client.waits === 0) {
            if (isDry) throw forgotten()
            if (++idle > SPINS) isDry = await untilOthersWork()
            continue
          }
          idle = 0
          isDry = false
          while (!client.woken && (simulation.clock.step() || simulation.letOneGo())) simulation.decide()
          if (!client.woken) throw stuck(simulation.engine.root.live)
          client.woken = false
        }
        await program.catch((error: unknown) => {
          throw programFailure(name, error)
        })
        client.programEnded()
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

const forgotten = (): MillraceError =>
  new MillraceError('MR_SIMULATION', 'the program waits for something that never comes', {
    hint: 'Look at what `main` awaits: nothing is under way, neither simulated nor real.',
  })

/** Looks that are taken at once before it is taken that the program does something that takes its time. */
const SPINS = 100

/** The program waits for something of its own. True when nothing was left that could have brought it. */
const untilOthersWork = (): Promise<boolean> =>
  new Promise(resolve => {
    const timer = setTimeout(() => {
      process.off('beforeExit', ranDry)
      resolve(false)
    }, 1)
    timer.unref()
    const ranDry = (): void => {
      clearTimeout(timer)
      resolve(true)
    }
    process.once('beforeExit', ranDry)
  })

/** Resolves when the program can do nothing more without the simulator. */
const untilIdle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
