import type { Case } from '../harness.ts'
import { runProgram } from '../run-program.ts'

const PUSHES = 1000
const LONG = 'millrace, 8,000 elements'
const SHORT = 'millrace, 100 elements'

const KINDS = ['numbers', 'objects', 'map', 'set']

const perPush = (elements: number, kind: string) => async () => {
  const { seconds } = await runProgram<{ seconds: number }>('growing.mjs', [elements, PUSHES, kind])
  return (seconds / PUSHES) * 1e6
}

export function growing(): Case[] {
  return KINDS.map(kind => ({
    name: kind === 'numbers' ? 'growing' : `growing-${kind}`,
    unit: 'us/push',
    better: 'lower',
    take: 'median',
    rounds: 5,
    about: `${PUSHES.toLocaleString('en-US')} tasks, each of which adds one element to the same list, map or set (INOUT): ${kind}`,
    arms: [
      { system: LONG, run: perPush(8000, kind) },
      { system: SHORT, run: perPush(100, kind) },
    ],
    // Objects and entries are copied for each task, so that none can see what another one does to them.
    goals: kind === 'numbers' ? [{ of: LONG, against: SHORT, atMost: 3 }] : [],
  }))
}
