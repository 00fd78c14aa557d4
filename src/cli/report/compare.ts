import { resolve } from 'node:path'
import { changeText, headline, verdictText } from '../../report/compare/compare-lines.ts'
import { compareRuns } from '../../report/compare/compare.ts'
import type { Comparison } from '../../report/compare/comparison.ts'
import { LiveRun } from '../../report/dashboard/live-run.ts'
import { writeComparison } from '../../report/dashboard/report-file.ts'
import type { RunModel } from '../../report/dashboard/state/run-model.ts'
import { formatCount, formatDuration } from '../../report/format.ts'
import { findRun } from '../../report/journal/runs.ts'
import type { Paint } from '../../report/terminal/paint.ts'
import { paintFor, printJson, printLines, remark, tableLines, terminalWidth } from '../output.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'
import { checkTarget } from '../targets.ts'

/** `millrace compare`: kind by kind, with noise considered. */
export async function execute(given: Given): Promise<void> {
  const [first = '', second = ''] = given.operands
  const output = valueOf(given, 'output')
  if (output !== undefined) checkTarget('--output', output)
  const comparison = compareRuns(await modelOf(first), await modelOf(second))
  if (given.flags.get('json')) await printJson([comparison])
  else printLines(comparisonLines(comparison, paintFor(process.stdout)))
  if (output === undefined) return
  await writeComparison({ comparison }, resolve(output))
  remark(`  page         ${resolve(output)}`)
}

async function modelOf(name: string): Promise<RunModel> {
  const run = new LiveRun((await findRun(process.cwd(), name)).journal)
  await run.read()
  await run.close()
  return run.model
}

export function comparisonLines(comparison: Comparison, paint: Paint): string[] {
  const { kinds, doubts } = comparison
  const rows = kinds.map(kind => {
    const { name, before, after, change, verdict } = kind
    const told = verdictText(kind)
    return [
      name,
      `${formatCount(before?.count ?? 0)} / ${formatCount(after?.count ?? 0)}`,
      before ? formatDuration(before.mean) : '',
      after ? formatDuration(after.mean) : '',
      change ? changeText(change.share) : '',
      verdict === 'slower' ? paint.bad(told) : verdict === 'faster' ? paint.good(told) : told,
    ]
  })
  const columns = [
    { title: 'kind', canShrink: true },
    { title: 'tasks', align: 'right' as const },
    { title: 'mean before', align: 'right' as const },
    { title: 'after', align: 'right' as const },
    { title: 'change', align: 'right' as const },
    { title: 'verdict' },
  ]
  return [
    headline(comparison),
    ...doubts.map(doubt => `  ${paint.warn('differs')} ${doubt}`),
    '',
    ...tableLines(columns, rows, paint, terminalWidth()),
  ]
}
