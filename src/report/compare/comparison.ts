/** What became of the tasks of a kind from one run to another. */
export type Verdict = 'slower' | 'faster' | 'same' | 'too few' | 'only before' | 'only after'

export interface KindComparison {
  name: string
  verdict: Verdict
  before: KindTimes | null
  after: KindTimes | null
  /** Share by which the mean changed, and the least and the most that noise leaves possible; null without a basis. */
  change: { share: number; least: number; most: number } | null
  /** How much running time that makes in all, in milliseconds. */
  costMs: number
}

export interface KindTimes {
  count: number
  mean: number
  deviation: number
  median: number
  p95: number
  busyMs: number
}

export interface RunTotals {
  name: string
  program: string
  elapsed: number
  tasks: number
  failed: number
  cpus: number
  cpuUsed: number | null
  busyMs: number
  bytes: number
  policy: string
  version: string
}

export interface Comparison {
  before: RunTotals
  after: RunTotals
  kinds: KindComparison[]
  /** Why the two may not be comparable at all. */
  doubts: string[]
}
