import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { cancel, configure, group, shared, waitOn, waitOnFile } from 'millrace'
import * as io from '../fixtures/io-tasks.ts'
import * as tasks from '../fixtures/tasks.ts'
import { rejection, temporaryFolder, until } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'

// More than there are threads behind node:fs: these tasks wait for each other, not for files.
configure({ ioExecutors: 64 })

const folder = temporaryFolder()
const newPath = (): string => join(mkdtempSync(join(folder, 'd')), 'file.txt')

test('an I/O thread carries many tasks at one time', async () => {
  const threads = await waitOn(Array.from({ length: 50 }, () => io.meets(50)))
  assert.equal(new Set(threads).size, 1)
})

test('I/O tasks run while all CPUs are taken', async () => {
  const gates = [newGate(), newGate()]
  const busy = gates.map(gate => tasks.wait(gate, 1))
  for (const gate of gates) await reached(gate)
  assert.ok((await io.whichThread()) > 0)
  const path = newPath()
  io.save('hello', path)
  assert.equal(await io.load(path), 'hello')
  for (const gate of gates) open(gate)
  await waitOn(busy)
})

test('I/O tasks that block their thread do not hold up those that do not, nor each other', async () => {
  const gate = shared(Int32Array, 2)
  const blocked = Array.from({ length: 4 }, (_, i) => io.blocks(gate, i))
  await until(() => Atomics.load(gate, 0) === 4, 'all four are begun')
  assert.ok((await io.whichThread()) > 0)
  Atomics.store(gate, 1, 1)
  Atomics.notify(gate, 1)
  assert.equal(new Set(await waitOn(blocked)).size, 4)
})

test('an I/O task that takes too long is given up, and those beside it go on', async () => {
  const gate = shared(Int32Array, 2)
  const beside = io.waits(gate, 0)
  const path = newPath()
  const error = await rejection(waitOn(io.hangs(path)))
  assert.equal(error.timedOut, true)
  assert.equal(existsSync(path), false)
  Atomics.store(gate, 1, 1)
  assert.ok((await beside) > 0)
})

test('an I/O task that takes too long and blocks its thread is stopped with it, and those beside it begin again', async () => {
  const gate = shared(Int32Array, 2)
  const beside = io.waits(gate, 0)
  await until(() => Atomics.load(gate, 0) === 1, 'it runs')
  const error = await rejection(waitOn(io.blocksForEver()))
  assert.equal(error.timedOut, true)
  await until(() => Atomics.load(gate, 0) === 2, 'it has begun again')
  Atomics.store(gate, 1, 1)
  assert.ok((await beside) > 0)
})

test('what an attempt that was given up says later is not taken for the next one', async () => {
  const counter = shared(Int32Array, 1)
  const path = newPath()
  // On a machine that stands still for a moment, later attempts may be given up as well.
  const attempt = await io.neverEnds(counter, path)
  assert(attempt > 1)
  assert.equal(readFileSync(await waitOnFile(path), 'utf8'), `attempt ${attempt}`)
})

test('an I/O task that fails is tried again from the beginning', async () => {
  const counter = shared(Int32Array, 1)
  counter[0] = 3
  const path = newPath()
  io.succeedsLater(counter, path)
  assert.equal(readFileSync(await waitOnFile(path), 'utf8'), 'whole')
})

test('a cancelled I/O task leaves nothing, and the thread is there for others', async () => {
  const gate = shared(Int32Array, 2)
  const inGroup = group('io', () => {
    io.waits(gate, 1)
  })
  await until(() => Atomics.load(gate, 0) === 1, 'it runs')
  await cancel('io')
  await inGroup
  assert.ok((await io.whichThread()) > 0)
  Atomics.store(gate, 1, 1)
})

test('a cancelled I/O task that blocks its thread is stopped with it', async () => {
  const gate = shared(Int32Array, 2)
  const inGroup = group('blocked', () => {
    io.blocks(gate, 1)
  })
  await until(() => Atomics.load(gate, 0) === 1, 'it runs')
  await cancel('blocked')
  await inGroup
  assert.ok((await io.whichThread()) > 0)
})

test('values go to I/O tasks and come back', async () => {
  const box = { n: 21 }
  io.doubles(box)
  assert.equal((await waitOn(box)).n, 42)
  const array = new Float64Array(50_000)
  io.fillsArray(array, 3)
  assert.equal((await waitOn(array))[49_999], 3)
})

test('an I/O task may call tasks and wait for them', async () => {
  assert.equal(await io.callsOthers(3), 9 + 16)
})

test('a command that is I/O holds no CPU', async () => {
  const gates = [newGate(), newGate()]
  const busy = gates.map(gate => tasks.wait(gate, 1))
  for (const gate of gates) await reached(gate)
  const [from, to] = [newPath(), newPath()]
  writeFileSync(from, 'copied')
  assert.equal(await io.copies(from, to), 0)
  assert.equal(readFileSync(await waitOnFile(to), 'utf8'), 'copied')
  for (const gate of gates) open(gate)
  await waitOn(busy)
})

test('a command that is I/O is stopped when it takes too long', async () => {
  const error = await rejection(waitOn(io.sleeps()))
  assert.equal(error.timedOut, true)
})

test('limits on unknown devices do not keep tasks from running', async () => {
  const paths = [newPath(), newPath()] as const
  io.limited('a', paths[0])
  io.learned('b', paths[1])
  assert.equal(readFileSync(await waitOnFile(paths[0]), 'utf8'), 'a')
  assert.equal(readFileSync(await waitOnFile(paths[1]), 'utf8'), 'b')
})

test('nothing is left beside what was written', async () => {
  const path = newPath()
  io.save('x', path)
  await waitOnFile(path)
  assert.deepEqual(readdirSync(join(path, '..')), ['file.txt'])
})
