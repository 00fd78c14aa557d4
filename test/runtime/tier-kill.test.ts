import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { recover } from '../../src/storage/recover.ts'
import { until } from './embedded.ts'
import { Program } from './program.ts'

const PROGRAM = `
import { writeFile, appendFile } from 'node:fs/promises'
import { task, main, barrier, configure, waitOn, IN, FILE_OUT } from 'millrace'
configure({ machine: 'machine.yaml', flush: process.argv[3] ?? 'always' })
export const save = task({ io: true, params: [IN, FILE_OUT], size: '100kB' }, async (n: number, path: string) => {
  await writeFile(path, Buffer.alloc(100_000, n))
})
main(async () => {
  const done: Promise<unknown>[] = []
  for (let i = 1; i <= 20; i++) {
    const saved = save(i, 'out/' + i + '.bin')
    // What is written here was committed.
    done.push(waitOn(saved).then(() => appendFile('committed', i + '\\n')))
  }
  await Promise.all(done)
  console.log('all saved')
  if (process.argv[2] === 'stay') await new Promise(resolve => setTimeout(resolve, 60_000))
})
`

function makeProgram(): { program: Program; layers: string[]; remove: () => void } {
  const program = new Program({ 'app.ts': PROGRAM })
  const fast = mkdtempSync('/dev/shm/millrace-test-kill-')
  const slow = program.path('slow')
  mkdirSync(slow)
  writeFileSync(
    program.path('machine.yaml'),
    `nodes:
  - ioExecutors: 3
    storage:
      - { name: memory, path: ${fast}, bandwidth: 1000MB/s, capacity: 1MB }
      - { name: disk, path: slow, bandwidth: 10MB/s }
`,
  )
  const remove = (): void => {
    rmSync(fast, { recursive: true, force: true })
    program.remove()
  }
  return { program, layers: [fast, slow], remove }
}

const skip =
  !existsSync('/dev/shm') || statSync('/dev/shm').dev === statSync('/tmp').dev ? 'no second device' : false
const hash = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')
const expected = (n: number): string => createHash('sha256').update(Buffer.alloc(100_000, n)).digest('hex')
/** Everything of Millrace that is left in a folder. */
const leftIn = (folder: string): string[] => readdirSync(folder).filter(name => name.startsWith('.millrace'))

test('results are at their paths after the run, and nothing is left on the layers', { skip }, async () => {
  const { program, layers, remove } = makeProgram()
  try {
    for (const flush of ['off', 'always']) {
      rmSync(program.path('out'), { recursive: true, force: true })
      const { code, err } = await program.run('app.ts', ['go', flush])
      assert.equal(code, 0, err)
      for (let n = 1; n <= 20; n++) assert.equal(hash(program.path(`out/${n}.bin`)), expected(n))
      for (const layer of layers) assert.deepEqual(leftIn(layer), [])
      assert.deepEqual(leftIn(program.path('out')), [])
    }
  } finally {
    remove()
  }
})

for (const [title, afterSaved] of [
  ['while it writes and flushes', 3],
  ['a little later', 9],
  ['when all is written', 20],
] as const) {
  test(
    `a run that is killed ${title} loses nothing that was committed, and doubles nothing`,
    { skip },
    async () => {
      const { program, layers, remove } = makeProgram()
      try {
        program.start('app.ts', ['stay'])
        const committed = (): string[] => program.read('committed').split('\n').filter(Boolean)
        await until(() => committed().length >= afterSaved, `${afterSaved} are committed`)
        const lines = committed()
        process.kill(program.coordinator, 'SIGKILL')
        await program.end()
        // The watchdog of the killed run clears away what was not committed.
        await until(
          () => layers.every(layer => leftIn(layer).every(name => name.includes('kept'))),
          'the watchdog',
        )
        const recovered = await recover(layers)
        assert.deepEqual(
          recovered.filter(({ left }) => left !== null),
          [],
        )
        for (const line of lines) {
          assert.equal(hash(program.path(`out/${line}.bin`)), expected(Number(line)), `file ${line}`)
        }
        const files = readdirSync(program.path('out')).filter(name => !name.startsWith('.millrace'))
        for (const name of files)
          assert.equal(hash(program.path(`out/${name}`)), expected(Number.parseInt(name)))
        for (const layer of layers) assert.deepEqual(leftIn(layer), [])
        // Once more: there is nothing left to do.
        assert.deepEqual(await recover(layers), [])
      } finally {
        remove()
      }
    },
  )
}

test('a run that still goes on is not robbed', { skip }, async () => {
  const { program, layers, remove } = makeProgram()
  try {
    program.start('app.ts', ['stay'])
    await until(() => program.read('committed').split('\n').length > 5, 'some are committed')
    assert.deepEqual(await recover(layers), [])
    process.kill(program.coordinator, 'SIGTERM')
    await program.end()
  } finally {
    remove()
  }
})

test('the next run brings home what a killed one left', { skip }, async () => {
  const { program, layers, remove } = makeProgram()
  try {
    program.start('app.ts', ['stay', 'off'])
    await until(() => program.read('committed').split('\n').length > 10, 'some are committed')
    process.kill(program.coordinator, 'SIGKILL')
    await program.end()
    const lines = program.read('committed').split('\n').filter(Boolean)
    writeFileSync(program.path('other.ts'), PROGRAM.replace('i <= 20', 'i <= 0'))
    const { code, err } = await program.run('other.ts')
    assert.equal(code, 0, err)
    for (const line of lines) assert.equal(hash(program.path(`out/${line}.bin`)), expected(Number(line)))
    for (const layer of layers) assert.deepEqual(leftIn(layer), [])
  } finally {
    remove()
  }
})

test('a folder that a run began to make and did not get to use goes, unless it is just being made', async () => {
  const device = mkdtempSync('/tmp/millrace-test-unfinished-')
  try {
    const [old, young] = ['.millrace-kept-old.new', '.millrace-kept-young.new'].map(name =>
      join(device, name),
    ) as [string, string]
    for (const folder of [old, young]) {
      mkdirSync(folder)
      writeFileSync(join(folder, 'owner'), '')
    }
    const hourAgo = Date.now() / 1000 - 3600
    utimesSync(old, hourAgo, hourAgo)
    assert.deepEqual(await recover([device]), [])
    assert.equal(existsSync(old), false)
    assert.equal(existsSync(young), true)
  } finally {
    rmSync(device, { recursive: true })
  }
})
