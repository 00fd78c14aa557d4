import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import { ExampleOnDisk } from './example-run.ts'
import type { ExampleRun } from './example-run.ts'
import { SlowDisk, slowDiskMissing } from './slow-disk.ts'

const FILES = 40
const MEGABYTES = 6
/** Inputs, first and second copies. */
const DATA = 3 * FILES * MEGABYTES * 2 ** 20
const ARGS = [`files=${FILES}`, `megabytes=${MEGABYTES}`]

const missing = slowDiskMissing()
const results = new Map<string, ExampleRun>()
let disk: SlowDisk | null = null
let example: ExampleOnDisk | null = null

async function run(policy: string): Promise<ExampleRun> {
  if (!example) {
    disk = new SlowDisk({ megabytes: 1000, read: 70, write: 59, memory: DATA / 10 })
    example = await ExampleOnDisk.install(disk, 'copyfile')
    example.make('inputs', 'fifo', ARGS, false)
  }
  example.clean('work/a', 'work/b', 'work/sizes.txt')
  const result = example.measure('copies', policy, ARGS)
  results.set(policy, result)
  return result
}

const arms = (value: (policy: string) => Promise<number>) =>
  ['lifo', 'fifo', 'lifo+hrf'].map(policy => ({
    system: `millrace ${policy}`,
    missing,
    run: () => value(policy),
  }))

const about = `${FILES} files of ${MEGABYTES} MB copied twice, 2 at a time; memory for a tenth of all; read 70, write 59 MB/s`
const cases: Case[] = [
  {
    name: 'copyfile',
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 1,
    about,
    arms: arms(async policy => (await run(policy)).seconds),
    goals: [{ of: 'millrace fifo', against: 'millrace lifo', atLeast: 1.3 }],
  },
  {
    name: 'copyfile, page-cache hits',
    unit: '%',
    better: 'higher',
    take: 'median',
    rounds: 1,
    about: 'share of the bytes read that did not come from the device, in the run above',
    arms: arms(async policy => 100 * (results.get(policy) ?? (await run(policy))).hitRate),
  },
]
await bench('copyfile', cases)
;(disk as SlowDisk | null)?.close()
