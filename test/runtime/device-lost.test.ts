import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  writeFileSync,
} from 'node:fs'
import test from 'node:test'
import { until } from './embedded.ts'
import { Program } from './program.ts'

/** Saves three files to the fast layer, waits until something has been done to it, and goes on. */
const PROGRAM = `
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { task, main, configure, waitOn, IN, FILE_IN, FILE_OUT } from 'millrace'
configure({ machine: 'machine.yaml', flush: 'off', progress: 'plain' })
export const save = task(
  { io: true, params: [IN, FILE_IN, FILE_OUT], size: '100kB' },
  async (n: number, input: string, path: string) => {
    await writeFile(path, Buffer.concat([await readFile(input), Buffer.alloc(100_000 - 5, n)]))
    return path
  },
)
export const load = task({ io: true, params: [FILE_IN] }, async (path: string) => (await readFile(path)).length)
main(async () => {
  const early = await waitOn([1, 2, 3].map(n => save(n, 'input', 'out/' + n)))
  await writeFile('early', JSON.stringify(early))
  while (!existsSync('go')) await new Promise(resolve => setTimeout(resolve, 10))
  const late = await waitOn([4, 5, 6].map(n => save(n, 'input', 'out/' + n)))
  await writeFile('late', JSON.stringify(late))
  const seen = await waitOn(load('out/1')).catch(error => error.message)
  await writeFile('seen', String(seen))
})
`

const MACHINE = `nodes:
  - storage:
      - { name: fast, path: fast, bandwidth: 1000MB/s, capacity: 1GB }
      - { name: slow, path: slow, bandwidth: 100MB/s }
`

const skip = process.getuid?.() === 0 ? false : 'mounting needs root'
const run = (command: string, ...args: string[]): void =>
  assert.equal(spawnSync(command, args).status, 0, `${command} ${args.join(' ')}`)

async function withLayer(
  damage: (fast: string) => void,
  look: (program: Program, err: string, code: number | null) => void,
) {
  const program = new Program({ 'app.ts': PROGRAM, 'machine.yaml': MACHINE, input: 'hello' })
  const fast = program.path('fast')
  for (const name of ['fast', 'slow']) mkdirSync(program.path(name))
  run('mount', '-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', fast)
  try {
    program.start('app.ts')
    await until(() => existsSync(program.path('early')), 'the first three are saved', 90_000)
    damage(fast)
    writeFileSync(program.path('go'), '')
    const { code, err } = await program.end()
    look(program, err, code)
    assert.equal(program.read('input'), 'hello', 'the input is as it was')
  } finally {
    spawnSync('umount', ['-l', fast])
    program.remove()
  }
}

const isWhole = (program: Program, n: number): boolean =>
  program.read(`out/${n}`) === 'hello' + String.fromCharCode(n).repeat(100_000 - 5)

test(
  'a device that is unmounted while it is used is reported, the rest goes elsewhere, and what is lost is named',
  { skip },
  async () => {
    await withLayer(
      fast => run('umount', '-l', fast),
      (program, err, code) => {
        assert.match(err, /fast .*is not (there|mounted) any more/)
        const late = JSON.parse(program.read('late')) as string[]
        for (const path of late)
          assert(path.startsWith(program.path('slow')), `${path} is on the sound layer`)
        for (const n of [4, 5, 6]) assert(isWhole(program, n), `file ${n}`)
        assert.match(program.read('seen'), /out\/1 was kept on fast, and is not in .*fast any more/)
        assert.notEqual(code, 0, 'a run that could not bring its results home has not ended well')
        assert.match(err, /out\/2/)
        assert.match(err, /when its device is back, the next run brings it home/)
        assert.deepEqual(readdirSync(program.path('fast')), [], 'nothing was written where the device was')
        assert.deepEqual(readdirSync(program.path('slow')), [], 'what came home is kept nowhere else')
      },
    )
  },
)

const PAUSES = `
import { existsSync, writeFileSync } from 'node:fs'
import { task, main, configure, command, waitOn, waitOnFile, IN, FILE_OUT } from 'millrace'
configure({ machine: 'machine.yaml', flush: 'off', progress: 'plain' })
export const save = task({ io: true, params: [IN, FILE_OUT], size: '100kB' }, async (n: number, path: string) => {
  writeFileSync('begun' + n, '')
  while (!existsSync('go')) await new Promise(resolve => setTimeout(resolve, 10))
  writeFileSync(path, String(n))
})
export const forgets = command({ io: true, params: [FILE_OUT], size: '100kB' },
  path => ['sh', '-c', 'touch begun2; while ! [ -e go ]; do sleep 0.01; done; echo 2 > "$1"; true', 'sh', path])
main(async () => {
  save(1, 'out/1')
  forgets('out/2')
  await waitOnFile('out/1')
})
`

