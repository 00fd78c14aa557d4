import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Clock } from '../../src/simulate/clock.ts'
import { Pipe } from '../../src/simulate/machine/pipe.ts'
import type { PipeOptions } from '../../src/simulate/machine/pipe.ts'

interface Arrival {
  at: number
  amount: number
  weight?: number
}

/** When each of them is through. */
function play(options: PipeOptions, arrivals: readonly Arrival[], look?: (pipe: Pipe) => void): number[] {
  const clock = new Clock()
  const pipe = new Pipe(clock, options)
  const ends: number[] = []
  for (const [i, { at, amount, weight }] of arrivals.entries()) {
    clock.at(at, { ring: () => pipe.push(amount, { ring: now => (ends[i] = now) }, weight) })
  }
  while (clock.step()) look?.(pipe)
  assert.equal(pipe.streams, 0)
  return ends
}

const near = (actual: number | undefined, expected: number): void =>
  assert(Math.abs((actual ?? NaN) - expected) <= 1e-6 * Math.max(1, expected), `${actual}, not ${expected}`)

test('one stream takes its amount over the rate', () => {
  near(play({ rate: 5 }, [{ at: 3, amount: 100 }])[0], 23)
})

test('n equal streams that begin together end together, after n times as long', () => {
  for (const end of play(
    { rate: 2 },
    Array.from({ length: 7 }, () => ({ at: 0, amount: 10 })),
  ))
    near(end, 35)
})

test('a stream that comes later slows the first one only while both are there', () => {
  const [first, second] = play({ rate: 1 }, [
    { at: 0, amount: 10 },
    { at: 4, amount: 3 },
  ])
  near(second, 10)
  near(first, 13)
})

test('a stream cannot take more than one stream can, however idle the pipe is', () => {
  const [alone] = play({ rate: 10, stream: 2 }, [{ at: 0, amount: 20 }])
  near(alone, 10)
  const ten = play(
    { rate: 10, stream: 2 },
    Array.from({ length: 10 }, () => ({ at: 0, amount: 20 })),
  )
  near(ten[9], 20)
})

test('beyond the knee the whole rate falls: with twice as many streams by 1 + falloff', () => {
  const options = { rate: 8, knee: 4, falloff: 0.5 }
  const at = (n: number): number =>
    play(
      options,
      Array.from({ length: n }, () => ({ at: 0, amount: 8 })),
    )[n - 1] as number
  near(at(4), 4)
  near(at(8), 8 * 1.5)
})

test('a stream of weight two is served twice as fast', () => {
  const [heavy, light] = play({ rate: 3 }, [
    { at: 0, amount: 20, weight: 2 },
    { at: 0, amount: 20, weight: 1 },
  ])
  near(heavy, 10)
  near(light, 40 / 3)
})

const arrivals = fc.array(
  fc.record({
    at: fc.integer({ min: 0, max: 100 }),
    amount: fc.integer({ min: 1, max: 50 }),
    weight: fc.integer({ min: 1, max: 4 }),
  }),
  { minLength: 1, maxLength: 40 },
)
const options = fc.record({
  rate: fc.integer({ min: 1, max: 20 }),
  stream: fc.integer({ min: 1, max: 20 }),
  knee: fc.integer({ min: 1, max: 10 }),
  falloff: fc.constantFrom(0, 0.1, 0.5, 1, 2),
})

test('given any streams, all of them end, what goes in comes out, and never more than the rate passes', () => {
  fc.assert(
    fc.property(options, arrivals, (given, streams) => {
      let pipe: Pipe | null = null
      const ends = play(given, streams, one => {
        pipe = one
        assert(one.flow <= given.rate * (1 + 1e-12), `${one.flow} of ${given.rate}`)
        assert(one.given <= one.taken * (1 + 1e-9))
      })
      const through = pipe as Pipe | null
      const asked = streams.reduce((sum, { amount }) => sum + amount, 0)
      assert.equal(through?.taken, asked)
      assert.equal(through?.given, asked)
      for (const [i, { at, amount, weight }] of streams.entries()) {
        const fastest = amount / Math.min(given.rate, given.stream * weight)
        assert((ends[i] as number) >= at + fastest - 1e-6, 'faster than it can be')
      }
      const latest = Math.max(...streams.map(({ at }) => at)) + asked / given.rate
      if (given.falloff === 0 && given.stream >= given.rate) {
        assert(Math.max(...ends) <= latest + 1e-6, 'the rate was not used')
      }
    }),
  )
})

test('given any streams, they end when a look at all of them at each change says so', () => {
  fc.assert(
    fc.property(options, arrivals, (given, streams) => {
      const ends = play(given, streams)
      for (const [i, end] of byLookingAtAll(given, streams).entries()) near(ends[i], end)
    }),
  )
})

/** The plain way: at each arrival and each end the work left of every stream is computed anew. */
function byLookingAtAll(
  { rate, stream, knee, falloff }: Required<PipeOptions>,
  streams: Arrival[],
): number[] {
  const left = streams.map(({ amount }) => amount)
  const ends: number[] = streams.map(() => NaN)
  let now = 0
  for (;;) {
    const here = streams.map((one, i) => ({ i, weight: one.weight ?? 1 })).filter(({ i }) => isHere(i))
    const weight = here.reduce((sum, one) => sum + one.weight, 0)
    const excess = Math.max(0, weight / knee - 1)
    const share = weight === 0 ? 0 : Math.min(stream, rate / (1 + falloff * excess) / weight)
    const ending = here.map(one => now + (left[one.i] as number) / (share * one.weight))
    const coming = streams.map(({ at }) => at).filter(at => at > now)
    const next = Math.min(...ending, ...coming)
    if (next === Infinity) return ends
    for (const one of here) {
      const rest = (left[one.i] as number) - share * one.weight * (next - now)
      left[one.i] = rest < 1e-9 ? 0 : rest
      if (left[one.i] === 0) ends[one.i] = next
    }
    now = next
  }
  function isHere(i: number): boolean {
    return (streams[i] as Arrival).at <= now && (left[i] as number) > 0
  }
}

test('ten thousand streams on one pipe cost little more each than a hundred', () => {
  let looks = 0
  const count = (n: number): number => {
    looks = 0
    play(
      { rate: 1 },
      Array.from({ length: n }, (_, i) => ({ at: i, amount: 1 + ((i * 7919) % n) })),
      () => looks++,
    )
    return looks / n
  }
  // A change of the pipe is a step of the clock; there are at most three for each stream, however many.
  assert(count(100) < 3.1)
  assert(count(10_000) < 3.1)
})
