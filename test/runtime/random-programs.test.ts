import test from 'node:test'
import fc from 'fast-check'
import { work } from '../fixtures/random-tasks.ts'
import { temporaryFolder } from './embedded.ts'
import { play } from './random-driver.ts'
import { programs } from './random-program.ts'

/**
 * Random programs through real threads, against a sequential run of the same program. To repeat a failure:
 * SEED=… PROGRAMS=… node --import tsx --test test/runtime/random-programs.test.ts
 * SHRINK=1 looks for a smaller one, which takes many minutes, and finds nothing where it takes chance to fail.
 */
const seed = Number(process.env['SEED'] ?? 20261115)
const numRuns = Number(process.env['PROGRAMS'] ?? 250)
const folder = temporaryFolder()

/** A watchdog against programs that never end. */
const LIMIT = 120_000

test(`random programs end as in sequence (seed ${seed})`, { timeout: 600_000 }, async () => {
  // Without main, classes are known from the first wait on.
  await work(
    'none',
    'fail',
    0,
    'none',
  )({ uid: 0, failures: 0, form: 'throw', spin: 0 }, new Int32Array(1), [])
  let isStuck = false
  let count = 0
  await fc.assert(
    fc.asyncProperty(programs(30), async steps => {
      if (isStuck) return
      if (process.env['VERBOSE']) console.log(`program ${count++}`, Math.round(performance.now()))
      let timer: NodeJS.Timeout | undefined
      const limit = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => {
          isStuck = true
          reject(new Error(`the program has not ended after ${LIMIT} ms`))
        }, LIMIT)
      })
      try {
        await Promise.race([play(steps, folder), limit])
      } finally {
        clearTimeout(timer)
      }
    }),
    {
      seed,
      numRuns,
      includeErrorInReport: true,
      endOnFailure: !('SHRINK' in process.env),
      ...(process.env['PATH_IN_SEED'] ? { path: process.env['PATH_IN_SEED'] } : {}),
    },
  )
})
