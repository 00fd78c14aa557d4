import type { RunModel } from '../dashboard/state/run-model.ts'
import type { Durations } from '../dashboard/state/kinds.ts'
import type { Comparison, KindComparison, KindTimes, RunTotals } from './comparison.ts'

/** How sure a change must be, in standard errors: 2.58 is 99 in 100. */
const SURE = 2.58
/** Smaller changes are not worth a word, however sure they are. */
const SMALL = 0.03
/** Fewer tasks say nothing about their spread. */
const LEAST_TASKS = 3

/**
 * Compares kinds by the mean running time of their tasks that ended well. A change counts when it is larger than what chance
 * explains: the difference of the means lies outside of 2.58 standard errors (Welch), and is at least 3%.
 */
export function compareRuns(before: RunModel, after: RunModel): Comparison {
  const kindsOf = (model: RunModel): Map<string, KindTimes> => {
    const found = new Map<string, KindTimes>()
    for (const [kind, durations] of model.durations) {
      if (durations.count === 0) continue
      const busyMs = model.statistics.kinds.get(kind)?.busyMs ?? 0
      found.set(model.kindName(kind), timesOf(durations, busyMs))
    }
    return found
  }
  const a = kindsOf(before)
  const b = kindsOf(after)
  const names = [...new Set([...a.keys(), ...b.keys()])]
  const kinds = names.map(name => compareKind(name, a.get(name) ?? null, b.get(name) ?? null))
  kinds.sort((x, y) => Math.abs(y.costMs) - Math.abs(x.costMs) || x.name.localeCompare(y.name))
  const totals = [totalsOf(before), totalsOf(after)] as const
  return { before: totals[0], after: totals[1], kinds, doubts: doubtsOf(...totals) }
}

const timesOf = (durations: Durations, busyMs: number): KindTimes => ({
  count: durations.count,
  mean: durations.mean,
  deviation: durations.deviation,
  median: durations.quantile(0.5),
  p95: durations.quantile(0.95),
  busyMs,
})

export function compareKind(name: string, before: KindTimes | null, after: KindTimes | null): KindComparison {
  if (!before || !after) {
    const verdict = before ? 'only before' : 'only after'
    return {
      name,
      verdict,
      before,
      after,
      change: null,
      costMs: (after?.busyMs ?? 0) - (before?.busyMs ?? 0),
    }
  }
  const difference = after.mean - before.mean
  const costMs = difference * after.count
  if (before.count < LEAST_TASKS || after.count < LEAST_TASKS || before.mean <= 0)
    return { name, verdict: 'too few', before, after, change: null, costMs }
  const error = Math.sqrt(before.deviation ** 2 / before.count + after.deviation ** 2 / after.count)
  const share = difference / before.mean
  const reach = (SURE * error) / before.mean
  const isSure = Math.abs(share) > reach && Math.abs(share) >= SMALL
  const verdict = !isSure ? 'same' : share > 0 ? 'slower' : 'faster'
  return {
    name,
    verdict,
    before,
    after,
    change: { share, least: share - reach, most: share + reach },
    costMs,
  }
}

function totalsOf(model: RunModel): RunTotals {
  const { statistics, run } = model
  return {
    name: run?.run ?? '',
    program: run?.program ?? '',
    elapsed: statistics.elapsed,
    tasks: statistics.total.submitted,
    failed: statistics.total.failed,
    cpus: statistics.cpus,
    cpuUsed: statistics.idleShare === null ? null : 1 - statistics.idleShare,
    busyMs: statistics.total.busyMs,
    bytes: statistics.bytesCommitted,
    policy: run?.policy ?? '',
    version: run?.version ?? '',
  }
}

function doubtsOf(before: RunTotals, after: RunTotals): string[] {
  const doubts: string[] = []
  const differ = (what: string, a: string | number, b: string | number): void => {
    if (a !== b) doubts.push(`${what}: ${a} before, ${b} after`)
  }
  differ('program', before.program, after.program)
  differ('CPUs', before.cpus, after.cpus)
  differ('tasks', before.tasks, after.tasks)
  differ('policy', before.policy, after.policy)
  differ('version of Millrace', before.version, after.version)
  if (before.failed + after.failed > 0) differ('failed tasks', before.failed, after.failed)
  return doubts
}
