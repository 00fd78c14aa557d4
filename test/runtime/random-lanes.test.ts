import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { barrier, cancel, configure, group, shared, waitOn } from 'millrace'
import type { Future } from 'millrace'
import { MOST, RUNS, calls, fails, io, large, late, mix, plain, urgent, wide } from '../fixtures/lanes.ts'
import type { Board } from '../fixtures/lanes.ts'
import './embedded.ts'

/**
 * Many tasks of some milliseconds, which wait on lanes by the handful, against plain calls of the same functions. Nobody
 * looks after threads that forgot to tell of a result: if one does, the program does not end.
 */
const seed = Number(process.env['SEED'] ?? 20261116)
const numRuns = Number(process.env['PROGRAMS'] ?? 12)
const LIMIT = 120_000

const { setTimeout: realSetTimeout } = globalThis
/** The timer of the runtime that looks at all threads keeps the process alive, and does nothing else. */
const LOOKS_AFTER = [10, 50]
globalThis.setTimeout = ((go: () => void, milliseconds: number) =>
  realSetTimeout(go, LOOKS_AFTER.includes(milliseconds) ? 2 ** 30 : milliseconds)) as typeof setTimeout

configure({ cpus: 2 })

const TEXT = 'x'.repeat(200_000)
const KINDS = { plain, urgent, wide, late, io, large, calls }
type Kind = keyof typeof KINDS

interface Call {
  kind: Kind
  milliseconds: number
  inputs: number[]
}
type Step =
  | { do: 'call'; call: Call; times: number }
  | { do: 'wait'; which: number }
  | { do: 'pause'; milliseconds: number }
  | { do: 'barrier' }
  | { do: 'cancel' | 'fail'; call: Call; times: number; milliseconds: number }

const names: Kind[] = ['plain', 'plain', 'plain', 'plain', 'urgent', 'wide', 'late', 'io', 'large', 'calls']
const call: fc.Arbitrary<Call> = fc.record({
  kind: fc.constantFrom(...names),
  milliseconds: fc.constantFrom(0.02, 0.4, 1, 3),
  inputs: fc.array(fc.nat(30), { maxLength: 2 }),
})
const pause = fc.integer({ min: 1, max: 8 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('call' as const), call, times: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), which: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pause' as const), milliseconds: pause }) },
  { weight: 1, arbitrary: fc.constant({ do: 'barrier' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('cancel' as const, 'fail' as const),
      call,
      times: fc.integer({ min: 1, max: 12 }),
      milliseconds: pause,
    }),
  },
)

class Play {
  readonly #board: Board = shared(Int32Array, 4000)
  readonly #results: { future: Future<number>; expected: number }[] = []
  /** Those that have to run once, and those that need not run. */
  readonly #runs: number[] = []
  readonly #perhaps: number[] = []
  /** A thread may be ended under one that is to stop, and what else was there runs again. */
  #isCancelled = false
  #groups = 0
  #uids = 0

  async step(one: Step): Promise<void> {
    switch (one.do) {
      case 'call':
        for (let i = 0; i < one.times; i++) this.#results.push(this.#call(one.call, this.#runs))
        return
      case 'wait':
        return this.#check(one.which)
      case 'pause':
        return new Promise(go => realSetTimeout(go, one.milliseconds))
      case 'barrier':
        return barrier()
      case 'cancel':
      case 'fail':
        return this.#stop(one)
    }
  }

  #call({ kind, milliseconds, inputs }: Call, runs: number[]): { future: Future<number>; expected: number } {
    const uid = this.#uids
    this.#uids += 3
    const from = inputs.flatMap(back => this.#results.at(-1 - back) ?? [])
    const expected = from.map(one => one.expected)
    runs.push(...(kind === 'calls' ? [uid, uid + 1, uid + 2] : [uid]))
    const given = from.map(one => one.future) as unknown as number[]
    if (kind === 'large') {
      const future = large(this.#board, uid, milliseconds, given, TEXT)
      return { future, expected: mix(uid, [...expected, TEXT.length]) }
    }
    const future = KINDS[kind](this.#board, uid, milliseconds, given)
    return { future, expected: mix(uid, kind === 'calls' ? [mix(uid + 1, expected)] : expected) }
  }

  async #stop(one: Extract<Step, { do: 'cancel' | 'fail' }>): Promise<void> {
    const name = `g${++this.#groups}`
    if (one.do === 'cancel') this.#isCancelled = true
    // One that calls tasks fails with those that are cancelled, and is told of apart.
    const isOther = one.do === 'fail' && one.call.kind === 'calls'
    const member: Call = isOther ? { ...one.call, kind: 'plain' } : one.call
    const end = group(name, async () => {
      for (let i = 0; i < one.times; i++) {
        this.#call(member, this.#perhaps)
        if (one.do === 'fail' && i === one.times >> 1) {
          fails(this.#board, this.#uids)
          this.#perhaps.push(this.#uids++)
        }
      }
      await this.step({ do: 'pause', milliseconds: one.milliseconds })
      if (one.do === 'cancel') await cancel(name)
    })
    if (one.do === 'cancel') return end
    await assert.rejects(Promise.resolve(end), /fails/)
  }

  async #check(back: number): Promise<void> {
    const one = this.#results.at(-1 - back)
    if (one) assert.equal(await waitOn(one.future), one.expected)
  }

  async end(): Promise<void> {
    for (let i = 0; i < this.#results.length; i++) await this.#check(i)
    await barrier()
    const runs = (uid: number): number => this.#board[RUNS + uid] as number
    for (const uid of this.#runs) assert(runs(uid) >= 1, `${uid} has not run`)
    if (this.#isCancelled) return
    for (const uid of [...this.#runs, ...this.#perhaps])
      assert(runs(uid) <= 1, `${uid} ran ${runs(uid)} times`)
    assert((this.#board[MOST] as number) <= 2, `${this.#board[MOST]} CPUs were in use`)
  }
}

test(`tasks that wait on lanes run once, and what comes of them is heard of (seed ${seed})`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30 }), async steps => {
      let timer: NodeJS.Timeout | undefined
      const limit = new Promise<never>((_go, fail) => {
        timer = realSetTimeout(() => fail(new Error(`the program has not ended after ${LIMIT} ms`)), LIMIT)
      })
      const play = new Play()
      const all = async (): Promise<void> => {
        for (const one of steps) await play.step(one)
        await play.end()
      }
      await Promise.race([all(), limit]).finally(() => clearTimeout(timer))
    }),
    { seed, numRuns, endOnFailure: true, includeErrorInReport: true },
  )
})
