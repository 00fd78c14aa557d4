import assert from 'node:assert/strict'
import test from 'node:test'
import { Program } from './program.ts'

/** Calls tasks without ever giving way until so many have ended, and prints how much memory each call then holds. */
const PROGRAM = `
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { main, shared, task } from 'millrace'
setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc')
export const count = task({ name: 'count' }, (ended, _i) => { Atomics.add(ended, 0, 1) })
main(() => {
  const ended = shared(Int32Array, 1)
  const futures = []
  const before = (gc(), process.memoryUsage().heapUsed)
  while (Atomics.load(ended, 0) < 30_000 || futures.length - Atomics.load(ended, 0) > futures.length / 10) {
    futures.push(count(ended, futures.length))
  }
  gc()
  console.log((process.memoryUsage().heapUsed - before) / futures.length)
})
`

test('given a program that calls tasks without a pause, we should keep nothing of those that have ended but their results', async () => {
  const program = new Program({ 'app.mjs': PROGRAM })
  const { code, out, err } = await program.run('app.mjs', [], { MILLRACE_PROGRESS: 'none' })
  assert.equal(code, 0, err)
  // A result takes about 230 bytes, a task that waits 750; what is not ended is a tenth at most.
  assert(Number(out) < 450, `${out.trim()} bytes for each call`)
})
