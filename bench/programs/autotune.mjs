// autotune.mjs KIND PATH TASKS BYTES BANDWIDTH LIMIT: writes to a device under a limit; prints the seconds.
// KIND is socket (PATH is that of a device process) or disk (PATH is a folder); LIMIT is none (no I/O tasks),
// unlimited, auto, bounded, adaptive, or MB/s per task.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { IN, auto, barrier, configure, main, task, waitOn } from 'millrace'

// By the environment, because threads load this module too and see no arguments.
process.env['BENCH_IO'] ??= process.argv.slice(2).join(' ')
const [kind, path, tasks, bytes, bandwidth, limit] = process.env['BENCH_IO'].split(' ')
const folder = kind === 'disk' ? path : process.cwd()
const BANDWIDTH = {
  none: undefined,
  unlimited: undefined,
  auto: 'auto',
  adaptive: 'adaptive',
  bounded: auto(Number(bandwidth) / 32, Number(bandwidth), 2),
}

/** Sends the data to the device process; gives the MD5 of what it received. */
function send(data) {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    const header = Buffer.alloc(4)
    header.writeUInt32LE(data.length)
    socket.on('error', reject)
    socket.on('data', digest => resolve(digest.toString('hex')))
    socket.write(header)
    socket.write(data)
  })
}

async function write(data, name) {
  const file = await open(name, 'w')
  try {
    await file.write(data)
    await file.sync()
  } finally {
    await file.close()
  }
  return createHash('md5').update(readFileSync(name)).digest('hex')
}

export const save = task(
  {
    name: 'save',
    params: [IN, IN],
    ...(limit === 'none' ? {} : { io: true }),
    ...(limit in BANDWIDTH
      ? BANDWIDTH[limit] && { bandwidth: BANDWIDTH[limit] }
      : { bandwidth: Number(limit) }),
    ...(limit === 'none' ? {} : { direction: 'write', size: Number(bytes) }),
  },
  async (data, name) => {
    const buffer = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    return kind === 'disk' ? write(buffer, name) : send(buffer)
  },
)

main(async () => {
  const data = new Uint8Array(Number(bytes)).map((_, i) => i * 31)
  const expected = createHash('md5').update(data).digest('hex')
  await waitOn(save(data, join(folder, 'warm')))
  const began = performance.now()
  const results = []
  for (let i = 0; i < Number(tasks); i++) results.push(save(data, join(folder, `${i}.bin`)))
  const digests = await waitOn(results)
  const seconds = (performance.now() - began) / 1000
  if (digests.some(digest => digest !== expected)) throw new Error('what was written is not what was given')
  if (kind === 'disk') for (let i = 0; i < Number(tasks); i++) rmSync(join(folder, `${i}.bin`))
  await barrier()
  console.log(JSON.stringify({ seconds }))
})

if (isMainThread) configure({ machine: machineFile(), ioExecutors: 64, flush: 'off' })

function machineFile() {
  const file = join(process.cwd(), 'machine.json')
  mkdirSync(folder, { recursive: true })
  const storage = [{ name: 'slow', path: folder, bandwidth: `${bandwidth}MB/s` }]
  writeFileSync(file, JSON.stringify({ nodes: [{ storage }] }))
  return file
}
