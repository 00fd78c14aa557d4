import type { Case } from '../harness.ts'
import { runProgram } from '../run-program.ts'

const PUSHES = 1000
const LONG = 'millrace, 8,000 elements'
const SHORT = 'millrace, 100 elements'

const perPush = (elements: number) => async () => {
  const { seconds } = await runProgram<{ seconds: number }>('growing.mjs', [elements, PUSHES])
  return (seconds / PUSHES) * 1e6
}

export function growing(): Case[] {
  return [
    {
      name: 'growing',
      unit: 'us/push',
      better: 'lower',
      take: 'median',
      rounds: 5,
      about: `${PUSHES.toLocaleString('en-US')} tasks, each of which pushes one number to the same list (INOUT)`,
      arms: [
        { system: LONG, run: perPush(8000) },
        { system: SHORT, run: perPush(100) },
      ],
      goals: [{ of: LONG, against: SHORT, atMost: 3 }],
    },
  ]
}
