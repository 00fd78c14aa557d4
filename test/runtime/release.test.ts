import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { committed, ready, waitOn, waitOnFile } from 'millrace'
import * as eager from '../fixtures/eager-tasks.ts'
import { rejection, temporaryFolder, thrown, until } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'

const folder = temporaryFolder()
let files = 0
const newPath = (): string => join(folder, `file-${++files}.txt`)

test('a value that is released can be used while its task runs on', async () => {
  const gate = newGate()
  const [first, second] = eager.halves(gate, 7)
  const doubled = eager.double(first)
  await reached(gate)
  assert.equal(await doubled, 14)
  open(gate)
  assert.equal(await second, 8)
})

test('values that were not released come with the return, also when all were', async () => {
  assert.deepEqual(await waitOn(eager.all(5)), [5, 6, 7])
  const [first, , last] = eager.all(1)
  assert.equal(await eager.add(first, last), 4)
})

test('a released value is what it was at the call', async () => {
  const [first, second] = eager.captured(20_000)
  assert.equal((await first)[19_999], 1)
  assert.equal((await second)[19_999], 2)
})

test('many small values are released', async () => {
  const values = eager.many(2000)
  assert.deepEqual(
    await waitOn(values),
    Array.from({ length: 2000 }, (_, i) => i * i),
  )
})

for (const [name, calls, text] of [
  ['twice', [0, 0], /released before/],
  ['with a number that is too large', [2], /numbered from 0 to 1/],
  ['with a number below zero', [-1], /numbered from 0 to 1/],
  ['with a fraction', [0.5], /numbered from 0 to 1/],
] as const) {
  test(`ready ${name} is refused`, async () => {
    const futures = eager.wrongReady([...calls])
    const error = await rejection(futures[1])
    assert.match(error.message, text)
    assert.match(error.message, /MR_RELEASE/)
    await rejection(waitOn(futures)).catch(() => undefined)
  })
}

test('ready without returns, after the end, and outside a task is refused', async () => {
  assert.match((await rejection(eager.readyWithoutReturns())).message, /has no `returns`/)
  const path = newPath()
  await waitOn(eager.readyAfterEnd(path))
  await until(() => existsSync(path) && readFileSync(path, 'utf8') !== '', 'ready after the end')
  assert.match(readFileSync(path, 'utf8'), /the task has ended/)
  assert.match(thrown(() => ready(0, 1)).message, /outside a task/)
  assert.match((await rejection(committed('x'))).message, /outside a task/)
})

test('what called tasks make is released as each of them ends', async () => {
  const gate = newGate()
  const [first, second] = eager.outer(gate, 4)
  assert.equal(await eager.double(first), 16)
  open(gate)
  assert.equal(await second, 10)
  const again = newGate()
  const [early, late] = eager.outerReady(again, 5)
  assert.equal(await early, 10)
  open(again)
  assert.equal(await late, 10)
})

test('a generator may yield what a called task will make', async () => {
  const seen: number[] = []
  for await (const value of eager.outerYields(20)) seen.push(await eager.double(value))
  assert.deepEqual(
    seen,
    Array.from({ length: 20 }, (_, i) => i * 4),
  )
  assert.equal(await eager.total(eager.outerYields(30)), 870)
})

test('a called task that fails takes with it only what it was to make', async () => {
  const [first, second] = eager.outerLinksFailure()
  assert.equal(await first, 2)
  assert.match((await rejection(second)).message, /inside/)
})

// --- files ---

test('a file that is released is in its place while its task runs on', async () => {
  const gate = newGate()
  const [a, b] = [newPath(), newPath()]
  const done = eager.writesTwo(a, b, gate)
  const read = eager.reads(a)
  await reached(gate)
  assert.equal(await read, 'first')
  await waitOnFile(a)
  assert.equal(readFileSync(a, 'utf8'), 'first')
  assert(!existsSync(b))
  open(gate)
  await done
  assert.equal(await eager.reads(b), 'second')
})

test('a task need not wait for its release', async () => {
  const path = newPath()
  await eager.writesSync(path)
  assert.equal(readFileSync(path, 'utf8'), 'sync')
})

for (const [how, text] of [
  ['missing', /there is nothing at this path|MR_OUTPUT_MISSING/],
  ['other', /nothing at this path/],
  ['twice', /released before|nothing at this path/],
  ['append', /ENOENT|after it had released it/],
] as const) {
  test(`committed is refused: ${how}`, async () => {
    assert.match((await rejection(eager.commitsWrongly(newPath(), how))).message, text)
  })
}

test('a task that goes on writing a file it released fails', async () => {
  const path = newPath()
  const error = await rejection(eager.writesOn(path))
  assert.match(error.message, /after it had released it/)
})

test('a file that another attempt makes again must be the same', async () => {
  const [same, atEnd, other] = [newPath(), newPath(), newPath()]
  await eager.flakyFile(same, newGate(), 0)
  assert.equal(await eager.reads(same), 'contents 0')
  const error = await rejection(eager.flakyFile(other, newGate(), 1))
  assert.match(error.message, /is different now/)
  assert.equal(readFileSync(other, 'utf8'), 'contents 0')
  assert.match((await rejection(eager.flakyFile(atEnd, newGate(), -1))).message, /is different now/)
})
