import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { digestOf } from '../src/store/digest.ts'
import { ENTRY } from '../src/store/format.ts'
import { Store } from '../src/store/store.ts'
import { bench } from './harness.ts'

/** Results of the large store. */
const RESULTS = 1_000_000
const BYTES = 1024

const keyOf = (n: number): Buffer => digestOf(`task ${n}`)

async function withStore<T>(results: number, body: (folder: string) => T | Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-store-'))
  try {
    const store = Store.open(folder)
    const value = Buffer.alloc(BYTES, 'x')
    for (let n = 0; n < results; n++) {
      store.put(ENTRY.result, keyOf(n), value)
      if (n % 10_000 === 0) await store.flush()
    }
    await store.close()
    return await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

await bench('resume', [
  {
    name: 'open',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: `opening a store with ${RESULTS} results of ${BYTES} bytes`,
    arms: [
      {
        system: 'millrace',
        run: () =>
          withStore(RESULTS, folder => {
            const begin = performance.now()
            Store.open(folder, { isReadOnly: true })
            return performance.now() - begin
          }),
      },
    ],
    goals: [{ of: 'millrace', below: 1000, unit: 'ms' }],
  },
  {
    name: 'find',
    unit: 'us',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: 'finding one of 100000 results of 1 KB by its key',
    arms: [
      {
        system: 'millrace',
        run: () =>
          withStore(100_000, folder => {
            const store = Store.open(folder, { isReadOnly: true })
            const begin = performance.now()
            for (let n = 0; n < 100_000; n++) store.find(ENTRY.result, keyOf(n))
            return ((performance.now() - begin) / 100_000) * 1000
          }),
      },
    ],
    goals: [{ of: 'millrace', upTo: 10, unit: 'us' }],
  },
])
