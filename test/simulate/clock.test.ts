import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../../src/simulate/clock.ts'

void test('thousands of alarms, some asked for by others, ring by time and then as they were asked for', () => {
  const clock = new Clock()
  let chance = 1
  const random = (most: number): number => (chance = (chance * 48271) % 2147483647) % most
  const asked: { time: number; order: number }[] = []
  const rung: { time: number; order: number }[] = []
  const ask = (): void => {
    const one = { time: clock.now + random(300), order: asked.length }
    asked.push(one)
    clock.at(one.time, {
      ring: now => {
        assert.equal(now, one.time)
        rung.push(one)
        // Places of alarms that have rung are used again.
        for (let i = random(3); i > 0 && asked.length < 20_000; i--) ask()
      },
    })
  }
  for (let i = 0; i < 5000; i++) ask()
  while (clock.step()) {
    // All at one time.
  }
  assert.ok(asked.length > 5000)
  assert.deepEqual(
    rung,
    [...asked].sort((a, b) => a.time - b.time || a.order - b.order),
  )
  assert.ok(clock.isIdle)
})
