import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Case } from '../harness.ts'
import { programPath, runProgram } from '../run-program.ts'
import { untilExit, untilLine } from '../spawn-time.ts'

const bin = fileURLToPath(new URL('../../bin/millrace.js', import.meta.url))

/** Milliseconds since the process began, as the program itself saw them. */
interface Moments {
  node: number
  imported: number
  called: number
  begun: number
  result: number
}

const FIRST = 'millrace, to the first result'

const step =
  (pick: (moments: Moments) => number, journal = true) =>
  async () =>
    pick(await runProgram<Moments>('first-result.mjs', [], { journal }))

export function startUp(): Case[] {
  const shape = { unit: 'ms', better: 'lower', take: 'median', rounds: 20 } as const
  const VERSION = 'millrace --version'
  return [
    {
      ...shape,
      name: 'start-up-version',
      about: 'from starting the process to its end',
      arms: [
        {
          system: VERSION,
          missing: existsSync(bin) ? undefined : 'bin/millrace.js is not there',
          run: () => untilExit([bin, '--version']),
        },
        { system: 'node -e 0', run: () => untilExit(['-e', '0']) },
      ],
      goals: [{ of: VERSION, below: 100, unit: 'ms' }],
    },
    {
      ...shape,
      name: 'start-up-first-result',
      about: 'from starting an embedded program to the line that it prints with its first result',
      arms: [
        { system: FIRST, run: () => untilLine(programPath('first-result.mjs'), true) },
        { system: `${FIRST}, no journal`, run: () => untilLine(programPath('first-result.mjs'), false) },
        {
          system: 'bare thread, to its first message',
          run: () => untilLine(programPath('bare-first-result.mjs'), false),
        },
        { system: 'node -e 0, to its end', run: () => untilExit(['-e', '0']) },
      ],
      goals: [{ of: FIRST, below: 200, unit: 'ms' }],
    },
    {
      ...shape,
      name: 'start-up-steps',
      rounds: 10,
      about: 'what the time to the first result is made of, on the clock of the program',
      arms: [
        { system: 'millrace, node itself', run: step(one => one.node) },
        { system: 'millrace, import millrace', run: step(one => one.imported - one.node) },
        { system: 'millrace, from there to the first call', run: step(one => one.called - one.imported) },
        {
          system: 'millrace, thread starts, loads, begins the task',
          run: step(one => one.begun - one.called),
        },
        { system: 'millrace, task and result', run: step(one => one.result - one.begun) },
      ],
    },
  ]
}
