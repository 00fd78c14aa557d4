import fc from 'fast-check'
import test from 'node:test'
import { configure } from 'millrace'
import { check, programs } from './random-streams.ts'

configure({ journal: false, progress: 'none', cpus: 1 })

const RUNS = Number(process.env['RUNS'] ?? 60)

test(
  'random pipelines come to what a sequential run comes to, each value delivered once, on 1 cpu',
  { timeout: 300_000 },
  async () => {
    await fc.assert(fc.asyncProperty(programs, check), { numRuns: RUNS, interruptAfterTimeLimit: 60_000 })
  },
)
