import { Fail, Meter, perform } from '../fixtures/random-tasks.ts'
import type { Access, Box, TextFile } from '../fixtures/random-tasks.ts'
import { PLACES, READABLE, targetsOf } from './random-data.ts'
import type { CallStep } from './random-program.ts'

/**
 * Interprets random programs in sequence: each call is carried out at once, in the order of the program.
 * Shares with the runtime only what the tasks do.
 */

/** Why a value will not come, and the calls whose failure may be named for it. */
export interface Bad {
  kind: 'failed' | 'cancelled'
  roots: Set<number>
  /** It may also be that nothing failed: something was cancelled by the program. */
  orNone: boolean
}

export interface Cell {
  value: unknown
  bad: Bad | null
  /** Memory that exists once: there is nothing else to fall back to. */
  inPlace: boolean
  /** What the datum falls back to. */
  before: { value: unknown; bad: Bad | null } | null
  /** COMMUTATIVE or CONCURRENT tasks that make this value together. */
  team: { mode: string; base: { value: unknown; bad: Bad | null } } | null
}

export class Oracle {
  readonly cells: Cell[] = PLACES.map(place => newCell(place.make(), place.kind))
  /** Results of calls, in order: what `which` numbers from `READABLE.length` on mean. */
  readonly futures: Cell[] = []
  /** A group is open that will be cancelled: until then nothing falls back. */
  isCancelling = false
  #lastUid = 0

  /** Numbers of further calls begin here. */
  nextUid(): number {
    return ++this.#lastUid
  }

  /** The cell that a number among `ins` or waits means. */
  pick(which: number): { place: number } | { future: number } {
    const count = READABLE.length + this.futures.length
    const n = which % count
    return n < READABLE.length ? { place: READABLE[n] as number } : { future: n - READABLE.length }
  }

  cell(which: { place: number } | { future: number }): Cell {
    return ('place' in which ? this.cells[which.place] : this.futures[which.future]) as Cell
  }

  /** The values that a call reads; those that its own target forbids are left out. */
  inputs(step: CallStep, targets: readonly number[]): ({ place: number } | { future: number })[] {
    const excludes = step.shape === 'commutative' || step.shape === 'concurrent' || step.shape === 'out'
    return step.ins
      .map(({ which }) => this.pick(which))
      .filter(one => !('place' in one && excludes && targets.includes(one.place)))
  }

  call(step: CallStep, uid: number, extra: Cell[] = []): Cell[] {
    const targets = targetsOf(step.shape, step.targets)
    const places = this.inputs(step, targets).flatMap(one => ('place' in one ? [one.place] : []))
    for (const place of this.isCancelling ? [] : [...targets, ...places]) this.#afterCancel(place)
    const inputs = this.inputs(step, targets).map(one => this.cell(one))
    for (const input of [...inputs, ...extra]) close(input)
    const roots = new Set<number>()
    for (const { bad } of [...inputs, ...extra]) for (const root of bad?.roots ?? []) roots.add(root)
    let isBad = [...inputs, ...extra].some(({ bad }) => bad !== null)
    let orNone = [...inputs, ...extra].some(({ bad }) => bad?.orNone)
    const reads = step.shape !== 'out' && step.shape !== 'fileOut'
    const joins = ['commutative', 'concurrent', 'fileCommutative'].includes(step.shape)
    const written = step.shape === 'fileIn' ? [] : [...new Set(targets)]
    for (const target of targets) {
      const cell = this.cells[target] as Cell
      const isMember = joins && cell.team?.mode === step.shape
      if (!isMember) close(cell)
      const read = isMember ? (cell.team as NonNullable<Cell['team']>).base : cell
      const needed = reads || PLACES[target]?.kind === 'shared' || PLACES[target]?.kind === 'sharedInts'
      if (needed && read.bad) {
        isBad = true
        for (const root of read.bad.roots) roots.add(root)
        orNone ||= read.bad.orNone
      }
    }
    const results = Array.from({ length: step.shape === 'two' ? 2 : 1 }, () => newCell(undefined))
    const spoil = (bad: Bad): void => {
      for (const result of results) result.bad = bad
      for (const target of written) this.#spoil(this.cells[target] as Cell, step.shape, joins, bad)
    }
    if (isBad) spoil({ kind: 'cancelled', roots, orNone })
    else this.#run(step, uid, targets, written, joins, [...inputs, ...extra], results, spoil)
    this.futures.push(...results)
    return results
  }

  /** Whether a call would use something that will not come. */
  isSpoilt(step: CallStep): boolean {
    const targets = targetsOf(step.shape, step.targets)
    const inputs = this.inputs(step, targets).map(one => this.cell(one))
    return [...inputs, ...targets.map(target => this.cells[target] as Cell)].some(({ bad }) => bad !== null)
  }

