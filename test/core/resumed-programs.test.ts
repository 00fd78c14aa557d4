import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Task } from '../../src/core/tasks/task.ts'
import { Killed } from './fake-machine.ts'
import type { Kept, Work } from './fake-machine.ts'
import { Player } from './play.ts'
import { programs } from './program.ts'
import type { Program } from './program.ts'
import { Random } from './random.ts'
import { assertSequential } from './sequential.ts'
import type { Value } from './values.ts'

/** MILLRACE_RUNS=10 makes the hunt ten times longer. */
const RUNS = 2000 * Number(process.env['MILLRACE_RUNS'] ?? 1)

interface Entry {
  readonly key: string
  readonly uid: string
  readonly made: readonly (Value | null)[]
}

/** A store on the virtual clock: entries are appended, and synced now and then. */
class SimulatedStore implements Kept {
  #entries: Entry[] = []
  #synced = 0
  readonly #random: Random
  /** How often each result was made, and how often a cut lost it. */
  readonly made = new Map<string, number>()
  readonly lost = new Map<string, number>()

  constructor(seed: number) {
    this.#random = new Random(seed)
  }

  /** As `whyNot` of the keeper: memory in place and teams have no results of their own. */
  wants({ accesses }: Task): boolean {
    return accesses.every(
      ({ mode, read, write }) =>
        mode !== 'concurrent' && mode !== 'commutative' && !(write ?? read)?.datum.inPlace,
    )
  }

  find(uid: string, inputs: readonly string[]): Entry['made'] | null {
    const key = keyOf(uid, inputs)
    return this.#entries.find(entry => entry.key === key)?.made ?? null
  }

  keep(uid: string, inputs: readonly string[], made: Entry['made']): void {
    const key = keyOf(uid, inputs)
    this.#entries.push({ key, uid, made: structuredClone(made) })
    this.made.set(key, (this.made.get(key) ?? 0) + 1)
    if (this.#random.chance(0.3)) this.#synced = this.#entries.length
  }

  /** A power cut: what was not synced is there up to some entry. */
  cut(): void {
    const length = this.#synced + this.#random.below(this.#entries.length - this.#synced + 1)
    for (const { key } of this.#entries.slice(length)) this.lost.set(key, (this.lost.get(key) ?? 0) + 1)
    this.#entries = this.#entries.slice(0, length)
    this.#synced = length
  }
}

const keyOf = (uid: string, inputs: readonly string[]): string => JSON.stringify([uid, ...inputs])

let killed = 0

/** What the program counts on is the same each time; when things happen is not. */
function runUntilKilled(program: Program, store: SimulatedStore, kills: readonly number[]): Player {
  for (const [i, steps] of kills.entries()) {
    try {
      return new Player({ ...program, seed: program.seed + i }, 3, store, steps).play()
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      killed++
    }
    store.cut()
  }
  return new Player({ ...program, seed: program.seed + kills.length }, 3, store).play()
}

function resumed(program: Program, kills: readonly number[]): void {
  const store = new SimulatedStore(program.seed)
  assertSequential(program, runUntilKilled(program, store, kills))
  for (const [key, times] of store.made)
    assert(times <= 1 + (store.lost.get(key) ?? 0), `${key} ran ${times} times, and was kept`)
  // All that can be kept is kept now.
  const again = new Player(program, 0, store).play()
  assertSequential(program, again)
  for (const task of again.machine.tasks) {
    const { uid } = task.payload as Work
    if (task.state === 'done' && store.wants(task) && !uid.includes('/'))
      assert(again.machine.answered.has(task), `${uid} ran again: ${task.story()}`)
  }
}

for (const [steps, share] of [
  [10, 0.6],
  [40, 0.4],
] as const)
  test(`programs of up to ${steps} steps, killed up to five times and resumed, end as a sequential run does`, () => {
    const property = fc.property(
      programs({ exact: true, steps }),
      fc.array(fc.nat(steps), { minLength: 1, maxLength: 5 }),
      resumed,
    )
    killed = 0
    fc.assert(property, { numRuns: Math.ceil(RUNS * share), includeErrorInReport: true })
    assert(killed > RUNS * share, `only ${killed} were killed`)
  })
