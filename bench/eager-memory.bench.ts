import { bench } from './harness.ts'
import { runProgram } from './run-program.ts'

/** `MEGABYTES=1000 npm run bench -- eager-memory` is a short one. */
const megabytes = Number(process.env['MEGABYTES'] ?? 10_000)
const BUFFER = 100

interface Measured {
  peakMB: number
  gigabytesPerSecond: number
}

const forms = {
  tasks: 'millrace, each value to a task',
  task: 'millrace, all values to one task',
  loop: 'millrace, all values to the program',
}
const measured = new Map<string, Promise<Measured>>()
const measure = (form: string): Promise<Measured> => {
  const known = measured.get(form)
  if (known) return known
  const run = runProgram<Measured>('stream-bytes.mjs', [megabytes, BUFFER, form])
  measured.set(form, run)
  return run
}
const arms = (pick: (one: Measured) => number) =>
  Object.entries(forms).map(([form, system]) => ({ system, run: async () => pick(await measure(form)) }))

await bench('eager-memory', [
  {
    name: 'memory',
    unit: 'MB',
    better: 'lower',
    take: 'median',
    rounds: 1,
    about: `peak memory of the process while ${megabytes / 1000} GB in values of 1 MB go through a buffer of ${BUFFER} MB`,
    arms: arms(({ peakMB }) => peakMB),
    goals: Object.values(forms).map(of => ({ of, below: 400, unit: 'MB' })),
  },
  {
    name: 'rate',
    unit: 'GB/s',
    better: 'higher',
    take: 'median',
    rounds: 1,
    about: 'the same: how fast they go through',
    arms: arms(({ gigabytesPerSecond }) => gigabytesPerSecond),
  },
])
