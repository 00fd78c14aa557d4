// tiers.mjs POLICY FAST DISK SLOW SIZES ROUNDS BANDWIDTH: tasks compute, and checkpoint what they made to paths on the
// slow layer. POLICY is slow (there is no other layer) or an I/O policy, with flushing. SIZES are bytes with commas.
// Prints the seconds until all tasks have ended, the seconds until all files are at their paths, and the mean
// milliseconds of a checkpoint per megabyte.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { FILE_OUT, IN, barrier, configure, main, task, waitOn, waitOnFile } from 'millrace'

// By the environment, because threads load this module too and see no arguments.
process.env['BENCH_IO'] ??= process.argv.slice(2).join(' ')
const [policy, fast, disk, slow, list, rounds, bandwidth] = process.env['BENCH_IO'].split(' ')
const ROUNDS = Number(rounds)
const sizes = list.split(',').map(Number)
const total = sizes.reduce((sum, bytes) => sum + bytes, 0)

const digestOf = data => createHash('md5').update(data).digest('hex')

export const compute = task({ name: 'compute', returns: 2 }, (n, bytes) => {
  let state = n + 1
  for (let i = 0; i < ROUNDS; i++) state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
  const data = new Uint8Array(bytes).fill(state & 255)
  return [data, digestOf(data)]
})

async function save(data, path) {
  const began = performance.now()
  const file = await open(path, 'w')
  try {
    await file.write(data)
    await file.sync()
  } finally {
    await file.close()
  }
  return performance.now() - began
}

/** Two at a time fill the slow layer; large files ask for more of it than small ones. */
const kind = (name, bytes) =>
  task({ name, io: true, params: [IN, FILE_OUT], size: bytes, bandwidth: askedFor(bytes) }, (data, path) =>
    save(data, path),
  )
const largest = Math.max(...sizes)
const askedFor = bytes => (Number(bandwidth) / 2) * (bytes / largest)

export const large = kind('large', largest)
export const small = kind('small', Math.min(...sizes))

main(async () => {
  await waitOn([0, 1, 2, 3].map(n => compute(n, 1)[1]))
  const began = performance.now()
  const since = () => (performance.now() - began) / 1000
  const digests = []
  const times = []
  const paths = sizes.map((_, i) => join(slow, 'results', `${i}.bin`))
  for (const [i, bytes] of sizes.entries()) {
    const [data, digest] = compute(i, bytes)
    digests.push(digest)
    times.push((bytes === largest ? large : small)(data, paths[i]))
  }
  const took = await waitOn(times)
  await barrier()
  const seconds = since()
  const expected = await waitOn(digests)
  const placed = await Promise.all(paths.map(path => waitOnFile(path)))
  const settled = since()
  for (const [i, path] of placed.entries()) {
    if (digestOf(readFileSync(path)) !== expected[i]) throw new Error(`${path} is not what was computed`)
  }
  const milliseconds = took.reduce((sum, one) => sum + one, 0) / (total / 1e6)
  console.log(JSON.stringify({ seconds, settled, milliseconds }))
})

if (isMainThread) {
  for (const folder of [fast, disk, slow, join(slow, 'results')]) mkdirSync(folder, { recursive: true })
  const lowest = { name: 'slow', path: slow, bandwidth: `${bandwidth}MB/s` }
  const upper = [
    { name: 'memory', path: fast, bandwidth: '1000MB/s', capacity: Math.floor(total / 4) },
    { name: 'disk', path: disk, bandwidth: '200MB/s', capacity: Math.floor(total / 2) },
  ]
  const file = join(process.cwd(), 'machine.json')
  const storage = policy === 'slow' ? [lowest] : [...upper, lowest]
  writeFileSync(file, JSON.stringify({ nodes: [{ storage }] }))
  configure({
    machine: file,
    ioExecutors: 64,
    ...(policy === 'slow' ? { flush: 'off' } : { flush: 'always', ioPolicy: policy }),
  })
}
