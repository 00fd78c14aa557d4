import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { waitOn } from 'millrace'
import { picture } from '../fixtures/graph-programs.ts'
import * as tasks from '../fixtures/shape-programs.ts'

/**
 * Random programs over values of any shape, also lists of lists, objects that hold nothing but objects, and arrays of
 * numbers of all sizes: their parts and wholes are passed in any order, against a sequential run of the same program.
 * To repeat a failure: SEED=… PROGRAMS=… and the test by itself.
 */
const seed = Number(process.env['SEED'] ?? 20261118)
const numRuns = Number(process.env['PROGRAMS'] ?? 150)

// Without main, classes are known from the first wait on.
await tasks.make([0])

const number = fc.nat(0xffffff)
const seeds = fc.array(number, { minLength: 1, maxLength: 4 })
const step = fc.record({
  do: fc.constantFrom('alter', 'alter', 'nested', 'two', 'look', 'make', 'own', 'wait', 'waitPart'),
  which: number,
  other: number,
  seeds,
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Two equal worlds: the objects of the program, and those of the sequential run. */
class Worlds {
  readonly #mine: unknown[]
  readonly #theirs: unknown[]
  /** Which object is which, as of the last wait for all. */
  #pairs: [mine: object, theirs: object][] = []
  /** What tasks write. */
  readonly #given = new Set<object>()
  /** Of each object that was in one when it was given to tasks: which one that was. */
  readonly #wholes = new Map<object, object>()
  /** What they may have taken out or put in, in the sequential run. */
  readonly #touched = new Set<object>()

  constructor(start: readonly number[]) {
    this.#mine = start.map(tasks.newShape)
    this.#theirs = start.map(tasks.newShape)
    this.#pair()
  }

  #pair(): void {
    const [mine, theirs] = [this.#mine, this.#theirs].map(tasks.reachAll) as [object[], object[]]
    // The first of all is the list of the test itself.
    this.#pairs = mine.map((one, i): [object, object] => [one, theirs[i] as object]).slice(1)
  }

  async play(one: Step): Promise<void> {
    const { do: what, which, other, seeds: by } = one
    if (what === 'wait') return this.waitAll()
    if (what === 'waitPart') return this.#waitPart(which)
    if (what === 'own' || what === 'make') {
      await this.waitAll()
      await (what === 'own' ? this.#own(by) : this.#make(by))
      return this.#pair()
    }
    const pair = this.#pairs[which % this.#pairs.length]
    if (!pair) return
    if (!this.#wholes.has(pair[0]) && !this.#isApart(pair[1])) await this.waitAll()
    if (what === 'look')
      return assert.equal(await tasks.look(pair[0]), picture([pair[1]]), 'what a task reads')
    const second = this.#pairs[other % this.#pairs.length]
    if (what === 'two' && second) return this.#two(pair, second, by)
    ;(what === 'nested' ? tasks.alterNested : tasks.alter)(pair[0], by)
    this.#give(pair, by)
  }

  #own(by: readonly number[]): void {
    tasks.alterBy(this.#mine, by)
    tasks.alterBy(this.#theirs, by)
  }

  async #make(by: readonly number[]): Promise<void> {
    const made = tasks.make(by)
    tasks.alter(made, by)
    const twin = [tasks.newShape(by[0] ?? 0)]
    tasks.alterBy(twin, by)
    tasks.alterBy(twin, by)
    this.#mine.push(await waitOn(made))
    this.#theirs.push(twin)
  }

  async #two(one: [object, object], other: [object, object], by: readonly number[]): Promise<void> {
    await this.waitAll()
    const reached = new Set(tasks.reachAll(one[1]))
    // A task must not be given one object by two arguments that it writes.
    if (tasks.reachAll(other[1]).some(each => reached.has(each))) return
    tasks.alterTwo(one[0], by, other[0])
    this.#give(one, by)
    this.#give(other, by)
  }

  /** Whether it has nothing to do with what tasks write: then it can be passed at any time. */
  #isApart(theirs: object): boolean {
    return !tasks.reachAll(theirs).some(each => this.#touched.has(each))
  }

  #give([mine, theirs]: [object, object], by: readonly number[]): void {
    this.#given.add(mine)
    const whole = this.#wholes.get(mine)
    if (!whole) for (const each of tasks.reachAll(mine)) this.#wholes.set(each, mine)
    for (const each of tasks.reachAll(theirs)) this.#touched.add(each)
    tasks.alterBy(theirs, by)
    for (const each of tasks.reachAll(theirs)) this.#touched.add(each)
  }

  async #waitPart(which: number): Promise<void> {
    const given = [...this.#given]
    if (given.length > 0) await this.#wait(given[which % given.length] as object)
  }

  async #wait(one: object): Promise<void> {
    assert.equal(await waitOn(one), one)
    const whole = this.#wholes.get(one)
    for (const [each, other] of this.#wholes) {
      if (other !== whole) continue
      this.#wholes.delete(each)
      this.#given.delete(each)
    }
  }

  async waitAll(): Promise<void> {
    for (const one of this.#given) await this.#wait(one)
    this.#touched.clear()
    assert.equal(picture(this.#mine), picture(this.#theirs))
    this.#pair()
  }
}

test(`random programs over values of any shape end as in sequence (seed ${seed})`, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(number, { minLength: 2, maxLength: 6 }),
      fc.array(step, { minLength: 2, maxLength: 16, size: 'max' }),
      async (start, steps) => {
        const worlds = new Worlds(start)
        for (const one of steps) await worlds.play(one)
        await worlds.waitAll()
      },
    ),
    { seed, numRuns, includeErrorInReport: true, endOnFailure: !('SHRINK' in process.env) },
  )
})
