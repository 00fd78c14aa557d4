import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { barrier, configure, removeFile, waitOn, waitOnFile } from 'millrace'
import { append, change, contents, make, readBehind, readLate, write } from '../fixtures/folder-tasks.ts'
import { rejection, temporaryFolder } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'

configure({ journal: false, progress: 'none', cpus: 4 })

const base = temporaryFolder()
const newFolder = (): string => mkdtempSync(join(base, 'd'))

test('a task that reads a folder finds the files that tasks wrote in it, and nothing else', async () => {
  const folder = join(newFolder(), 'new')
  write(join(folder, 'a'), '1')
  write(join(folder, 'b'), '2')
  assert.equal(await contents(folder), 'a=1 b=2')
  await barrier()
  assert.deepEqual(readdirSync(folder).sort(), ['a', 'b'])
})

test('a task that reads a folder finds the newest version of a file whose older one is still read', async () => {
  const folder = newFolder()
  const gate = newGate()
  write(join(folder, 'a'), 'old')
  const older = readBehind(join(folder, 'a'), gate)
  await reached(gate)
  write(join(folder, 'a'), 'new')
  assert.equal(await contents(folder), 'a=new')
  open(gate)
  assert.equal(await older, 'old')
})

for (const [name, isOfUser, isAnew] of [
  ['a folder is changed', false, false],
  ['a folder is made anew', false, true],
  ['a folder of the user is changed', true, false],
] as const) {
  test(`${name} while a file in it is read: the reader has the older content`, async () => {
    const folder = newFolder()
    const path = join(folder, 'a')
    if (isOfUser) writeFileSync(path, 'old')
    else write(path, 'old')
    const gate = newGate()
    const older = readBehind(path, gate)
    await reached(gate)
    if (isAnew) make(folder, 'new')
    else change(folder, '+new')
    const expected = isAnew ? 'a=new b=new' : 'a=old+new'
    assert.equal(await contents(folder), expected)
    open(gate)
    assert.equal(await older, 'old')
    await waitOnFile(folder)
    assert.equal(readFileSync(path, 'utf8'), isAnew ? 'new' : 'old+new')
  })
}

test('a folder is removed after the tasks that use files in it', async () => {
  const folder = join(newFolder(), 'new')
  const gate = newGate()
  write(join(folder, 'a'), '1')
  const read = readBehind(join(folder, 'a'), gate)
  const removed = removeFile(folder)
  await reached(gate)
  open(gate)
  assert.equal(await read, '1')
  await removed
  assert(!existsSync(folder))
})

test('a file in a folder that a task makes cannot be removed by itself before the folder is there', async () => {
  const folder = join(newFolder(), 'new')
  make(folder, 'x')
  const error = await rejection(removeFile(join(folder, 'a')))
  assert.equal(error.code, 'MR_ALIAS')
  await waitOnFile(folder)
  await removeFile(join(folder, 'a'))
  assert.deepEqual(readdirSync(folder), ['b'])
})

/** Numbers that look random, the same for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

for (let seed = 1; seed <= 12; seed++) {
  test(`random uses of a folder and of files in it, seed ${seed}`, async () => {
    const random = randomOf(seed)
    const folder = newFolder()
    const files = new Map<string, string>()
    const now = (): string => [...files].map(([name, text]) => `${name}=${text}`).join(' ')
    const found: PromiseLike<string>[] = []
    const expected: string[] = []
    const read = (name: string): void => {
      expected.push(files.get(name) ?? '')
      found.push(readLate(join(folder, name), random(30)))
    }
    mkdirSync(folder, { recursive: true })
    for (const name of ['a', 'b']) {
      files.set(name, name)
      if (random(2) === 0) writeFileSync(join(folder, name), name)
      else write(join(folder, name), name)
    }
    const pick = (): string => (random(2) === 0 ? 'a' : 'b')
    for (let i = 0; i < 10; i++) {
      const name = pick()
      const what = random(3)
      if (what === 0) read(name)
      else {
        files.set(name, what === 1 ? `w${i}` : `${files.get(name)}+${i}`)
        if (what === 1) write(join(folder, name), `w${i}`)
        else append(join(folder, name), `+${i}`)
      }
    }
    for (let i = 0; i < 8; i++) {
      const what = random(4)
      if (what === 0) read(pick())
      else if (what === 1) {
        expected.push(now())
        found.push(contents(folder))
      } else {
        for (const [name, text] of files) files.set(name, what === 2 ? `${text}!${i}` : `m${i}`)
        if (what === 2) change(folder, `!${i}`)
        else make(folder, `m${i}`)
      }
    }
    assert.deepEqual(await waitOn(found), expected)
    await waitOnFile(folder).catch(() => undefined)
    await barrier()
    // Where a file has several versions, the last may be known to tasks by a staged name until the end of the run.
    const left = readdirSync(folder).filter(name => name !== '.millrace-new')
    left.sort()
    assert.deepEqual(left, ['a', 'b'])
    assert.equal(left.map(name => `${name}=${readFileSync(join(folder, name), 'utf8')}`).join(' '), now())
  })
}
