import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import { ExampleOnDisk } from './example-run.ts'
import type { ExampleRun } from './example-run.ts'
import { SlowDisk, slowDiskMissing } from './slow-disk.ts'

const FILES = 20
/**
 * The kernel lets through 100 ms' worth after each pause: a file must take longer than that. And memory must hold
 * two files for each of two programs, beside what these have read.
 */
const MEGABYTES = 12
const READ = 40
const WRITE = 60
/** Inputs, first and second copies. */
const DATA = 3 * FILES * MEGABYTES * 2 ** 20
const SIZES = [`files=${FILES}`, `megabytes=${MEGABYTES}`]

const missing = slowDiskMissing()
const results = new Map<string, Promise<ExampleRun>>()
let disk: SlowDisk | null = null
let example: ExampleOnDisk | null = null

async function run(policy: string, jobs: number): Promise<ExampleRun> {
  if (!example) {
    disk = new SlowDisk({ megabytes: 1100, read: READ, write: WRITE, memory: DATA / 10 })
    example = await ExampleOnDisk.install(disk, 'copyfile')
    example.make('inputs', 'fifo', SIZES, 2, false)
  }
  example.clean('work/a', 'work/b', 'work/sizes.txt')
  // One copy after the other means that its writing is over, too.
  return example.measure('copies', policy, [...SIZES, `sync=${jobs === 1 ? 1 : 0}`], jobs)
}

/** Times and hit rates are of the same runs. */
function once(policy: string, jobs: number): Promise<ExampleRun> {
  const key = `${policy} ${jobs}`
  const known = results.get(key) ?? run(policy, jobs)
  results.set(key, known)
  return known
}

const arms = (jobs: number, value: (run: ExampleRun) => number) =>
  ['lifo', 'fifo'].map(policy => ({
    system: `millrace ${policy}`,
    missing,
    run: async () => value(await once(policy, jobs)),
  }))

const setting = `${FILES} files of ${MEGABYTES} MB copied twice; memory for a tenth of all; read ${READ}, write ${WRITE} MB/s`
const both = (jobs: number, how: string, goals: NonNullable<Case['goals']>): Case[] => [
  {
    name: how,
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 1,
    about: setting,
    arms: arms(jobs, ({ seconds }) => seconds),
    goals,
  },
  {
    name: `${how}: page-cache hits`,
    unit: '%',
    better: 'higher',
    take: 'median',
    rounds: 1,
    about: 'share of the bytes read that did not come from the device, in the same runs',
    arms: arms(jobs, ({ hitRate }) => 100 * hitRate),
  },
]

await bench('copyfile', [
  ...both(1, 'one at a time', [{ of: 'millrace fifo', against: 'millrace lifo', atLeast: 1.3 }]),
  // Here one task reads while another writes, and the device can do both at once, each at its own rate.
  ...both(2, 'two at a time', [{ of: 'millrace fifo', against: 'millrace lifo', atLeast: 1.3 }]),
])
;(disk as SlowDisk | null)?.close()
