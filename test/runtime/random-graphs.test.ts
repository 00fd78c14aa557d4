import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { CancelledError, TaskError, cancel, group, shared, waitOn } from 'millrace'
import {
  after,
  change,
  changeNested,
  describe,
  newNode,
  operate,
  picture,
  reach,
} from '../fixtures/graph-programs.ts'
import type { Node } from '../fixtures/graph-programs.ts'
import { holds } from '../fixtures/random-tasks.ts'
import { until } from './embedded.ts'

/**
 * Random programs whose tasks move, share, replace and link objects, against a sequential run of the same program:
 * contents and identity must be equal. To repeat a failure: SEED=… PROGRAMS=… and the test by itself.
 */
const seed = Number(process.env['SEED'] ?? 20261118)
const numRuns = Number(process.env['PROGRAMS'] ?? 150)

type Step =
  | { do: 'call'; which: number; seeds: number[]; nested: boolean; fails: boolean }
  | { do: 'wait'; which: number }
  | { do: 'read'; which: number }
  | { do: 'own'; which: number; seed: number }
  | { do: 'cancel'; which: number; seed: number }

const number = fc.nat(0xffffff)
const call = fc.record({
  do: fc.constant('call' as const),
  which: number,
  seeds: fc.array(number, { minLength: 1, maxLength: 3 }),
  nested: fc.boolean(),
  fails: fc.constant(false),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: call },
  { weight: 1, arbitrary: call.map(one => ({ ...one, fails: true })) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), which: number }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('read' as const), which: number }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('own' as const), which: number, seed: number }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), which: number, seed: number }) },
)

/** Two equal worlds: the objects of the program, and those of the sequential run. */
class Worlds {
  readonly #mine: Node[]
  readonly #theirs: Node[]
  /** Objects that tasks write, and whether the last of them fails. */
  readonly #given = new Map<number, boolean>()
  /** Of each object that was in one when it was given to tasks: which one that was. */
  readonly #wholes = new Map<Node, number>()
  #groups = 0

  constructor() {
    const make = (): Node[] => {
      const nodes = [1, 2, 3, 4].map(newNode) as [Node, Node, Node, Node]
      nodes[0].kids.push(nodes[1], nodes[2])
      nodes[2].link = nodes[1]
      return nodes
    }
    this.#mine = make()
    this.#theirs = make()
  }

  async play(one: Step): Promise<void> {
    const at = one.which % this.#mine.length
    const mine = this.#mine[at] as Node
    const theirs = this.#theirs[at] as Node
    switch (one.do) {
      case 'wait':
        return this.#waitAll()
      case 'call': {
        const run = one.nested ? changeNested : change
        // A failure is told of each of those that tasks had by themselves, which one wait does not tell of.
        const hasFailed = reach(mine).some(each => this.#given.get(this.#wholes.get(each) ?? -1) === true)
        if (hasFailed && !this.#wholes.has(mine)) await this.#waitAll()
        await this.#called(() => run(mine, one.seeds, one.fails))
        const whole = this.#wholes.get(mine) ?? at
        if (whole === at) {
          // What tasks had by itself before is part of it from now on.
          const held = new Set(reach(mine).map(each => this.#wholes.get(each) ?? at))
          for (const [each, other] of this.#wholes) if (held.has(other)) this.#wholes.set(each, at)
          for (const other of held) if (other !== at) this.#given.delete(other)
          for (const each of reach(mine)) this.#wholes.set(each, at)
        }
        if (this.#given.get(whole) === true) return
        this.#given.set(whole, one.fails)
        if (!one.fails) for (const each of one.seeds) operate(theirs, each)
        return
      }
      case 'read': {
        const { future } = await this.#called(() => describe(mine))
        // What it reads may hold something that has failed.
        if ([...this.#given.values()].includes(true)) return void (await future.catch(() => undefined))
        return assert.equal(await future, picture([theirs]), 'what a task reads')
      }
      case 'own':
        await this.#waitAll()
        operate(mine, one.seed)
        return operate(theirs, one.seed)
      case 'cancel':
        await this.#waitAll()
        return this.#cancel(at, one.seed)
    }
  }

  /** A call may be refused while parts of its argument are being written; after a wait it is not. */
  async #called<T>(make: () => T): Promise<{ future: T }> {
    try {
      return { future: make() }
    } catch (error) {
      const { code } = error as { code?: string }
      assert(code === 'MR_ALIAS' || code === 'MR_DIRECTION', String(error))
    }
    await this.#waitAll()
    return { future: make() }
  }

  async #cancel(at: number, which: number): Promise<void> {
    const name = `graphs ${++this.#groups}`
    const gate = shared(Int32Array, 1)
    await group(name, async () => {
      const held = holds(gate)
      after(this.#mine[at] as Node, which, held)
      await until(() => Atomics.load(gate, 0) === 1, 'the task that holds')
      await cancel(name)
    })
    this.#given.set(at, false)
    for (const each of reach(this.#mine[at] as Node)) this.#wholes.set(each, at)
    // What comes after runs on what was there before.
    await this.play({ do: 'call', which: at, seeds: [which], nested: false, fails: false })
  }

  async #waitAll(): Promise<void> {
    for (const [at, fails] of this.#given) {
      const mine = this.#mine[at] as Node
      if (fails) {
        await assert.rejects(
          waitOn(mine),
          error => error instanceof TaskError || error instanceof CancelledError,
        )
      }
      assert.equal(await waitOn(mine), mine)
    }
    this.#given.clear()
    this.#wholes.clear()
    assert.equal(picture(this.#mine), picture(this.#theirs))
  }

  async end(): Promise<void> {
    await this.#waitAll()
    // What tasks have made is known to the program from now on.
    const [mine, theirs] = [this.#mine, this.#theirs].map(nodes => nodes.flatMap(reach)) as [Node[], Node[]]
    this.#mine.push(...mine)
    this.#theirs.push(...theirs)
    for (const which of [0, mine.length >> 1, mine.length]) {
      await this.play({
        do: 'call',
        which,
        seeds: [which * 7919, which * 104729],
        nested: false,
        fails: false,
      })
      await this.#waitAll()
    }
  }
}

test(
  `random programs over object graphs end as in sequence (seed ${seed})`,
  { timeout: 600_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 14, size: 'max' }), async steps => {
        const worlds = new Worlds()
        for (const one of steps) await worlds.play(one)
        await worlds.end()
      }),
      { seed, numRuns, includeErrorInReport: true, endOnFailure: !('SHRINK' in process.env) },
    )
  },
)
