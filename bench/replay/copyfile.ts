import { rmSync, writeFileSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readRecordedRun } from '../../src/simulate/input/recorded-run.ts'
import { ExampleOnDisk } from '../example-run.ts'
import { SlowDisk } from '../slow-disk.ts'
import { journalIn } from './recorded.ts'
import type { Recording } from './programs.ts'

const FILES = 12
const MEGABYTES = 12
const BYTES = MEGABYTES * 2 ** 20
const READ = 40
const WRITE = 50
const SIZES = [`files=${FILES}`, `megabytes=${MEGABYTES}`]
/** What the commands have: a tenth of all data. A copy has its file in its own memory; the rest caches pages. */
const MEMORY = (3 * FILES * BYTES) / 10
export const PAGE_CACHE = MEMORY - BYTES

const TIMES = 3

/**
 * Seconds to read a file that is not in memory, and to write it, in turn, as copies do. The kernel holds the device to its rates,
 * but lets through a tenth of a second's worth at once after each pause; so what a file of this size gets is measured.
 */
async function timeCopies(disk: SlowDisk, sum: { read: number[]; write: number[] }): Promise<void> {
  const path = join(disk.folder, 'calibrate')
  const save = async (bytes: Uint8Array): Promise<void> => {
    const file = await open(path, 'w')
    await file.write(bytes)
    await file.sync()
    await file.close()
  }
  await save(Buffer.alloc(BYTES, 1))
  for (let i = 0; i < TIMES; i++) {
    disk.forget()
    const began = performance.now()
    const bytes = await readFile(path)
    const between = performance.now()
    await save(bytes)
    sum.read.push((between - began) / 1000)
    sum.write.push((performance.now() - between) / 1000)
  }
  rmSync(path)
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] as number

/** One copy after the other; no file is in memory when it begins. */
export async function recordCopyfile(policy: string): Promise<Recording> {
  const disk = new SlowDisk({ megabytes: 600, read: READ, write: WRITE, memory: MEMORY })
  try {
    const example = await ExampleOnDisk.install(disk, 'copyfile')
    example.make('inputs', 'fifo', SIZES, 2, false)
    const machine = join(example.folder, 'machine.json')
    const storage = [
      { name: 'disk', path: 'work', readBandwidth: `${READ}MB/s`, writeBandwidth: `${WRITE}MB/s` },
    ]
    writeFileSync(machine, JSON.stringify({ nodes: [{ storage }] }))
    example.environment = { MILLRACE_MACHINE: machine }
    rmSync(join(example.folder, '.millrace', 'runs'), { recursive: true, force: true })
    const seconds = { read: [], write: [] }
    await timeCopies(disk, seconds)
    disk.forget()
    example.make('copies', policy, [...SIZES, 'sync=1'], 1)
    await timeCopies(disk, seconds)
    const constants = {
      disk: { read: BYTES / median(seconds.read), write: BYTES / median(seconds.write), latency: 0 },
    }
    return { run: await readRecordedRun(journalIn(example.folder)), constants }
  } finally {
    disk.close()
  }
}