  /** What the program has cancelled, it knows: later tasks have what was there before. */
  #afterCancel(place: number): void {
    const cell = this.cells[place] as Cell
    if (cell.bad?.orNone && cell.bad.roots.size === 0) this.wait(cell)
  }

  #run(
    step: CallStep,
    uid: number,
    targets: number[],
    written: number[],
    joins: boolean,
    inputs: Cell[],
    results: Cell[],
    spoil: (bad: Bad) => void,
  ): void {
    for (let attempt = 1; ; attempt++) {
      const values = new Map(targets.map(target => [target, copy((this.cells[target] as Cell).value)]))
      if (step.shape === 'out') {
        // A new array of zeros, but for memory that exists once.
        for (const [target, value] of values) {
          if (PLACES[target]?.kind === 'array') (value as Float64Array).fill(0)
        }
      }
      const own = new Map<Cell, unknown>(
        targets.map(target => [this.cells[target] as Cell, values.get(target)]),
      )
      const ins = inputs.map((input, i) =>
        wrap(own.has(input) ? own.get(input) : copy(input.value), step.ins[i]?.wrap),
      )
      const accesses = targets.map(target => ({
        mode: step.shape as Access['mode'],
        target: PLACES[target]?.kind === 'file' ? fileIn(values, target) : values.get(target),
      }))
      try {
        const spec = { uid, failures: step.failures, form: step.failForm, spin: 0 }
        const result =
          step.shape === 'nested'
            ? nested(ins, values.get(targets[0] as number) as Box, uid)
            : perform(spec, attempt, ins, accesses, fail)
        for (const target of written)
          this.#write(this.cells[target] as Cell, values.get(target), step.shape, joins)
        ;(results[0] as Cell).value = result
        if (results[1]) results[1].value = { n: result, log: [result & 0xff] }
        return
      } catch (error) {
        if (!(error instanceof Fail)) throw error
      }
      if (attempt <= step.retries) continue
      const isKilled = step.failForm !== 'throw'
      for (const target of written) {
        const cell = this.cells[target] as Cell
        const { kind } = PLACES[target] as { kind: string }
        const isInPlace = kind === 'shared' || kind === 'sharedInts'
        const isKept = isInPlace || kind === 'file' || !isKilled
        if (step.form === 'ignore') {
          let value = isKept ? values.get(target) : copy(cell.value)
          if (!isKept && step.shape === 'out') value = new Float64Array((cell.value as Float64Array).length)
          this.#write(cell, value, step.shape, joins)
        } else if (isInPlace) overwrite(cell, values.get(target))
      }
      if (step.form === 'ignore') {
        ;(results[0] as Cell).value = -7
        if (results[1]) results[1].value = -8
      } else spoil({ kind: 'failed', roots: new Set([uid]), orNone: false })
      return
    }
  }

  #write(cell: Cell, value: unknown, shape: string, joins: boolean): void {
    if (joins && cell.team?.mode === shape) {
      cell.value = value
      return
    }
    const base = { value: cell.value, bad: cell.bad }
    cell.before = null
    cell.value = value
    cell.bad = null
    cell.team = joins ? { mode: shape, base } : null
  }

  #spoil(cell: Cell, shape: string, joins: boolean, bad: Bad): void {
    const good = lastGood(cell)
    if (joins && cell.team?.mode === shape) {
      // The team as a whole fails; whichever member failed first is named.
      cell.before ??= cell.team.base.bad ? good : { value: cell.team.base.value, bad: null }
      cell.bad = cell.bad
        ? {
            kind: cell.bad.kind === bad.kind ? bad.kind : 'failed',
            roots: new Set([...cell.bad.roots, ...bad.roots]),
            orNone: cell.bad.orNone || bad.orNone,
          }
        : bad
      return
    }
    const base = { value: cell.value, bad: cell.bad }
    cell.before = good
    cell.bad = bad
    cell.team = joins ? { mode: shape, base } : null
  }

  /** A wait: closes a team; after an error the datum is what it was before. */
  wait(cell: Cell): { value: unknown; bad: Bad | null } {
    close(cell)
    const seen = { value: cell.value, bad: cell.bad }
    if (cell.bad && (cell.before || cell.inPlace)) {
      if (cell.before && !cell.inPlace) cell.value = cell.before.value
      cell.bad = null
      cell.before = null
    }
    return seen
  }
}

const newCell = (value: unknown, kind = ''): Cell => ({
  value,
  bad: null,
  before: null,
  team: null,
  inPlace: kind === 'shared' || kind === 'sharedInts',
})

const lastGood = (cell: Cell): { value: unknown; bad: null } | null =>
  cell.bad ? (cell.before as { value: unknown; bad: null } | null) : { value: cell.value, bad: null }

/** In-place memory is what the attempt left, also after a failure. */
function overwrite(cell: Cell, value: unknown): void {
  cell.value = value
}

const close = (cell: Cell): void => {
  cell.team = null
}

function fail(): void {
  throw new Fail('in the interpreter')
}

function fileIn(values: Map<number, unknown>, target: number): TextFile {
  return { read: () => values.get(target) as string, write: text => values.set(target, text) }
}

/** What the nested task does, with its own data. */
function nested(ins: unknown[], box: Box, uid: number): number {
  const own: Box = { n: uid, log: [] }
  const quiet = { uid: 0, failures: 0, form: 'throw', spin: 0 } as const
  const first = perform(quiet, 1, ins, [], fail)
  perform(quiet, 1, [first], [{ mode: 'inout', target: own }], fail)
  perform(quiet, 1, [own], [{ mode: 'inout', target: box }], fail)
  return first
}

export function wrap(value: unknown, how = 0): unknown {
  return how === 4 ? [value] : how === 5 ? { inner: value } : value
}

export function copy(value: unknown): unknown {
  if (value instanceof Meter) return new Meter(value.n)
  if (ArrayBuffer.isView(value)) return (value as Float64Array).slice()
  if (typeof value !== 'object' || value === null) return value
  const { n, log } = value as Box
  return { n, log: [...log] }
}
