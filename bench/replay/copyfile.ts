import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readRecordedRun } from '../../src/simulate/recorded-run.ts'
import { ExampleOnDisk } from '../example-run.ts'
import { SlowDisk } from '../slow-disk.ts'
import { journalIn } from './recorded.ts'
import type { Recording } from './programs.ts'

const FILES = 6
const MEGABYTES = 24
const BYTES = MEGABYTES * 2 ** 20
const READ = 40
const WRITE = 50
const SIZES = [`files=${FILES}`, `megabytes=${MEGABYTES}`]
/** What the commands have: a tenth of all data. A copy has its file in its own memory; the rest caches pages. */
const MEMORY = (3 * FILES * BYTES) / 10
export const PAGE_CACHE = MEMORY - BYTES

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
    disk.forget()
    example.make('copies', policy, [...SIZES, 'sync=1'], 1)
    // The kernel holds the device to these rates; there is nothing more exact to be measured.
    const constants = { disk: { read: READ * 1e6, write: WRITE * 1e6, latency: 0 } }
    return { run: await readRecordedRun(journalIn(example.folder)), constants }
  } finally {
    disk.close()
  }
}
