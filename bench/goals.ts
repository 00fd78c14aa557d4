import type { Row } from './harness.ts'
import { median, show } from './numbers.ts'

/**
 * What a system must reach: a multiple of another system, or a value by itself. A multiple is the median of those of the
 * single rounds, because what the machine does meanwhile meets both systems of a round alike.
 */
export type Goal = { of: string } & (
  | { against: string; atLeast: number }
  | { against: string; atMost: number }
  | { below: number; unit: string }
  | { upTo: number; unit: string }
  | { upFrom: number; unit: string }
)

export interface Verdict {
  /** Null when it cannot be said, because a system is missing. */
  met: boolean | null
  measured: number | null
}

export function describeGoal(goal: Goal): string {
  if ('below' in goal) return `${goal.of}: under ${goal.below} ${goal.unit}`
  if ('upTo' in goal) return `${goal.of}: at most ${goal.upTo} ${goal.unit}`
  if ('upFrom' in goal) return `${goal.of}: at least ${goal.upFrom} ${goal.unit}`
  return 'atLeast' in goal
    ? `${goal.of}: at least ${goal.atLeast} of ${goal.against}`
    : `${goal.of}: at most ${goal.atMost} of ${goal.against}`
}

export function judge(goal: Goal, rows: readonly Row[]): Verdict {
  const rowOf = (system: string): Row | undefined => rows.find(row => row.system === system)
  const own = rowOf(goal.of)
  const measured = ('against' in goal ? multipleOf(own, rowOf(goal.against)) : own?.value) ?? NaN
  if (Number.isNaN(measured)) return { met: null, measured: null }
  if ('below' in goal) return { met: measured < goal.below, measured }
  if ('upTo' in goal) return { met: measured <= goal.upTo, measured }
  if ('upFrom' in goal) return { met: measured >= goal.upFrom, measured }
  return { met: 'atLeast' in goal ? measured >= goal.atLeast : measured <= goal.atMost, measured }
}

/** Rounds in which only one of them took part tell nothing; where a round has several samples, they are no pairs. */
function multipleOf(own: Row | undefined, other: Row | undefined): number {
  if (!own || !other || own.missing !== null || other.missing !== null) return NaN
  if (!own.isByRound || !other.isByRound) return own.value / other.value
  const rounds = Math.min(own.samples.length, other.samples.length)
  return median(own.samples.slice(0, rounds).map((value, round) => value / (other.samples[round] as number)))
}

export function describeVerdict({ met, measured }: Verdict): string {
  if (met === null || measured === null) return 'not measured'
  return `${met ? 'met' : 'NOT met'} (${show(measured)})`
}
