import type { Case } from '../harness.ts'
import { runProgram } from '../run-program.ts'

interface Times {
  /** Milliseconds from the end of the producer to the beginning of the reader, for each repetition. */
  handOver: number[]
  /** The same for the reader that began last, where there are two. */
  last?: number[]
  /** Milliseconds from the call to the result, and for the same tasks with a number instead of the array. */
  whole?: number[]
  empty?: number[]
}

const times = (program: string, how: string, pick: (times: Times) => number[]) => async () =>
  pick(await runProgram<Times>(program, [how]))

const more = ({ whole = [], empty = [] }: Times): number[] => {
  const order = [...empty].sort((a, b) => a - b)
  const usual = order[order.length >> 1] ?? NaN
  return whole.map(time => time - usual)
}

const SHARED = 'millrace, shared'
const MOVED = 'millrace, plain, one reader'
const CLONE = 'MessagePort, structured clone'
const UNDER = { below: 1, unit: 'ms' }

export function handOver(): Case[] {
  const shape = { unit: 'ms', better: 'lower', take: 'median', rounds: 3 } as const
  return [
    {
      ...shape,
      name: 'hand-over',
      about: '100 MB of Float64Array from the end of the task that wrote it to the beginning of its reader',
      arms: [
        { system: SHARED, run: times('hand-over.mjs', 'shared', one => one.handOver) },
        { system: MOVED, run: times('hand-over.mjs', 'moved', one => one.handOver) },
        {
          system: 'millrace, plain, two readers, first',
          run: times('hand-over.mjs', 'two', one => one.handOver),
        },
        {
          system: 'millrace, plain, two readers, second',
          run: times('hand-over.mjs', 'two', one => one.last ?? []),
        },
        { system: 'MessagePort, shared', run: times('bare-hand-over.mjs', 'shared', one => one.handOver) },
        {
          system: 'MessagePort, transfer',
          run: times('bare-hand-over.mjs', 'transfer', one => one.handOver),
        },
        { system: CLONE, run: times('bare-hand-over.mjs', 'clone', one => one.handOver) },
      ],
      goals: [
        { of: SHARED, ...UNDER },
        // Moving costs what a transfer does; a copy of 100 MB takes many times as long.
        { of: MOVED, against: CLONE, atMost: 0.25 },
      ],
    },
    {
      ...shape,
      name: 'hand-over-whole',
      about: 'the same from the call to the result, beyond what the same tasks take with a number',
      arms: [{ system: SHARED, run: times('hand-over.mjs', 'shared', more) }],
      goals: [{ of: SHARED, ...UNDER }],
    },
  ]
}
