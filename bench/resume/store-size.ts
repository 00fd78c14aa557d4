import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { digestOf } from '../../src/store/digest.ts'
import { ENTRY } from '../../src/store/format.ts'
import { Store } from '../../src/store/store.ts'
import type { Case } from '../harness.ts'
import { makeFolder } from './run-kept.ts'

/** Results of the large store. */
const RESULTS = 1_000_000
const BYTES = 200
const FOUND = 100_000

const keyOf = (n: number): Buffer => digestOf(`task ${n}`)

const prepared = new Map<number, Promise<string>>()
function withResults(results: number): Promise<string> {
  let made = prepared.get(results)
  if (!made) prepared.set(results, (made = fill(results)))
  return made
}

async function fill(results: number): Promise<string> {
  const folder = join(makeFolder(), 'store')
  const store = Store.open(folder)
  const value = Buffer.alloc(BYTES, 'x')
  for (let n = 0; n < results; n++) {
    store.put(ENTRY.result, keyOf(n), value)
    if (n % 10_000 === 0) await store.flush()
  }
  await store.close()
  return folder
}

function bytesBelow(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

/** A store with many results: how large it is, how long it takes to open, and to find one. */
export function storeSize(): Case[] {
  const shape = { better: 'lower', take: 'median' } as const
  return [
    {
      ...shape,
      name: 'size',
      unit: 'of their bytes',
      rounds: 1,
      about: `bytes of a store with ${RESULTS} results of ${BYTES} bytes`,
      arms: [
        {
          system: 'millrace',
          run: async () => bytesBelow(await withResults(RESULTS)) / (RESULTS * BYTES),
        },
      ],
      goals: [{ of: 'millrace', upTo: 1.5, unit: 'of their bytes' }],
    },
    {
      ...shape,
      name: 'open',
      unit: 'ms',
      rounds: 5,
      about: `opening a store with ${RESULTS} results`,
      arms: [
        {
          system: 'millrace',
          run: async () => {
            const folder = await withResults(RESULTS)
            const begin = performance.now()
            const store = Store.open(folder, { isReadOnly: true })
            const took = performance.now() - begin
            await store.close()
            return took
          },
        },
      ],
      goals: [{ of: 'millrace', below: 1000, unit: 'ms' }],
    },
    {
      ...shape,
      name: 'find',
      unit: 'us',
      rounds: 3,
      about: `finding one of ${FOUND} results by its key`,
      arms: [
        {
          system: 'millrace',
          run: async () => {
            const folder = await withResults(FOUND)
            const store = Store.open(folder, { isReadOnly: true })
            const begin = performance.now()
            for (let n = 0; n < FOUND; n++) store.find(ENTRY.result, keyOf(n))
            const took = performance.now() - begin
            await store.close()
            return (took / FOUND) * 1000
          },
        },
      ],
      goals: [{ of: 'millrace', upTo: 10, unit: 'us' }],
    },
  ]
}
