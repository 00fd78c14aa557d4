import assert from 'node:assert/strict'
import test from 'node:test'
import * as program from 'millrace'

test('compute threads know the same public names as the program', async () => {
  const inThreads = (await import(new URL('../../dist/thread-names.js', import.meta.url).href)) as object
  assert.deepEqual(Object.keys(inThreads).sort(), Object.keys(program).sort())
})
