import type { Row } from './harness.ts'
import { show } from './numbers.ts'

/** What a system must reach: a multiple of another system, or a value by itself. */
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
  const valueOf = (system: string): number => rows.find(row => row.system === system)?.value ?? NaN
  const value = valueOf(goal.of)
  const measured = 'against' in goal ? value / valueOf(goal.against) : value
  if (Number.isNaN(measured)) return { met: null, measured: null }
  if ('below' in goal) return { met: measured < goal.below, measured }
  if ('upTo' in goal) return { met: measured <= goal.upTo, measured }
  if ('upFrom' in goal) return { met: measured >= goal.upFrom, measured }
  return { met: 'atLeast' in goal ? measured >= goal.atLeast : measured <= goal.atMost, measured }
}

export function describeVerdict({ met, measured }: Verdict): string {
  if (met === null || measured === null) return 'not measured'
  return `${met ? 'met' : 'NOT met'} (${show(measured)})`
}
