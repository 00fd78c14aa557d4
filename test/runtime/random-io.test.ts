import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { jsonLines, makeFolder, millrace } from '../cli/folder.ts'
import { checkDevices } from './device-events.ts'

/** Random programs through real threads, files and layers: what the event stream says must hold at every instant. */

const LARGEST = 3000
const step = fc.record({
  op: fc.constantFrom('write', 'write', 'change', 'read'),
  isIo: fc.boolean(),
  mb: fc.constantFrom(5, 10, 20),
  size: fc.integer({ min: 20, max: LARGEST }),
  temporary: fc.boolean(),
  // Three attempts are made.
  fails: fc.constantFrom(0, 0, 0, 0, 1, 2, 3),
  back: fc.integer({ min: 0, max: 2 }),
})
const programs = fc.array(step, { minLength: 5, maxLength: 25 })

const CAPACITY = 8000
const LIMITS = [40e6, 25e6, 20e6]

const skip =
  !existsSync('/dev/shm') || statSync('/dev/shm').dev === statSync('/tmp').dev ? 'no second device' : false

const OPTIONS: [string, Record<string, unknown>, removes?: string][] = [
  ['fcfs, always flushing', { ioPolicy: 'fcfs', flush: 'always' }],
  ['priority, prefetching', { ioPolicy: 'priority', flush: 'idle', prefetch: true }],
  // Four temporary files at a time are what the programs need in order.
  ['backfill, bounded', { ioPolicy: 'backfill', flush: 'always', maxIntermediate: 4 * LARGEST }],
  // A bound that cannot hold: nothing stands still.
  ['fcfs, bounded, nothing is removed', { flush: 'always', maxIntermediate: 4 * LARGEST }, 'no'],
]

for (const [title, options, removes = 'yes'] of OPTIONS) {
  test(`random programs with real threads: ${title}`, { skip }, async () => {
    const folder = makeFolder({
      'options.json': JSON.stringify({ machine: 'machine.yaml', ioExecutors: 6, ...options }),
      'programs.json': JSON.stringify(fc.sample(programs, 12)),
    })
    copyFileSync(fileURLToPath(new URL('random-io-program.ts', import.meta.url)), join(folder, 'app.ts'))
    const work = mkdtempSync('/dev/shm/millrace-test-random-')
    after(() => rmSync(work, { recursive: true, force: true }))
    for (const name of ['attempts', 'fast', 'middle', 'out']) mkdirSync(join(work, name))
    mkdirSync(join(folder, 'slow'))
    writeFileSync(
      join(folder, 'machine.yaml'),
      `nodes:
  - storage:
      - { name: fast, path: ${work}/fast, bandwidth: 40MB/s, capacity: ${CAPACITY} }
      - { name: middle, path: ${work}/middle, bandwidth: 25MB/s, capacity: 20000 }
      - { name: slow, path: slow, bandwidth: 20MB/s }
`,
    )
    const { code, stdout, stderr } = await millrace(folder, ['run', 'app.ts', '--json'], {
      RANDOM_FOLDER: work,
      RANDOM_REMOVES: removes,
    })
    assert.equal(code, 0, stderr)
    const { fast, kept } = JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8')) as {
      fast: number
      kept: string[]
    }
    assert(fast <= CAPACITY, `${fast} bytes were on the fast layer`)
    for (const line of kept) {
      const [path = '', id, size] = line.split(' ')
      assert.equal(
        readFileSync(path, 'utf8'),
        `${id} `.padEnd(Number(size), '.'),
        'at the path that was named',
      )
    }
    const names = new Set(kept.map(line => line.split(' ')[0]?.split('/').at(-1)))
    assert.deepEqual(new Set(readdirSync(join(work, 'out'))), names, 'and nothing else is there')
    for (const layer of [join(work, 'fast'), join(work, 'middle'), join(folder, 'slow')])
      assert.deepEqual(readdirSync(layer), [])
    checkDevices(jsonLines(stdout), LIMITS)
  })
}
