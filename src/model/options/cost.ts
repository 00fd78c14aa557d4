import { messageOf } from '../../general/thrown.ts'
import { MillraceError } from '../../core/errors.ts'
import { nearest } from '../../general/nearest.ts'
import { parseBytes, parseDuration } from '../../general/units.ts'
import type { Known } from '../types.ts'

type Amount<A extends readonly unknown[]> = number | string | ((...args: Known<A>) => number | string)

/** What a task costs, for the simulator, which does not run it. */
export interface Cost<A extends readonly unknown[]> {
  /** Seconds of computing on its CPUs, or '3min'. @default 0 */
  compute?: Amount<A>
  /** Bytes that it reads, or '290MB'. @default the files that it reads, as large as they are */
  reads?: Amount<A>
  /** Bytes that it writes; several files get equal parts. @default `size` */
  writes?: Amount<A>
  /** What it returns in a simulation: a value, or a function of the arguments. @default undefined */
  returns?: unknown
  /**
   * Of a generator, or a task with several results that calls `ready`: how many values come before its end, evenly over
   * its computing; or for each of them the part of its computing after which it comes, from 0 to 1.
   */
  ready?: Ready | ((...args: Known<A>) => Ready)
  /**
   * How many times as fast it is on several CPUs as on one, by their number, as `{ 2: 1.9, 8: 6 }`, or a function of it. Between two
   * numbers it is on the line from one to the other, beyond the last it stays. `compute` is the time on one CPU then. @default
   * `compute` is the time on all CPUs that it has
   */
  speedUp?: SpeedUp
}

type SpeedUp = Readonly<Record<number, number>> | ((cpus: number) => number)

type Ready = number | readonly number[]

/** A cost with its numbers: milliseconds and bytes. Null is what was left out. */
export interface KnownCost {
  compute: number
  reads: number | null
  writes: number | null
  /** Parts of its computing. */
  ready: readonly number[] | null
  /** How many times as fast as on one CPU it is on this number of CPUs. */
  speedUp: ((cpus: number) => number) | null
}

export function evaluateCost(
  what: string,
  cost: Cost<readonly unknown[]>,
  args: readonly unknown[],
): KnownCost {
  checkKeys(what, cost)
  const seconds = (value: number | string): number | null =>
    typeof value === 'number' ? parseDuration(value * 1000) : parseDuration(value)
  return {
    compute: amount(what, 'compute', cost.compute, args, seconds) ?? 0,
    reads: amount(what, 'reads', cost.reads, args, parseBytes),
    writes: amount(what, 'writes', cost.writes, args, parseBytes),
    ready: readyTimes(what, cost.ready, args),
    speedUp: cost.speedUp === undefined ? null : speedUpOf(what, cost.speedUp),
  }
}

const MOST_VALUES = 10_000_000
/** Milliseconds: thirty years. */
const LONGEST = 1e12
const KEYS = ['compute', 'reads', 'writes', 'returns', 'ready', 'speedUp']

function checkKeys(what: string, cost: unknown): void {
  if (typeof cost !== 'object' || cost === null || Array.isArray(cost)) {
    const hint = `Write for instance cost: { compute: 3, writes: '10MB' }.`
    throw new MillraceError(
      'MR_SIMULATION',
      `${what}: cost is ${JSON.stringify(cost) ?? typeof cost}, not an object`,
      { hint },
    )
  }
  for (const key of Object.keys(cost)) {
    if (KEYS.includes(key)) continue
    const close = nearest(key, KEYS)
    throw new MillraceError(
      'MR_SIMULATION',
      `${what}: cost has no '${key}'${close ? `; did you mean ${close}?` : ''}`,
      {
        hint: `It has ${KEYS.join(', ')}.`,
      },
    )
  }
}

function speedUpOf(what: string, given: unknown): (cpus: number) => number {
  const wrong = (text: string): MillraceError =>
    new MillraceError('MR_UNIT', `${what}: cost.speedUp ${text}`, {
      hint: 'Write speedUp: { 2: 1.9, 8: 6 }, or a function of the number of CPUs.',
    })
  const isFactor = (one: unknown): one is number => typeof one === 'number' && one > 0 && one < Infinity
  if (typeof given === 'function') {
    return cpus => {
      const found = ask(what, 'speedUp', given as (cpus: number) => number, [cpus])
      if (isFactor(found)) return found
      throw wrong(`is '${String(found)}' on ${cpus} CPUs`)
    }
  }
  if (typeof given !== 'object' || given === null) throw wrong(`is '${String(given)}'`)
  const points = Object.entries({ 1: 1, ...given }).map(([cpus, factor]) => ({
    cpus: Number(cpus),
    factor: factor as unknown,
  }))
  const bad = points.find(({ cpus, factor }) => !(cpus > 0) || !isFactor(factor))
  if (bad) throw wrong(`is '${String(bad.factor)}' on ${bad.cpus} CPUs`)
  return lineThrough(points.sort((a, b) => a.cpus - b.cpus) as { cpus: number; factor: number }[])
}

const lineThrough =
  (points: readonly { cpus: number; factor: number }[]) =>
  (cpus: number): number => {
    const next = points.findIndex(point => point.cpus >= cpus)
    const after = points.at(next)
    const before = next > 0 ? points[next - 1] : null
    if (!before || !after) return after?.factor ?? 1
    const part = (cpus - before.cpus) / (after.cpus - before.cpus)
    return before.factor + part * (after.factor - before.factor)
  }

/** A user's function may throw: the error then names the task. */
function ask<T>(what: string, name: string, given: (...args: never) => T, args: readonly unknown[]): T {
  try {
    return given(...(args as never))
  } catch (cause) {
    const why = messageOf(cause)
    throw new MillraceError('MR_SIMULATION', `${what}: cost.${name} threw: ${why}`, {
      hint: 'It is called with the arguments of the call, before anything has run.',
      cause,
    })
  }
}

function readyTimes(
  what: string,
  given: Cost<readonly unknown[]>['ready'],
  args: readonly unknown[],
): readonly number[] | null {
  if (given === undefined) return null
  const value: unknown = typeof given === 'function' ? ask(what, 'ready', given, args) : given
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST_VALUES) {
    return Array.from({ length: value }, (_, i) => (i + 1) / value)
  }
  const isPart = (one: unknown): boolean => typeof one === 'number' && one >= 0 && one <= 1
  if (Array.isArray(value) && value.every(isPart)) return value as number[]
  throw new MillraceError(
    'MR_UNIT',
    `${what}: cost.ready is '${String(value)}', which is neither a number of values nor parts of its computing`,
    { hint: 'Write ready: 10, or ready: [0.1, 0.5, 1].' },
  )
}

function amount(
  what: string,
  name: string,
  given: Amount<readonly unknown[]> | undefined,
  args: readonly unknown[],
  parse: (value: number | string) => number | null,
): number | null {
  if (given === undefined) return null
  const value = typeof given === 'function' ? ask(what, name, given, args) : given
  const number = typeof value === 'number' || typeof value === 'string' ? parse(value) : null
  if (number !== null && number <= (name === 'compute' ? LONGEST : Number.MAX_SAFE_INTEGER)) return number
  const expected =
    name === 'compute' ? 'seconds, or a duration such as 3min' : 'bytes, or a size such as 290MB'
  throw new MillraceError('MR_UNIT', `${what}: cost.${name} is '${String(value)}', which is not ${expected}`)
}
