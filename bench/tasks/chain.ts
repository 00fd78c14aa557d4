import type { Case } from '../harness.ts'
import { daskMissing, runDask } from '../dask.ts'
import { runProgram } from '../run-program.ts'

const HOPS = 10_000
const ROUND_TRIP = 'MessagePort round trip'

const perHop =
  (program: string, start: 'warm' | 'cold', journal = false) =>
  async () => {
    const { seconds } = await runProgram<{ seconds: number }>(program, [HOPS, start], { journal })
    return (seconds / HOPS) * 1e6
  }

const dask = (kind: 'chain-distributed' | 'chain-threads', hops: number) => async () =>
  ((await runDask(kind, hops)) / hops) * 1e6

export function chain(): Case[] {
  return [
    {
      name: 'chain',
      unit: 'us/hop',
      better: 'lower',
      // A round trip has two modes, depending on which CPUs the kernel chose: the best would pick one by luck.
      take: 'median',
      rounds: 7,
      about: `${HOPS.toLocaleString('en-US')} tasks, each of which takes the future of the one before`,
      arms: [
        { system: 'millrace', run: perHop('chain.mjs', 'warm', true) },
        { system: 'millrace, no journal', run: perHop('chain.mjs', 'warm') },
        { system: 'millrace, cold', run: perHop('chain.mjs', 'cold', true) },
        { system: ROUND_TRIP, run: perHop('bare-ping-pong.mjs', 'warm') },
        { system: `${ROUND_TRIP}, cold`, run: perHop('bare-ping-pong.mjs', 'cold') },
        {
          system: 'Dask distributed',
          missing: daskMissing(),
          run: dask('chain-distributed', 500),
          rounds: 3,
        },
        { system: 'Dask threads', missing: daskMissing(), run: dask('chain-threads', 2000), rounds: 3 },
      ],
      goals: ['millrace', 'millrace, no journal'].map(of => ({ of, against: ROUND_TRIP, atMost: 1.5 })),
    },
  ]
}
