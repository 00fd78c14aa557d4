import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mapAtOnce } from '../../src/general/at-once.ts'

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

test('given many items, all should be done, in place, and never more at a time than said', async () => {
  for (const [most, count] of [
    [1, 5],
    [3, 100],
    [8, 8],
    [8, 0],
  ] as const) {
    let running = 0
    let peak = 0
    const items = Array.from({ length: count }, (_, i) => i)
    const results = await mapAtOnce(most, items, async (item, i) => {
      peak = Math.max(peak, ++running)
      for (let n = 0; n < item % 3; n++) await turn()
      running--
      return `${item}/${i}`
    })
    assert.deepEqual(
      results,
      items.map(i => `${i}/${i}`),
    )
    assert(peak <= most)
  }
})

test('given a failure, it should be thrown and no further item begun', async () => {
  const begun: number[] = []
  const failing = mapAtOnce(2, [0, 1, 2, 3, 4, 5, 6, 7], async item => {
    begun.push(item)
    await turn()
    if (item === 2) throw new Error('two')
  })
  await assert.rejects(failing, /two/)
  for (let i = 0; i < 10; i++) await turn()
  assert(begun.length <= 5, begun.join())
})
