import type { Row } from './harness.ts'
import { median, rangeOfMedian, show } from './numbers.ts'

/**
 * What a system must reach: a multiple of another system, or a value by itself. A multiple is the median of those of the
 * single rounds, because what the machine does meanwhile meets both systems of a round alike. With `orTie` it is missed only
 * when the rounds leave no doubt: the range in which the median lies ends below it.
 */
export type Goal = { of: string } & (
  | { against: string; atLeast: number; orTie?: true }
  | { against: string; atMost: number; orTie?: true }
  | { below: number; unit: string }
  | { upTo: number; unit: string }
  | { upFrom: number; unit: string }
)

export interface Verdict {
  /** Null when it cannot be said, because a system is missing. */
  met: boolean | null
  measured: number | null
  /** Where the median lies for certain, when rounds could be paired. */
  range?: readonly [number, number] | null
}

export function describeGoal(goal: Goal): string {
  if ('below' in goal) return `${goal.of}: under ${goal.below} ${goal.unit}`
  if ('upTo' in goal) return `${goal.of}: at most ${goal.upTo} ${goal.unit}`
  if ('upFrom' in goal) return `${goal.of}: at least ${goal.upFrom} ${goal.unit}`
  return 'atLeast' in goal
    ? `${goal.of}: at least ${goal.atLeast} of ${goal.against}${goal.orTie ? ', or a tie' : ''}`
    : `${goal.of}: at most ${goal.atMost} of ${goal.against}${goal.orTie ? ', or a tie' : ''}`
}

export function judge(goal: Goal, rows: readonly Row[]): Verdict {
  const rowOf = (system: string): Row | undefined => rows.find(row => row.system === system)
  const own = rowOf(goal.of)
  const multiples = 'against' in goal ? multiplesOf(own, rowOf(goal.against)) : []
  const measured = ('against' in goal ? median(multiples) : own?.value) ?? NaN
  if (Number.isNaN(measured)) return { met: null, measured: null }
  if ('below' in goal) return { met: measured < goal.below, measured }
  if ('upTo' in goal) return { met: measured <= goal.upTo, measured }
  if ('upFrom' in goal) return { met: measured >= goal.upFrom, measured }
  const range = goal.orTie ? rangeOfMedian(multiples) : null
  if ('atMost' in goal) return { met: (range ? range[0] : measured) <= goal.atMost, measured, range }
  const reached = goal.orTie && range ? range[1] : measured
  return { met: reached >= goal.atLeast, measured, range }
}

/**
 * Rounds in which only one of them took part tell nothing, unless the other took part in hardly any. Where a round has several
 * samples, they are no pairs.
 */
function multiplesOf(own: Row | undefined, other: Row | undefined): number[] {
  if (!own || !other || own.missing !== null || other.missing !== null) return []
  if (!own.isByRound || !other.isByRound) return [own.value / other.value]
  const rounds = Math.min(own.samples.length, other.samples.length)
  const isRare = rounds < 3 && own.samples.length !== other.samples.length
  if (isRare) return [own.value / other.value]
  return own.samples.slice(0, rounds).map((value, round) => value / (other.samples[round] as number))
}

export function describeVerdict({ met, measured, range }: Verdict): string {
  if (met === null || measured === null) return 'not measured'
  const between = range ? `, between ${show(range[0])} and ${show(range[1])}` : ''
  return `${met ? 'met' : 'NOT met'} (${show(measured)}${between})`
}
