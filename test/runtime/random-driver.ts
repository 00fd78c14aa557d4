import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CancelledError, TaskError, barrier, cancel, group, shared, waitOn, waitOnFile } from 'millrace'
import { holds, work } from '../fixtures/random-tasks.ts'
import type { Attempts, Box, Meter } from '../fixtures/random-tasks.ts'
import { until } from './embedded.ts'
import type { MillraceFields } from './embedded.ts'
import { PLACES, pathOf, targetsOf } from './random-data.ts'
import { Oracle, copy, wrap } from './random-oracle.ts'
import type { Bad, Cell } from './random-oracle.ts'
import type { CallStep, Step } from './random-program.ts'

const HAS_NODES = process.env['MILLRACE_NODES'] !== undefined

/** Runs a random program through the runtime and in sequence, and compares wherever the program waits. */
export async function play(steps: readonly Step[], base: string): Promise<void> {
  const folder = mkdtempSync(join(base, 'program-'))
  const driver = new Driver(folder)
  try {
    for (const step of steps) await driver.step(step)
    await driver.end()
  } finally {
    await driver.settle()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Called {
  futures: unknown[]
  cells: Cell[]
}

class Driver {
  readonly #oracle = new Oracle()
  readonly #values: unknown[]
  readonly #futures: unknown[] = []
  /** Tasks on other nodes share no memory with us. */
  readonly #attempts: Attempts
  readonly #folder: string
  /** Places that tasks may use, so that the program must not touch them. */
  readonly #given = new Set<number>()
  readonly #later: Promise<void>[] = []
  #groups = 0

  constructor(folder: string) {
    this.#folder = folder
    this.#attempts = HAS_NODES ? folder : shared(Int32Array, 4096)
    this.#values = PLACES.map(place => place.make())
    for (const place of PLACES) {
      if (place.kind === 'file') writeFileSync(pathOf(folder, place), String(place.make()))
    }
  }

  async step(step: Step): Promise<void> {
    switch (step.do) {
      case 'call':
        this.#call(step)
        return
      case 'wait':
        return this.#wait(step.which)
      case 'waitLater':
        return this.#waitLater(step.which)
      case 'mutate':
        await this.#wait(step.which)
        return this.#mutate(step.which, step.to)
      case 'mutateFresh': {
        const one = this.#oracle.pick(step.which)
        if ('place' in one && !this.#given.has(one.place)) this.#mutate(step.which, step.to)
        return
      }
      case 'group':
        await group(`g${++this.#groups}`, async () => {
          for (const call of step.calls) this.#call(call)
          await Promise.resolve()
        })
        return
      case 'failGroup':
      case 'failAlone':
        return this.#fail(step)
      case 'cancelGroup':
        return this.#cancel(step.calls)
      case 'barrier':
        return barrier()
      case 'turns':
        for (let i = 0; i < step.count; i++) await new Promise(resolve => setImmediate(resolve))
    }
  }

  async end(): Promise<void> {
    await Promise.all(this.#later)
    for (const [i, place] of PLACES.entries()) {
      if (place.kind === 'file') await this.#waitFile(i)
      else await this.#waitPlace(i)
    }
    for (const i of this.#futures.keys()) await this.#waitFuture(i)
  }

  /** Whatever happened: nothing of this program runs on. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#later)
    for (let i = 0; i < 100; i++) {
      try {
        return await barrier()
      } catch {
        // Failures of a program that was found wrong.
      }
    }
  }

  // --- calls ---

  #call(
    step: CallStep,
    extra: unknown[] = [],
    extraCells: Cell[] = [],
  ): { futures: unknown[]; cells: Cell[] } {
    const uid = this.#oracle.nextUid()
    const targets = targetsOf(step.shape, step.targets)
    const inputs = this.#oracle.inputs(step, targets)
    const ins = inputs.map((one, i) =>
      wrap('place' in one ? this.#values[one.place] : this.#futures[one.future], step.ins[i]?.wrap),
    )
    for (const one of inputs) {
      if ('place' in one && this.#isShared(one.place)) this.#given.add(one.place)
    }
    const passed = targets.map(target => {
      const place = PLACES[target] as (typeof PLACES)[number]
      this.#given.add(target)
      return place.kind === 'file' ? pathOf(this.#folder, place) : this.#values[target]
    })
    const { shape, form, retries, limit, failures, failForm, spin } = step
    const spec = { uid, failures, form: failForm, spin }
    const result = work(shape, form, retries, limit)(spec, this.#attempts, [...ins, ...extra], ...passed)
    const futures = shape === 'two' ? (result as unknown as unknown[]) : [result]
    this.#futures.push(...futures)
    const cells = this.#oracle.call(step, uid, extraCells)
    return { futures, cells }
  }

  async #fail(step: Extract<Step, { do: 'failGroup' | 'failAlone' }>): Promise<void> {
    const isGroup = step.do === 'failGroup'
    if (!isGroup) await barrier()
    let first: Called | null = null
    const calls = (): void => {
      first = this.#call({ ...step.call, ins: [] })
      for (const after of step.after) this.#call(after, first.futures, first.cells)
    }
    let error: unknown = null
    if (isGroup) {
      error = await group(`g${++this.#groups}`, calls).then(
        () => null,
        (caught: unknown) => caught,
      )
    } else {
      calls()
      error = await Promise.resolve((first as unknown as Called).futures[0]).then(
        () => null,
        (caught: unknown) => caught,
      )
    }
    const bad = (first as unknown as Called).cells[0]?.bad as Bad
    checkError(error, bad, 'the failure')
  }

  async #cancel(calls: readonly CallStep[]): Promise<void> {
    const name = `g${++this.#groups}`
    const gate = HAS_NODES ? join(this.#folder, `gate-${name}`) : shared(Int32Array, 1)
    const isOpen = (): boolean => (typeof gate === 'string' ? existsSync(gate) : Atomics.load(gate, 0) === 1)
    const known = this.#futures.length
    await group(name, async () => {
      const held = holds(gate)
      const cell: Cell = {
        value: undefined,
        bad: { kind: 'cancelled', roots: new Set(), orNone: true },
        before: null,
        team: null,
        inPlace: false,
      }
      const sound = calls.filter(call => !this.#oracle.isSpoilt(call))
      this.#oracle.isCancelling = true
      for (const call of sound) this.#call(call, [held], [cell])
      this.#oracle.isCancelling = false
      await until(isOpen, 'the task that holds')
      await cancel(name)
    })
    // A call that uses them and something that failed could be cancelled for either.
    this.#futures.length = this.#oracle.futures.length = known
  }

  // --- waits ---

  async #wait(which: number): Promise<void> {
    const one = this.#oracle.pick(which)
    if ('future' in one) return this.#waitFuture(one.future)
    return this.#waitPlace(one.place)
  }

  async #waitFuture(index: number): Promise<void> {
    const expected = this.#oracle.wait(this.#oracle.futures[index] as Cell)
    await check(`result ${index}`, waitOn(this.#futures[index]), expected)
  }

  async #waitPlace(place: number): Promise<void> {
    const value = this.#values[place]
    const cell = this.#oracle.cells[place] as Cell
    const expected = this.#oracle.wait(cell)
    const { name, isLarge } = PLACES[place] as (typeof PLACES)[number]
    this.#given.delete(place)
    await check(name, waitOn(value), expected)
    if (!expected.bad) {
      assert.equal(await waitOn(value), value, `${name} is the same object`)
      return
    }
    if (isLarge) {
      // Its memory may have gone into the attempt: then it throws on. Either way a new value ends that.
      const again = await waitOn(value).catch((error: unknown) => error)
      if (again === value) return assert.deepEqual(plain(value), plain(cell.value), `${name} after a failure`)
      checkError(again, expected.bad, `${name}, once more`)
      this.#call({ ...FILL, targets: [fillNumber(place)] })
      return this.#waitPlace(place)
    }
    await check(`${name} after a failure`, waitOn(value), cell)
  }

  #waitLater(which: number): void {
    const one = this.#oracle.pick(which)
    if (!('future' in one)) {
      // Only that it does no harm: the object may be written again before the wait is over.
      const value = this.#values[one.place]
      if (this.#oracle.wait(copyCell(this.#oracle.cells[one.place] as Cell)).bad) return
      this.#oracle.wait(this.#oracle.cells[one.place] as Cell)
      this.#keep(waitOn(value).then(() => undefined))
      return
    }
    const expected = this.#oracle.wait(this.#oracle.futures[one.future] as Cell)
    this.#keep(check(`result ${one.future}, later`, waitOn(this.#futures[one.future]), expected))
  }

  async #waitFile(index: number): Promise<void> {
    const place = PLACES[index] as (typeof PLACES)[number]
    const path = pathOf(this.#folder, place)
    const cell = this.#oracle.cells[index] as Cell
    const read = (): Promise<string> => waitOnFile(path).then(found => readFileSync(found, 'utf8'))
    const expected = this.#oracle.wait(cell)
    await check(place.name, read(), expected)
    if (expected.bad) await check(`${place.name} after a failure`, read(), cell)
  }

  /** Looked at in the end; until then a rejection is no failure of the test. */
  #keep(promise: Promise<void>): void {
    promise.catch(() => undefined)
    this.#later.push(promise)
  }

  #mutate(which: number, to: number): void {
    const one = this.#oracle.pick(which)
    if (!('place' in one)) return
    const cell = this.#oracle.cells[one.place] as Cell
    if (cell.bad) return
    cell.value = copy(cell.value)
    cell.team = null
    for (const value of [this.#values[one.place], cell.value]) {
      if (ArrayBuffer.isView(value)) (value as Float64Array)[1] = to
      else (value as Box | Meter).n = to
    }
  }

  #isShared(place: number): boolean {
    return PLACES[place]?.kind === 'shared' || PLACES[place]?.kind === 'sharedInts'
  }
}

const FILL: CallStep = {
  do: 'call',
  shape: 'out',
  form: 'cancelSuccessors',
  retries: 0,
  limit: 'none',
  failures: 0,
  failForm: 'throw',
  spin: 0,
  ins: [],
  targets: [],
}

/** The number that makes `targetsOf` choose this place. */
function fillNumber(place: number): number {
  for (let n = 0; n < PLACES.length; n++) if (targetsOf('out', [n])[0] === place) return n
  throw new Error(`${PLACES[place]?.name} cannot be filled`)
}

const copyCell = (cell: Cell): Cell => ({ ...cell })

/** Arrays of shared and of plain memory are equal when their elements are. */
const plain = (value: unknown): unknown =>
  ArrayBuffer.isView(value)
    ? Array.from((value as Float64Array).slice(0, 20)).concat((value as Float64Array).length)
    : value

async function check(what: string, actual: Promise<unknown>, expected: { value: unknown; bad: Bad | null }) {
  // Taken now, because what is waited for later may have changed again by then.
  const value = expected.bad ? null : plain(copy(expected.value))
  const { bad } = expected
  let found: unknown
  try {
    found = plain(copy(await actual))
  } catch (error) {
    if (!bad) throw new Error(`${what} should be ${JSON.stringify(value)}, but: ${String(error)}`)
    return checkError(error, bad, what)
  }
  if (bad) throw new Error(`${what} should have thrown (${bad.kind}) and is ${JSON.stringify(found)}`)
  assert.deepEqual(found, value, what)
}

function checkError(error: unknown, bad: Bad, what: string): void {
  const fields = error as MillraceFields
  const kind = bad.kind === 'failed' ? TaskError : CancelledError
  // Of a team, any member that failed or was cancelled may be the one that is named.
  const isTeam = bad.roots.size > 1 || (bad.kind === 'failed' && bad.orNone)
  const isKnown = error instanceof TaskError || error instanceof CancelledError
  assert(isTeam ? isKnown : error instanceof kind, `${what}: expected ${kind.name}, got ${String(error)}`)
  if (bad.orNone && error instanceof CancelledError && fields.cause === undefined) return
  if (bad.roots.size === 0) return assert.equal(fields.cause, undefined, `${what}: nothing failed`)
  const failed = (error instanceof TaskError ? fields : fields.cause) as MillraceFields
  assert(failed instanceof TaskError, `${what}: the cause is ${String(failed)}`)
  if (failed.code !== 'MR_TASK_FAILED') {
    assert(['MR_TIMEOUT', 'MR_THREAD_DIED'].includes(failed.code), `${what}: ${String(failed)}`)
    return
  }
  const uid = Number(/^failure of (\d+)/.exec(failed.cause.message)?.[1])
  assert(bad.roots.has(uid), `${what}: ${uid} is named, not one of ${[...bad.roots].join()}`)
}
