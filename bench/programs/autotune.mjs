// autotune.mjs KIND PATH TASKS BYTES BANDWIDTH LIMIT: writes to a device under a limit. KIND is socket (PATH is that of a
// device process) or disk (PATH is a folder); LIMIT is none (no I/O tasks), unlimited, auto, bounded, adaptive, or MB/s
// per task. BENCH_CHANGE is JSON, { after, file, text } or { after, line }: when that many tasks have ended, the text is
// written to the file, or the line sent to the device. Prints the seconds, the tasks that learning took, and the
// milliseconds at which the tasks ended, from the change on if there is one.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { IN, auto, barrier, configure, main, task, waitOn } from 'millrace'
import { clock } from './clock.mjs'
import { writeSynced } from './write-synced.mjs'

// By the environment, because threads load this module too and see no arguments.
process.env['BENCH_IO'] ??= process.argv.slice(2).join(' ')
const [kind, path, tasks, bytes, bandwidth, limit] = process.env['BENCH_IO'].split(' ')
const folder = kind === 'disk' ? path : process.cwd()
const BANDWIDTH = {
  unlimited: {},
  auto: { bandwidth: 'auto' },
  adaptive: { bandwidth: 'adaptive' },
  bounded: { bandwidth: auto(Number(bandwidth) / 32, Number(bandwidth), 2) },
}

/** Sends the data to the device process; gives its answer. */
function send(data, length = data.length) {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    const header = Buffer.alloc(4)
    header.writeUInt32LE(length)
    socket.on('error', reject)
    socket.on('data', resolve)
    socket.write(Buffer.concat([header, data]))
  })
}

const io = { io: true, direction: 'write', size: Number(bytes) }

export const save = task(
  {
    name: 'save',
    params: [IN, IN],
    ...(limit === 'none' ? {} : { ...io, ...(BANDWIDTH[limit] ?? { bandwidth: Number(limit) }) }),
  },
  async (data, name) => {
    const buffer = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    const digest = kind === 'disk' ? await writeSynced(buffer, name) : (await send(buffer)).toString('hex')
    return { digest, at: clock() }
  },
)

const digestOf = data => createHash('md5').update(data).digest('hex')
const change = JSON.parse(process.env['BENCH_CHANGE'] ?? 'null')

/** Resolves to the time of the change. */
function changeAfter(results) {
  let left = change.after
  return new Promise((resolve, reject) => {
    const ended = async () => {
      if (--left !== 0) return
      if (change.file) writeFileSync(change.file, change.text)
      else await send(Buffer.from(change.line), 0)
      resolve(clock())
    }
    for (const result of results) result.then(ended, reject)
  })
}

main(async () => {
  const data = new Uint8Array(Number(bytes)).map((_, i) => i * 31)
  const expected = digestOf(data)
  await waitOn(save(data, join(folder, 'warm')))
  const began = clock()
  const results = []
  for (let i = 0; i < Number(tasks); i++) results.push(save(data, join(folder, `${i}.bin`)))
  const origin = change ? await changeAfter(results) : began
  const ended = await waitOn(results)
  const seconds = (clock() - began) / 1000
  await barrier()
  for (const [i, { digest }] of ended.entries()) {
    const written = kind === 'disk' ? digestOf(readFileSync(join(folder, `${i}.bin`))) : digest
    if (written !== expected) throw new Error('what was written is not what was given')
  }
  const times = ended.map(({ at }) => at - origin).filter(at => at > 0)
  times.sort((a, b) => a - b)
  // What was learned is written when the run has ended.
  process.on('exit', () => console.log(JSON.stringify({ seconds, times, learning: tasksSpent() })))
})

function tasksSpent() {
  const file = join(process.cwd(), '.millrace', 'learned.json')
  if (!existsSync(file)) return 0
  return JSON.parse(readFileSync(file, 'utf8')).reduce((sum, { spent }) => sum + spent, 0)
}

if (isMainThread) {
  const file = join(process.cwd(), 'machine.json')
  mkdirSync(folder, { recursive: true })
  const storage = [{ name: 'slow', path: folder, bandwidth: `${bandwidth}MB/s` }]
  writeFileSync(file, JSON.stringify({ nodes: [{ storage }] }))
  configure({ machine: file, ioExecutors: 64, flush: 'off' })
}
