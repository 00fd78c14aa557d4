import { readOptions } from './options.ts'
import { choose, describeSpread, median } from './numbers.ts'
import { describeGoal, judge } from './goals.ts'
import type { Goal } from './goals.ts'
import { printCase } from './table.ts'

/** One system that does the work of a case. */
export interface Arm {
  /** Names that begin with `millrace` are ours; the first of them is what others are compared with. */
  system: string
  /** Why it cannot be measured here, such as a peer that is not installed; undefined when it can. */
  missing?: string | undefined
  /** Does the work once, in a process of its own, and gives the value, or values of several repetitions. */
  run(): Promise<number | number[]>
  /** Slow peers need not take part in each round. */
  rounds?: number
}

export interface Case {
  name: string
  unit: string
  better: 'higher' | 'lower'
  /** The figure of a system: throughput by its best round, latencies by the median. */
  take: 'best' | 'median'
  rounds: number
  /** What is measured, in a sentence for people. */
  about: string
  arms: Arm[]
  goals?: Goal[]
}

export interface Row {
  system: string
  missing: string | null
  value: number
  median: number
  spread: string
  ratio: number
  samples: number[]
  /** Each round gave one sample, so that those of two systems can be paired. */
  isByRound: boolean
}

/**
 * Runs cases and prints a table, or with --json an object per line. Arms take turns within each round, so
 * that whatever else the machine does meets all of them: only ratios within one run mean something.
 */
export async function bench(name: string, cases: readonly Case[]): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  const chosen = cases.filter(
    one => options.filters.length === 0 || options.filters.some(filter => one.name.includes(filter)),
  )
  if (chosen.length === 0) {
    console.error(`no case of ${name} matches ${options.filters.join(', ')}`)
    console.error(`cases: ${cases.map(one => one.name).join(', ')}`)
    process.exitCode = 2
    return
  }
  let missed = 0
  for (const one of chosen) {
    const rows = await measure(one, options.rounds ?? one.rounds)
    const verdicts = (one.goals ?? []).map(goal => ({ text: describeGoal(goal), ...judge(goal, rows) }))
    missed += verdicts.filter(verdict => verdict.met === false).length
    if (!options.json) {
      printCase(one, rows, verdicts)
      continue
    }
    for (const row of rows) print({ bench: name, case: one.name, ...fields(row, one) })
    for (const { text, met, measured, range } of verdicts) {
      print({ bench: name, case: one.name, goal: text, met, measured, ...(range ? { range } : {}) })
    }
  }
  if (options.strict && missed > 0) process.exitCode = 1
}

const print = (line: object): void => console.log(JSON.stringify(line))

function fields(row: Row, { unit }: Case): object {
  if (row.missing !== null) return { system: row.system, missing: row.missing }
  const { system, value, ratio, samples } = row
  return { system, value, unit, ratio, median: row.median, samples }
}

async function measure(one: Case, rounds: number): Promise<Row[]> {
  const { arms, better } = one
  const missing = arms.map(arm => arm.missing ?? null)
  const samples = arms.map((): number[] => [])
  for (let round = 0; round < rounds; round++) {
    // There and back, so that a machine that becomes slower or faster meanwhile favours no system.
    const order = [...arms.entries()]
    for (const [i, arm] of round % 2 === 0 ? order : order.reverse()) {
      if (missing[i] !== null || round >= (arm.rounds ?? rounds)) continue
      try {
        samples[i]?.push(...[await arm.run()].flat())
      } catch (error) {
        // One system that breaks must not hide what the others do.
        missing[i] = `failed: ${(error as Error).message.split('\n')[0]}`
      }
    }
  }
  const rows = arms.map((arm, i): Row => {
    const values = samples[i] as number[]
    const value = missing[i] === null ? choose(values, one.take, better) : NaN
    const spread = describeSpread(values)
    return {
      system: arm.system,
      missing: missing[i] ?? null,
      value,
      median: median(values),
      spread,
      ratio: NaN,
      samples: values,
      isByRound: one.take === 'median' && values.length === Math.min(rounds, arm.rounds ?? rounds),
    }
  })
  const ours = rows.find(row => row.system.startsWith('millrace') && row.missing === null)
  for (const row of rows) {
    if (!ours || row.missing !== null) continue
    row.ratio = better === 'higher' ? ours.value / row.value : row.value / ours.value
  }
  return rows
}
