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
const numRuns = Number(process.env['PROGRAMS'] ?? 100)

const number = fc.nat(0xffffff)
const step = fc.record({
  do: fc.constantFrom(
    'list',
    'list',
    'nested',
    'element',
    'element',
    'element',
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

  constructor(start: readonly number[]) {
    this.#mine = [7, ...start.map(tasks.newElement)]
    this.#theirs = [7, ...start.map(tasks.newElement)]
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
        tasks.changeList(this.#mine, seeds, false)
        for (const each of seeds) tasks.alterList(this.#theirs, each)
        return
      case 'nested':
        tasks.changeListNested(this.#mine, seeds, false)
        return tasks.alterListNested(this.#theirs, seeds)
      case 'element':
        for (const each of seeds) {
          tasks.changeElement(mine, each)
          tasks.alterElement(theirs, each)
        }
        return
      case 'look':
        return assert.equal(await this.#look(this.#mine), picture([this.#theirs]), 'what a task reads')
      case 'lookOne':
        return assert.equal(await this.#look(mine), picture([theirs]), 'what a task reads')
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
        tasks.changeList(this.#mine, seeds, true)
        await assert.rejects(waitOn(this.#mine), error => error instanceof TaskError)
        // What was there before is there again.
        return this.wait()
    }
  }

  /** What is read may hold an object both by itself and inside another that tasks write: that is refused. */
  async #look(value: unknown): Promise<string> {
    try {
      return await tasks.lookAt(value)
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'MR_ALIAS')
    }
    await this.wait()
    return tasks.lookAt(value)
  }

  async wait(): Promise<void> {
    assert.equal(await waitOn(this.#mine), this.#mine)
    assert.equal(picture([this.#mine]), picture([this.#theirs]))
    this.#pair()
  }
}

test(`random programs over a list and the objects in it end as in sequence (seed ${seed})`, async () => {
  await tasks.lookAt(0)
  await fc.assert(
    fc.asyncProperty(
      fc.array(number, { minLength: 3, maxLength: 5 }),
      fc.array(step, { minLength: 2, maxLength: 16, size: 'max' }),
      async (start, steps) => {
        const lists = new Lists(start)
        for (const one of steps) await lists.play(one)
        await lists.wait()
      },
    ),
    { seed, numRuns, includeErrorInReport: true, endOnFailure: !('SHRINK' in process.env) },
  )
})
