/**
 * K-means with checkpoints: tasks make fragments of points, I/O tasks write each fragment to a file while others compute, and
 * each iteration sums up the points that are closest to each centre.
 *
 *     npx millrace run examples/kmeans/kmeans.ts
 *
 * KMEANS_FRAGMENTS=16, KMEANS_POINTS=20000, KMEANS_DIMENSIONS=8, KMEANS_CENTRES=10, KMEANS_ITERATIONS=6
 * KMEANS_OUT=checkpoints  where the fragments go; after each iteration the centres, too
 * KMEANS_SEQUENTIAL=1     a plain loop instead, without tasks and files
 */
import { FILE_OUT, IN, barrier, main, reduce, task } from 'millrace'
import { mkdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { addPartials, assign, makeFragment, moveCentres } from './points.ts'
import type { Partial } from './points.ts'

const setting = (name: string, value: number): number => Number(process.env[`KMEANS_${name}`] ?? value)
const FRAGMENTS = setting('FRAGMENTS', 16)
const POINTS = setting('POINTS', 20_000)
const DIMENSIONS = setting('DIMENSIONS', 8)
const CENTRES = setting('CENTRES', 10)
const ITERATIONS = setting('ITERATIONS', 6)
const { KMEANS_OUT: OUT = 'checkpoints', KMEANS_SEQUENTIAL: SEQUENTIAL = '' } = process.env

export const make = task({ name: 'make', label: (fragment: number) => `f=${fragment}` }, (fragment: number) =>
  makeFragment(fragment, POINTS, DIMENSIONS),
)
export const checkpoint = task(
  { name: 'checkpoint', io: true, bandwidth: 'adaptive', params: [FILE_OUT, IN] },
  async (path: string, values: Float64Array) => {
    await writeFile(path, values)
  },
)
export const closest = task({ name: 'closest' }, (points: Float64Array, centres: Float64Array) =>
  assign(points, centres, DIMENSIONS),
)
export const add = task({ name: 'add', priority: 1 }, (a: Partial, b: Partial) => addPartials(a, b))
export const move = task({ name: 'move', priority: 2 }, (sums: Partial, centres: Float64Array) =>
  moveCentres(sums, centres, DIMENSIONS),
)

const first = (): Float64Array => makeFragment(-2, CENTRES, DIMENSIONS)
const numbers = Array.from({ length: FRAGMENTS }, (_, i) => i)

function sequential(): Float64Array {
  const fragments = numbers.map(i => makeFragment(i, POINTS, DIMENSIONS))
  let centres = first()
  for (let i = 0; i < ITERATIONS; i++) {
    const partials = fragments.map(fragment => assign(fragment, centres, DIMENSIONS))
    centres = moveCentres(partials.reduce(addPartials), centres, DIMENSIONS)
  }
  return centres
}

async function parallel(): Promise<Float64Array> {
  mkdirSync(OUT, { recursive: true })
  const fragments = numbers.map(i => make(i))
  fragments.forEach((fragment, i) => void checkpoint(join(OUT, `fragment-${i}`), fragment))
  let centres = move(
    { sums: new Float64Array(CENTRES * DIMENSIONS), counts: new Float64Array(CENTRES) },
    first(),
  )
  for (let i = 0; i < ITERATIONS; i++) {
    const partials = fragments.map(fragment => closest(fragment, centres))
    centres = move(reduce(add, partials), centres)
    checkpoint(join(OUT, `centres-${i}`), centres)
  }
  const result = await centres
  await barrier()
  return result
}

main(async () => {
  const start = performance.now()
  const centres = SEQUENTIAL ? sequential() : await parallel()
  console.log(JSON.stringify({ centres: [...centres], seconds: (performance.now() - start) / 1000 }))
})
