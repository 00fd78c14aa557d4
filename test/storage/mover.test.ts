import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { FileThreads } from '../../src/storage/file-threads.ts'
import { ALWAYS_WANTED, Abandoned, copyDurably } from '../../src/storage/mover.ts'
import { FULL_SPEED, SharedPace } from '../../src/storage/pace.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-test-mover-'))
const threads = new FileThreads()
after(async () => {
  await threads.close()
  rmSync(folder, { recursive: true, force: true })
})

const from = join(folder, 'from')
const bytes = Buffer.alloc(2_500_000, 'some text ')
writeFileSync(from, bytes, { mode: 0o640 })

let copies = 0
const newPath = (): string => join(folder, `copy${++copies}`)
const whole = (path: string): boolean => readFileSync(path).equals(bytes)

test('a copy that may go no further begins again when the rate rises', async () => {
  let rate = 0
  const path = newPath()
  let asked = 0
  const pace = new SharedPace(() => (asked++, rate))
  const copied = copyDurably(threads, from, path, pace, ALWAYS_WANTED)
  while (asked < 5) await new Promise(resolve => setTimeout(resolve, 5))
  assert.equal(statSync(path).size, 0)
  rate = 1e12
  assert.equal(await copied, bytes.length)
  assert(whole(path))
  assert.equal(statSync(path).mode & 0o777, 0o640)
})

test('a copy that is waited for does not heed the rate', async () => {
  let isUrgent = false
  const path = newPath()
  const going = { isWanted: () => true, isUrgent: () => isUrgent }
  const copied = copyDurably(threads, from, path, new SharedPace(() => 1), going)
  isUrgent = true
  await copied
  assert(whole(path))
})

test('copies that share a rate all arrive', async () => {
  const pace = new SharedPace(() => 200e6)
  const paths = Array.from({ length: 5 }, newPath)
  await Promise.all(paths.map(path => copyDurably(threads, from, path, pace, ALWAYS_WANTED)))
  for (const path of paths) assert(whole(path))
})

test('a copy that is not wanted any more is given up, also while it waits', async () => {
  let isWanted = true
  const going = { isWanted: () => isWanted, isUrgent: () => false }
  const copied = copyDurably(threads, from, newPath(), new SharedPace(() => 0), going)
  isWanted = false
  await assert.rejects(copied, Abandoned)
})

for (const [speed, pace] of [
  ['at full speed', FULL_SPEED],
  ['at a rate', new SharedPace(() => 1e12)],
] as const) {
  test(`a folder is copied with links, modes and times ${speed}`, async () => {
    const tree = newPath()
    mkdirSync(join(tree, 'inner'), { recursive: true, mode: 0o750 })
    writeFileSync(join(tree, 'inner', 'a'), 'a', { mode: 0o600 })
    writeFileSync(join(tree, 'empty'), '')
    symlinkSync('inner/a', join(tree, 'link'))
    const copy = newPath()
    assert.equal(await copyDurably(threads, tree, copy, pace, ALWAYS_WANTED), 1)
    assert.deepEqual(readdirSync(copy, { recursive: true }).sort(), ['empty', 'inner', 'inner/a', 'link'])
    assert.equal(readFileSync(join(copy, 'inner', 'a'), 'utf8'), 'a')
    assert.equal(readlinkSync(join(copy, 'link')), 'inner/a')
    for (const name of ['', 'inner', 'inner/a', 'empty']) {
      const [one, other] = [lstatSync(join(tree, name)), lstatSync(join(copy, name))]
      assert.deepEqual([other.mode, other.mtime], [one.mode, one.mtime], name)
    }
  })

  test(`a copy that fails ${speed} says why, with its code`, async () => {
    const missing = join(folder, 'missing')
    await assert.rejects(copyDurably(threads, missing, newPath(), pace, ALWAYS_WANTED), {
      code: 'ENOENT',
      syscall: 'lstat',
      path: missing,
    })
    const nowhere = join(folder, 'no', 'folder')
    await assert.rejects(copyDurably(threads, from, nowhere, pace, ALWAYS_WANTED), { code: 'ENOENT' })
  })
}

/** A copy that waits in a system call, more of them than there are threads for file calls, and a call of a task. */
const BLOCKED = `
const { openSync, closeSync } = await import('node:fs')
const { readFile } = await import('node:fs/promises')
const { FileThreads } = await import(process.env.ROOT + '/src/storage/file-threads.ts')
const { ALWAYS_WANTED, copyDurably } = await import(process.env.ROOT + '/src/storage/mover.ts')
const { FULL_SPEED, SharedPace } = await import(process.env.ROOT + '/src/storage/pace.ts')
const threads = new FileThreads()
const order = []
const copies = [FULL_SPEED, new SharedPace(() => 1)].map((pace, i) =>
  copyDurably(threads, 'slow', 'copy' + i, pace, ALWAYS_WANTED).then(() => order.push('copied')))
await readFile('slow-not')
order.push('read')
// Opened for both, it blocks neither side.
const end = openSync('slow', 'r+')
await Promise.all(copies)
closeSync(end)
await threads.close()
console.log(order.join(' '))
`

test('copies that wait for a device do not take the threads of file calls from tasks', async () => {
  const cwd = newPath()
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'slow-not'), 'x')
  execFileSync('mkfifo', [join(cwd, 'slow')])
  const root = join(import.meta.dirname, '..', '..')
  const tsx = join(root, 'node_modules', 'tsx', 'dist', 'loader.mjs')
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', tsx, '--input-type=module', '--eval', BLOCKED],
    { cwd, env: { ...process.env, ROOT: root, UV_THREADPOOL_SIZE: '1' }, timeout: 60_000 },
  )
  assert.equal(stdout, 'read copied copied\n')
})
