import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { waitOn } from 'millrace'
import * as tasks from '../fixtures/list-tasks.ts'

/**
 * Random chains of tasks that extend long lists, maps and sets, of which only what was added is sent: with failures, retries, threads that
 * end, readers of older versions and waits between them, against a sequential run.
 * To repeat a failure: SEED=… PROGRAMS=… and the test by itself.
 */
const seed = Number(process.env['SEED'] ?? 20261118)
const numRuns = Number(process.env['PROGRAMS'] ?? 60)

const number = fc.nat(0xffffff)
const usual = ['extend', 'extend', 'extend', 'later', 'nested', 'two', 'look', 'look', 'own', 'wait']
const kind = fc.constantFrom(...usual, 'again', 'half', 'fail')
const step = fc.record({ do: kind, which: number, seeds: fc.array(number, { minLength: 1, maxLength: 3 }) })
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

class Lists {
  readonly mine: tasks.Grown[]
  readonly theirs: tasks.Grown[]
  /** What readers have to see, and what they will say. */
  readonly #looks: [told: PromiseLike<string>, expected: string][] = []

  constructor(start: readonly number[]) {
    this.mine = start.map(tasks.newList)
    this.theirs = start.map(tasks.newList)
  }

  async play({ do: what, which, seeds }: Step): Promise<void> {
    const at = which % this.mine.length
    const [mine, theirs] = [this.mine[at] as tasks.Grown, this.theirs[at] as tasks.Grown]
    const attempts = new Int32Array(new SharedArrayBuffer(4))
    switch (what) {
      case 'extend':
        tasks.extend(mine, seeds)
        break
      case 'later':
        tasks.extendLater(mine, seeds)
        break
      case 'nested':
        tasks.extendNested(mine, seeds)
        break
      case 'again':
        tasks.extendAgain(mine, seeds, attempts)
        break
      case 'elsewhere':
        tasks.extendElsewhere(mine, seeds, attempts)
        break
      case 'half':
        tasks.extendHalf(mine, seeds)
        break
      case 'two':
        return this.#two(at, seeds)
      case 'fail':
        return this.#fail(mine, theirs, seeds)
      case 'look':
        return void this.#looks.push([tasks.look(mine), tasks.pictureOf(theirs)])
      case 'own':
        await this.wait(at)
        tasks.changeAll(mine, seeds)
        break
      default:
        return this.wait(at)
    }
    tasks.changeAll(theirs, seeds)
  }

  #two(at: number, seeds: readonly number[]): void {
    const next = (at + 1) % this.mine.length
    tasks.extendTwo(this.mine[at] as tasks.Grown, seeds, this.mine[next] as tasks.Grown)
    const [one, other] = [this.theirs[at] as tasks.Grown, this.theirs[next] as tasks.Grown]
    tasks.changeAll(one, seeds)
    tasks.changeAll(other, seeds)
    tasks.put(one, tasks.sizeOf(other))
  }

  /** After the wait, which throws, the list is what it was before. */
  async #fail(mine: tasks.Grown, theirs: tasks.Grown, seeds: readonly number[]): Promise<void> {
    tasks.failTo(mine, seeds)
    tasks.extend(mine, seeds)
    await assert.rejects(waitOn(mine))
    assert.equal(tasks.pictureOf(await waitOn(mine)), tasks.pictureOf(theirs))
  }

  async wait(at: number): Promise<void> {
    const mine = this.mine[at] as tasks.Grown
    assert.equal(await waitOn(mine), mine)
    assert.equal(tasks.pictureOf(mine), tasks.pictureOf(this.theirs[at] as tasks.Grown))
  }

  async end(): Promise<void> {
    for (const at of this.mine.keys()) await this.wait(at)
    for (const [told, expected] of this.#looks) assert.equal(await told, expected, 'what a reader sees')
  }
}

async function play(start: readonly number[], steps: readonly Step[]): Promise<void> {
  const lists = new Lists(start)
  for (const one of steps) await lists.play(one)
  await lists.end()
}

const starts = fc.array(number, { minLength: 2, maxLength: 4 })

test(`random chains on long lists end as in sequence (seed ${seed})`, async () => {
  await fc.assert(
    fc.asyncProperty(starts, fc.array(step, { minLength: 4, maxLength: 40, size: 'max' }), play),
    { seed, numRuns, includeErrorInReport: true, endOnFailure: !('SHRINK' in process.env) },
  )
})

test('a list is whole again after the thread that had it has ended', { timeout: 60_000 }, async () => {
  const extend = (which: number): Step => ({ do: 'extend', which, seeds: [10 + which] })
  const steps = Array.from({ length: 40 }, (_, i) => extend(i))
  steps.splice(15, 0, { do: 'elsewhere', which: 0, seeds: [31] }, { do: 'look', which: 0, seeds: [0] })
  steps.splice(30, 0, { do: 'elsewhere', which: 1, seeds: [51] })
  await play([1, 2], steps)
})
