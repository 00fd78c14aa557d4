// bounded.mjs FOLDER FILES BYTES ROUNDS LIMIT: tasks make temporary files, others read them. LIMIT is the bytes that
// they may take at one time, or none. Prints the seconds in all and the most megabytes that were in the folder.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { FILE_IN, FILE_OUT, IN, barrier, configure, main, removeFile, task, waitOn } from 'millrace'
import { arithmetic } from './arithmetic.mjs'

// By the environment, because threads load this module too and see no arguments.
process.env['BENCH_IO'] ??= process.argv.slice(2).join(' ')
const [folder, files, bytes, rounds, limit] = process.env['BENCH_IO'].split(' ')

const dataOf = n => Buffer.alloc(Number(bytes), arithmetic(n, Number(rounds)) & 255)
const digestOf = data => createHash('md5').update(data).digest('hex')

export const produce = task(
  { name: 'produce', temporary: true, size: Number(bytes), params: [IN, FILE_OUT] },
  async (n, path) => {
    const data = dataOf(n)
    await writeFile(path, data)
    return digestOf(data)
  },
)

export const consume = task({ name: 'consume', params: [FILE_IN, IN] }, async (path, n) => {
  arithmetic(n, Number(rounds))
  return digestOf(await readFile(path))
})

/** Of the data; Millrace's own notes are there too. Files and folders go while they are counted. */
function bytesIn(path) {
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found?.isDirectory()) return path.endsWith('.bin') ? (found?.size ?? 0) : 0
  try {
    return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0)
  } catch {
    return 0
  }
}

main(async () => {
  // Both threads are there before the clock starts.
  const warm = [0, 1, 2, 3].map(i => join(folder, `warm${i}.bin`))
  await waitOn(warm.map((path, i) => (produce(i, path), consume(path, i))))
  await Promise.all(warm.map(path => removeFile(path)))
  await barrier()
  let peak = 0
  const look = setInterval(() => (peak = Math.max(peak, bytesIn(folder))), 5)
  const began = performance.now()
  const made = []
  const read = []
  const gone = []
  for (let i = 0; i < Number(files); i++) {
    const path = join(folder, `${i}.bin`)
    made.push(produce(i, path))
    read.push(consume(path, i))
    gone.push(removeFile(path))
  }
  const [wrote, saw] = [await waitOn(made), await waitOn(read)]
  const seconds = (performance.now() - began) / 1000
  await Promise.all(gone)
  clearInterval(look)
  if (wrote.some((digest, i) => digest !== saw[i])) throw new Error('what was read is not what was written')
  console.log(JSON.stringify({ seconds, megabytes: peak / 1e6 }))
})

if (isMainThread) {
  mkdirSync(folder, { recursive: true })
  const file = join(process.cwd(), 'machine.json')
  const storage = [{ name: 'disk', path: folder, bandwidth: '1000MB/s' }]
  writeFileSync(file, JSON.stringify({ nodes: [{ storage }] }))
  configure({
    machine: file,
    flush: 'off',
    ...(limit === 'none' ? {} : { maxIntermediate: Number(limit) }),
  })
}
