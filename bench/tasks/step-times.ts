import type { Case } from '../harness.ts'
import { runProgram } from '../run-program.ts'
import { speedUp } from '../speed-up.ts'

const TASKS = 100_000
const MILLISECONDS = [0.2, 1]
const MEASURED = { MILLRACE_STEP_TIMES: '1' }
const WITH = 'millrace, steps measured'

async function rate(env: Readonly<Record<string, string>> = {}): Promise<number> {
  const args = [TASKS, 'warm', 'barrier']
  const { seconds } = await runProgram<{ seconds: number }>('flat.mjs', args, { journal: true, env })
  return TASKS / seconds
}

/** What `--step-times` costs: the first case is its worst. */
export function stepTimes(): Case[] {
  return [
    {
      name: 'step-times-empty',
      unit: 'tasks/s',
      better: 'higher',
      take: 'median',
      rounds: 11,
      about: `${TASKS.toLocaleString('en-US')} tasks that give back their argument, without and with --step-times`,
      arms: [
        { system: 'millrace', run: () => rate() },
        { system: WITH, run: () => rate(MEASURED) },
      ],
      goals: [{ of: WITH, against: 'millrace', atLeast: 0.98, orTie: true }],
    },
    ...MILLISECONDS.map((milliseconds): Case => ({
      name: `step-times-${milliseconds}ms`,
      unit: 'x sequential',
      better: 'higher',
      take: 'best',
      rounds: 3,
      about: `600 ms of tasks of ${milliseconds} ms each, without and with --step-times: speed-up on 2 CPUs`,
      arms: [
        { system: 'millrace', run: () => speedUp('grain.mjs', [milliseconds], { journal: true }) },
        {
          system: WITH,
          run: () => speedUp('grain.mjs', [milliseconds], { journal: true, env: MEASURED }),
        },
      ],
      goals: [{ of: WITH, against: 'millrace', atLeast: 0.98 }],
    })),
  ]
}
