import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { TaskError, waitOn } from 'millrace'
import { picture } from '../fixtures/graph-programs.ts'
import * as tasks from '../fixtures/element-tasks.ts'
import type { Element } from '../fixtures/element-tasks.ts'

/**
 * Random programs that pass a list and the objects in it to tasks in any order, wait for either, and change both
 * themselves, against a sequential run of the same program.
 * To repeat a failure: SEED=… PROGRAMS=… and the test by itself.
 */
const seed = Number(process.env['SEED'] ?? 20261120)
const numRuns = Number(process.env['PROGRAMS'] ?? 200)

const number = fc.nat(0xffffff)
const step = fc.record({
  do: fc.constantFrom(
    'list',
    'list',
    'nested',
    'element',
    'element',
    'element',
    'each',
    'each',
    'look',
    'lookOne',
    'wait',
    'waitOne',
    'own',
    'fail',
  ),
  which: number,
  seeds: fc.array(number, { minLength: 1, maxLength: 3 }),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

class Lists {
  readonly #mine: unknown[]
  readonly #theirs: unknown[]
  /** The objects of the program that were in the list at the last wait for it, and their twins. */
  #pairs: [mine: Element, theirs: Element][] = []

  /** Memory of this size goes to the task that writes it, and is gone when that fails. */
  readonly #isLarge: boolean
  isOver = false

  /** Where there are objects only, and tasks write some of them, each is a datum of its own. */
  constructor(start: readonly number[], numbers: readonly number[], size: number) {
    this.#isLarge = size > 4096
    const elements = (): Element[] => start.map(n => tasks.newElement(n, size))
    this.#mine = [...numbers, ...elements()]
    this.#theirs = [...numbers, ...elements()]
    this.#pair()
  }

  #pair(): void {
    const isElement = (item: unknown): item is Element => typeof item === 'object' && item !== null
    const theirs = this.#theirs.filter(isElement)
    this.#pairs = this.#mine
      .filter(isElement)
      .map((one, i): [Element, Element] => [one, theirs[i] as Element])
  }

  async play({ do: what, which, seeds }: Step): Promise<void> {
    const [mine, theirs] = this.#pairs[which % this.#pairs.length] as [Element, Element]
    switch (what) {
      case 'list':
        await this.#unlessTold(() => tasks.changeList(this.#mine, seeds, false))
        for (const each of seeds) tasks.alterList(this.#theirs, each)
        return
      case 'nested':
        await this.#unlessTold(() => tasks.changeListNested(this.#mine, seeds, false))
        return tasks.alterListNested(this.#theirs, seeds)
      case 'element':
        for (const each of seeds) await this.#change(mine, theirs, each)
        return
      case 'each':
        for (const [one, other] of this.#pairs) {
          // Only some are read.
          if (other.n % 2 === 0)
            assert.equal(await this.#unlessRefused(() => tasks.lookAt(one)), picture([other]))
          else await this.#change(one, other, which)
        }
        return
      case 'look':
        return assert.equal(
          await this.#unlessRefused(() => tasks.lookAt(this.#mine)),
          picture([this.#theirs]),
          'what a task reads',
        )
      case 'lookOne':
        return assert.equal(
          await this.#unlessRefused(() => tasks.lookAt(mine)),
          picture([theirs]),
          'what a task reads',
        )
      case 'wait':
        return this.wait()
      case 'waitOne':
        assert.equal(await waitOn(mine), mine)
        return assert.equal(picture([mine]), picture([theirs]))
      case 'own':
        await this.wait()
        for (const list of [this.#mine, this.#theirs]) for (const each of seeds) tasks.alterList(list, each)
        return this.#pair()
      case 'fail':
        if (this.#isLarge) return
        if (!this.#isWhole) await this.wait()
        tasks.changeList(this.#mine, seeds, true)
        await assert.rejects(waitOn(this.#mine), error => error instanceof TaskError)
        // What was there before is there again.
        return this.wait()
    }
  }

  async #change(mine: Element, theirs: Element, seed: number): Promise<void> {
    await this.#unlessRefused(() => tasks.changeElement(mine, seed))
    tasks.alterElement(theirs, seed)
  }

  /** Another value in the list makes tasks write it with all that is in it. */
  get #isWhole(): boolean {
    return this.#theirs.some(item => typeof item === 'number')
  }

  /** A change of what the elements of a list have in common is made, or it is told; and it is made once all are waited for. */
  async #unlessTold(call: () => unknown): Promise<void> {
    if (this.#isWhole) return void call()
    try {
      call()
      await waitOn(this.#mine)
      return
    } catch (error) {
      assert.equal(codeOf(error), 'MR_ALIAS', String(error))
      if (error instanceof TaskError && this.#isLarge) this.isOver = true
    }
    if (this.isOver) return
    // The elements are what they were.
    await this.wait()
    call()
    await waitOn(this.#mine)
  }

  /** What is passed may hold an object both by itself and inside another that tasks write: that is refused. */
  async #unlessRefused<T>(call: () => T): Promise<T> {
    try {
      return call()
    } catch (error) {
      assert.equal(codeOf(error), 'MR_ALIAS')
    }
    await this.wait()
    return call()
  }

  async wait(): Promise<void> {
    assert.equal(await waitOn(this.#mine), this.#mine)
    assert.equal(picture([this.#mine]), picture([this.#theirs]))
    this.#pair()
  }
}

function codeOf(error: unknown): unknown {
  const { code } = (error instanceof TaskError ? error.cause : error) as { code?: unknown }
  return code
}

test(`random programs over a list and the objects in it end as in sequence (seed ${seed})`, async () => {
  await tasks.lookAt(0)
  await fc.assert(
    fc.asyncProperty(
      fc.array(number, { minLength: 3, maxLength: 5 }),
      fc.constantFrom([], [7]),
      fc.constantFrom(8, 5000),
      fc.array(step, { minLength: 2, maxLength: 16, size: 'max' }),
      async (start, numbers, size, steps) => {
        const lists = new Lists(start, numbers, size)
        for (const one of steps) {
          await lists.play(one)
          if (lists.isOver) return
        }
        await lists.wait()
      },
    ),
    { seed, numRuns, includeErrorInReport: true, endOnFailure: !('SHRINK' in process.env) },
  )
})
