import type { Case } from '../harness.ts'
import { daskMissing, runDask } from '../dask.ts'
import { isInstalled } from '../peers.ts'
import { runProgram } from '../run-program.ts'

const TASKS = 100_000
const OURS = ['millrace', 'millrace, no journal']
const MAP = 'millrace, map'
const BATCHES = 'MessagePort, batches of 100'
const PISCINA = [1, 16, 64, 128]

/** How many more calls the floor makes, so that it takes as long as we do: a machine is undisturbed more often for a short time. */
const AS_LONG = 4

const rate =
  (program: string, args: (string | number)[], journal = false, tasks = TASKS) =>
  async () => {
    const { seconds } = await runProgram<{ seconds: number }>(program, [tasks, ...args], { journal })
    return tasks / seconds
  }

const floor = (args: (string | number)[]) => rate('bare-flat.mjs', args, false, TASKS * AS_LONG)

/** The best of its settings counts, as one would choose it: unlike ours, it is tuned to the case. */
async function piscinaBest(): Promise<number> {
  const rates: number[] = []
  for (const concurrent of PISCINA) rates.push(await rate('piscina-flat.mjs', ['warm', concurrent])())
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
      // Of each round, because the machine lets two threads talk at twice the speed from one minute to the next.
      take: 'median',
      rounds: 11,
      about: `${TASKS.toLocaleString('en-US')} independent tasks that give back their argument, 2 threads`,
      arms: [
        { system: 'millrace', run: rate('flat.mjs', ['warm', 'barrier'], true) },
        { system: BATCHES, run: floor(['warm', 100, 1]) },
        { system: MAP, run: rate('flat.mjs', ['warm', 'map'], true, TASKS * AS_LONG) },
        { system: 'millrace, no journal', run: rate('flat.mjs', ['warm', 'barrier']) },
        { system: 'millrace, cold', run: rate('flat.mjs', ['cold', 'barrier'], true), rounds: 5 },
        { system: 'millrace, waitOn all', run: rate('flat.mjs', ['warm', 'waitOn'], true), rounds: 5 },
        { system: 'MessagePort, batches of 100, 2 in flight', run: floor(['warm', 100, 2]), rounds: 5 },
        {
          system: 'MessagePort, batches of 100, cold',
          run: rate('bare-flat.mjs', ['cold', 100, 1]),
          rounds: 5,
        },
        { system: 'MessagePort, 16 in flight', run: rate('bare-flat.mjs', ['warm', 1, 16]), rounds: 5 },
        { system: 'piscina, best', missing: isInstalled('piscina'), run: piscinaBest, rounds: 3 },
        {
          system: 'Dask distributed',
          missing: daskMissing(),
          run: dask('distributed', 2000),
          rounds: 3,
        },
        { system: 'Dask threads', missing: daskMissing(), run: dask('threads', 20_000), rounds: 3 },
      ],
      goals: [
        { of: MAP, against: BATCHES, atLeast: 0.7 },
        ...OURS.flatMap(of => [
          { of, against: BATCHES, atLeast: 0.25 },
          { of, against: 'piscina, best', atLeast: 2.5 },
          { of, against: 'Dask distributed', atLeast: 100 },
        ]),
      ],
    },
  ]
}
