import type { Case } from '../harness.ts'
import { daskMissing, runDask } from '../dask.ts'
import { isInstalled } from '../peers.ts'
import { runProgram } from '../run-program.ts'

const TASKS = 100_000
const OURS = ['millrace', 'millrace, no journal']
const BATCHES = 'MessagePort, batches of 100'
const PISCINA = [1, 16, 64, 128]

const ours =
  (program: string, journal: boolean, args: (string | number)[] = []) =>
  async () => {
    const { seconds } = await runProgram<{ seconds: number }>(program, [TASKS, ...args], { journal })
    return TASKS / (seconds as number)
  }

const bare = (batch: number, inFlight: number) => async () => {
  const { seconds } = await runProgram<{ seconds: number }>('bare-flat.mjs', [TASKS, batch, inFlight])
  return TASKS / seconds
}

/** The best of its settings counts, as one would choose it: unlike ours, it is tuned to the case. */
async function piscinaBest(): Promise<number> {
  const rates: number[] = []
  for (const concurrent of PISCINA) rates.push(await ours('piscina-flat.mjs', false, [concurrent])())
  return Math.max(...rates)
}

/** Dask is slow enough that fewer tasks give the same rate. */
const dask = (kind: 'distributed' | 'threads', tasks: number) => async () =>
  tasks / (await runDask(kind, tasks))

export function flat(): Case[] {
  return [
    {
      name: 'flat',
      unit: 'tasks/s',
      better: 'higher',
      take: 'best',
      rounds: 5,
      about: `${TASKS.toLocaleString('en-US')} independent tasks that give back their argument, 2 threads`,
      arms: [
        { system: 'millrace', run: ours('flat.mjs', true, ['barrier']) },
        { system: 'millrace, no journal', run: ours('flat.mjs', false, ['barrier']) },
        { system: 'millrace, waitOn all', run: ours('flat.mjs', true, ['waitOn']) },
        { system: BATCHES, run: bare(100, 1) },
        { system: 'MessagePort, batches of 100, 2 in flight', run: bare(100, 2) },
        { system: 'MessagePort, 16 in flight', run: bare(1, 16) },
        { system: 'piscina, best', missing: isInstalled('piscina'), run: piscinaBest, rounds: 3 },
        {
          system: 'Dask distributed',
          missing: daskMissing(),
          run: dask('distributed', 2000),
          rounds: 3,
        },
        { system: 'Dask threads', missing: daskMissing(), run: dask('threads', 20_000), rounds: 3 },
      ],
      goals: OURS.flatMap(of => [
        { of, against: BATCHES, atLeast: 0.25 },
        { of, against: 'piscina, best', atLeast: 2.5 },
        { of, against: 'Dask distributed', atLeast: 100 },
      ]),
    },
  ]
}
