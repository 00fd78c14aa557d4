import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import { runProgram } from './run-program.ts'

const VALUES = 96_000
const system = (generators: number, form: string): string =>
  `millrace, ${generators} ${generators === 1 ? 'task' : 'tasks'} by ${form}`

const arm = (generators: number, form: string) => ({
  system: system(generators, form),
  run: async (): Promise<number[]> =>
    (await runProgram<{ microseconds: number[] }>('ready-calls.mjs', [generators, VALUES, form]))
      .microseconds,
})

const cases: Case[] = ['ready', 'yield'].map(form => ({
  name: form,
  unit: 'us/value',
  better: 'lower',
  take: 'median',
  rounds: 1,
  about: `${VALUES.toLocaleString('en-US')} small values released by ${form}, from the call of the tasks until all values are in the program`,
  arms: [1, 16, 64].map(generators => arm(generators, form)),
  goals: [1, 16, 64].map(generators => ({ of: system(generators, form), upTo: 10, unit: 'us/value' })),
}))

await bench('eager-overhead', cases)