test('tasks whose device is unmounted before they write start again elsewhere', { skip }, async () => {
  const program = new Program({ 'app.ts': PAUSES, 'machine.yaml': MACHINE })
  const fast = program.path('fast')
  for (const name of ['fast', 'slow']) mkdirSync(program.path(name))
  run('mount', '-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', fast)
  try {
    program.start('app.ts')
    await until(() => [1, 2].every(n => existsSync(program.path(`begun${n}`))), 'both have begun', 60_000)
    run('umount', '-l', fast)
    writeFileSync(program.path('go'), '')
    const { code, err } = await program.end()
    assert.equal(code, 0, err)
    assert.match(err, /fast .*is not mounted any more/)
    assert.deepEqual([program.read('out/1'), program.read('out/2')], ['1', '2\n'])
  } finally {
    spawnSync('umount', ['-l', fast])
    program.remove()
  }
})

test(
  'a device that becomes read-only keeps what it has, which comes home, and the rest goes elsewhere',
  { skip },
  async () => {
    await withLayer(
      fast => run('mount', '-o', 'remount,ro', fast),
      (program, err, code) => {
        assert.match(err, /fast .*is read-only/)
        assert.equal(code, 0, err)
        for (let n = 1; n <= 6; n++) assert(isWhole(program, n), `file ${n}`)
        assert.equal(program.read('seen'), '100000')
      },
    )
  },
)

test('a device that fills up from outside is reported, and all results are written', { skip }, async () => {
  await withLayer(
    fast => void spawnSync('dd', ['if=/dev/zero', `of=${fast}/other`, 'bs=64k']),
    (program, err, code) => {
      assert.match(err, /fast .*is full/)
      assert.equal(code, 0, err)
      for (let n = 1; n <= 6; n++) assert(isWhole(program, n), `file ${n}`)
    },
  )
})

test('a device that this user may not write is reported and left out', { skip }, async () => {
  const NOBODY = 65_534
  const program = new Program({ 'app.ts': PROGRAM, 'machine.yaml': MACHINE, input: 'hello', go: '' })
  for (const name of ['fast', 'slow', 'out']) mkdirSync(program.path(name))
  try {
    chmodSync(program.path('fast'), 0o755)
    for (const path of [program.folder, program.path('slow'), program.path('out')])
      chownSync(path, NOBODY, NOBODY)
    program.start('app.ts', [], {}, NOBODY)
    const { code, err } = await program.end()
    assert.match(err, /fast .*may not be written by this user/)
    assert.equal(code, 0, err)
    for (let n = 1; n <= 6; n++) assert(isWhole(program, n), `file ${n}`)
    assert.deepEqual(readFileSync(program.path('input'), 'utf8'), 'hello')
  } finally {
    program.remove()
  }
})

const INSISTS = `
import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { task, main, configure, waitOn, IN, FILE_OUT } from 'millrace'
configure({ machine: 'machine.yaml', flush: 'off', progress: 'none' })
export const save = task(
  { io: true, params: [IN, FILE_OUT], size: '100kB', storage: 'fast', onFailure: 'cancelSuccessors' },
  async (n: number, path: string) => writeFile(path, Buffer.alloc(100_000, n)),
)
main(async () => {
  spawnSync('mount', ['-o', 'remount,ro', 'fast'])
  for (const n of [1, 2]) console.log(await waitOn(save(n, 'out/' + n)).catch(error => error.message))
})
`

test(
  'a task that asks for a device that has failed does not wait for ever: it fails and names the device',
  { skip },
  async () => {
    const program = new Program({ 'app.ts': INSISTS, 'machine.yaml': MACHINE })
    const fast = program.path('fast')
    for (const name of ['fast', 'slow']) mkdirSync(program.path(name))
    run('mount', '-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', fast)
    try {
      const { code, out, err } = await program.run('app.ts')
      assert.equal(code, 0, err)
      assert.equal(out.match(/save#[12] failed: fast \(.*\) cannot be written/g)?.length, 2, out)
    } finally {
      spawnSync('umount', ['-l', fast])
      program.remove()
    }
  },
)
