import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { barrier, waitOn } from 'millrace'
import * as sized from '../fixtures/sized-tasks.ts'
import type { Holder } from '../fixtures/sized-tasks.ts'

/**
 * Many values of all sizes at once: small ones go through rings in shared memory, until those are full, and large ones
 * as messages. Whatever overtakes what, the results are those of plain calls.
 */

const length = fc.constantFrom(0, 1, 50, 500, 1000, 2000, 3000, 8000, 20_000)
const at = fc.nat(1000)
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('make' as const), length, seed: at, times: fc.nat(40) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('mix' as const), one: at, other: at, times: fc.nat(40) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('sum' as const), one: at, times: fc.nat(40) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('grow' as const), one: at, times: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('count' as const), one: at, times: fc.nat(20) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('parts' as const), length, seed: at, times: fc.nat(3) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), times: fc.constant(1) }) },
)

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

class Both {
  readonly futures: unknown[] = []
  readonly values: Float64Array[] = []
  readonly sums: [unknown, number][] = []
  readonly #holder: Holder = { total: 0, last: sized.made(10, 1) }
  readonly #expected: Holder = { total: 0, last: sized.made(10, 1) }
  readonly #counter: Holder = { total: 0, last: new Float64Array(0) }
  #counted = 0

  async play(steps: readonly Step[]): Promise<void> {
    this.#keep(sized.make(3, 1), sized.made(3, 1))
    for (const one of steps) for (let i = 0; i <= one.times; i++) await this.#step(one, i)
    await this.#check()
  }

  async #step(one: Step, i: number): Promise<void> {
    switch (one.do) {
      case 'make':
        return this.#keep(sized.make(one.length, one.seed + i), sized.made(one.length, one.seed + i))
      case 'mix': {
        const [a, b] = [this.#pick(one.one + i), this.#pick(one.other + 7 * i)]
        return this.#keep(sized.mixed(a.future, b.future), sized.mix(a.value, b.value))
      }
      case 'sum': {
        const { future, value } = this.#pick(one.one + i)
        this.sums.push([sized.sum(future), sized.summed(value)])
        return
      }
      case 'grow': {
        const { future, value } = this.#pick(one.one + i)
        sized.grow(this.#holder, future)
        return sized.grown(this.#expected, value)
      }
      case 'count': {
        const { future, value } = this.#pick(one.one + i)
        sized.count(this.#counter, future)
        this.#counted += sized.summed(value)
        return
      }
      case 'parts': {
        let n = 0
        for await (const part of sized.parts(one.length, one.seed)) {
          this.#keep(part, sized.made(one.length, one.seed + n++))
        }
        assert.equal(n, 5)
        return
      }
      case 'wait':
        return this.#check()
    }
  }

  #keep(future: unknown, value: Float64Array): void {
    this.futures.push(future)
    this.values.push(value)
  }

  #pick(which: number): { future: never; value: Float64Array } {
    const i = which % this.futures.length
    return { future: this.futures[i] as never, value: this.values[i] as Float64Array }
  }

  async #check(): Promise<void> {
    assert.deepEqual(
      await waitOn(this.sums.map(([future]) => future)),
      this.sums.map(([, value]) => value),
    )
    await waitOn([this.#holder, this.#counter])
    assert.deepEqual(this.#holder, this.#expected)
    assert.equal(this.#counter.total, this.#counted)
    for (const [i, value] of this.values.entries()) {
      const given = (await waitOn(this.futures[i])) as Float64Array
      assert(given.length === value.length && given.every((one, at) => one === value[at]), `value ${i}`)
    }
  }
}

test('values of all sizes, many at once', { timeout: 300_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async steps => {
      try {
        await new Both().play(steps)
      } finally {
        await barrier()
      }
    }),
    { numRuns: Number(process.env['PROGRAMS'] ?? 20), endOnFailure: true },
  )
})
