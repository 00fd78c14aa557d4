// tiers.mjs POLICY FAST DISK SLOW PHASES SIZES ROUNDS BANDWIDTH: phases in which tasks compute what others then
// checkpoint to paths on the slow layer; the next phase begins when all is saved. POLICY is slow (there is no other
// layer) or an I/O policy, with flushing. SIZES are the bytes of each checkpoint of a phase, with commas. Prints the
// seconds until the last task has ended, how many of them were for checkpoints, and the seconds until all files are at
// their paths.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { FILE_OUT, IN, barrier, configure, main, task, waitOn, waitOnFile } from 'millrace'
import { arithmetic } from './arithmetic.mjs'
import { writeSynced } from './write-synced.mjs'

// By the environment, because threads load this module too and see no arguments.
process.env['BENCH_IO'] ??= process.argv.slice(2).join(' ')
const [policy, fast, disk, slow, phases, list, rounds, bandwidth] = process.env['BENCH_IO'].split(' ')
const sizes = list.split(',').map(Number)
const total = sizes.reduce((sum, bytes) => sum + bytes, 0) * Number(phases)

const digestOf = data => createHash('md5').update(data).digest('hex')

/** What is computed decides what is written, so that it can be checked. */
export const compute = task({ name: 'compute', returns: 2 }, (n, bytes, times) => {
  const state = arithmetic(n, times)
  return [new Uint8Array(bytes).fill(state & 255), state & 255]
})

/** Two at a time fill the slow layer; large files ask for more of it than small ones. */
const kind = (name, bytes) =>
  task({ name, io: true, params: [IN, FILE_OUT], size: bytes, bandwidth: askedFor(bytes) }, (data, path) =>
    writeSynced(data, path),
  )
const largest = Math.max(...sizes)
const askedFor = bytes => (Number(bandwidth) / 2) * (bytes / largest)

export const large = kind('large', largest)
export const small = kind('small', Math.min(...sizes))

main(async () => {
  // All threads are there, and their code is compiled, before the clock starts.
  for (let n = 0; n < 4; n++) {
    const path = join(slow, `warm${n}.bin`)
    small(compute(n, 1, 30_000_000)[0], path)
    await waitOnFile(path)
  }
  const began = performance.now()
  let saving = 0
  const made = []
  for (let phase = 0; phase < Number(phases); phase++) {
    const computed = sizes.map((bytes, i) => compute(phase * sizes.length + i, bytes, Number(rounds)))
    const fills = await waitOn(computed.map(([, fill]) => fill))
    const computedAt = performance.now()
    for (const [i, bytes] of sizes.entries()) {
      const path = join(slow, 'results', `${phase}-${i}.bin`)
      ;(bytes === largest ? large : small)(computed[i][0], path)
      made.push({ path, bytes, fill: fills[i] })
    }
    await barrier()
    saving += performance.now() - computedAt
  }
  const seconds = (performance.now() - began) / 1000
  const placed = await Promise.all(made.map(({ path }) => waitOnFile(path)))
  const settled = (performance.now() - began) / 1000
  for (const [i, { bytes, fill }] of made.entries()) {
    const isRight = digestOf(readFileSync(placed[i])) === digestOf(Buffer.alloc(bytes, fill))
    if (!isRight) throw new Error(`${placed[i]} is not what was computed`)
  }
  console.log(JSON.stringify({ seconds, saving: saving / 1000, settled }))
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
