import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { configure, shared, waitOn } from 'millrace'
import * as io from '../fixtures/io-tasks.ts'
import { temporaryFolder, until } from './embedded.ts'

/** The inputs are the user's, on the slow layer; there is one executor, so that all readers but one are ready and wait. */
const slow = temporaryFolder()
const fast = existsSync('/dev/shm') ? mkdtempSync('/dev/shm/millrace-test-prefetch-') : slow
after(() => rmSync(fast, { recursive: true, force: true }))
const skip = statSync(fast).dev === statSync(slow).dev ? 'no second device' : false

const config = temporaryFolder()
writeFileSync(
  join(config, 'machine.yaml'),
  `nodes:
  - ioExecutors: 1
    storage:
      - { name: fast, path: ${fast}, bandwidth: 1000MB/s, capacity: 2500 }
      - { name: slow, path: ${slow}, bandwidth: 100MB/s }
`,
)
configure({ machine: join(config, 'machine.yaml'), prefetch: true })

/** Copies that lie on the fast layer, whole. */
const copies = (): string[] =>
  readdirSync(fast, { recursive: true })
    .map(String)
    .filter(name => /input\d$/.test(name) && !name.includes('.part'))

test('what ready tasks will read moves up while others read, as far as there is room', { skip }, async () => {
  const inputs = ['a', 'b', 'c', 'd'].map((letter, i) => {
    const path = join(slow, `input${i}`)
    writeFileSync(path, letter.repeat(1000))
    return path
  })
  const gate = shared(Int32Array, 2)
  const first = io.readLater(inputs[0] as string, gate)
  const others = inputs.slice(1).map(path => io.whereIs(path))
  // Room for twice as much is wanted, so that tasks that write still find some: one of the three, and then no more.
  await until(() => copies().length > 0, 'an input is on the fast layer')
  Atomics.store(gate, 1, 1)
  assert.equal(await waitOn(first), 'a'.repeat(1000))
  const seen = await waitOn(others)
  assert.deepEqual(
    seen.map(({ text }) => text),
    ['b', 'c', 'd'].map(letter => letter.repeat(1000)),
  )
  const fromFast = seen.filter(({ path }) => path.startsWith(fast))
  assert(fromFast.length > 0, 'it was read from there')
  for (const [i, path] of inputs.entries())
    assert.equal(readFileSync(path, 'utf8'), 'abcd'.charAt(i).repeat(1000), 'the original is as it was')
  await until(() => copies().length === 0, 'copies that are not read are gone')
})
