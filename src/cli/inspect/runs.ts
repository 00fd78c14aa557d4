import { relative } from 'node:path'
import { formatDuration } from '../../report/format.ts'
import type { Paint } from '../../report/terminal/paint.ts'
import { listRuns } from '../../report/journal/runs.ts'
import type { RunInfo } from '../../report/journal/runs.ts'
import { clean } from '../../report/text.ts'
import { paintFor, printJson, printLines, remark, tableLines, terminalWidth } from '../output.ts'
import type { Given } from '../spec.ts'

/** `millrace runs` */
export async function execute({ flags }: Given): Promise<void> {
  const base = process.cwd()
  const runs = await listRuns(base)
  if (flags.get('json')) return printJson(runs)
  if (runs.length === 0) {
    return remark(`There are no runs in ${base} yet. One is made by: millrace run app.ts`)
  }
  const paint = paintFor(process.stdout)
  const rows = runs.map(run => [
    run.name,
    outcomeText(run, paint),
    localTime(run.startedAt),
    formatDuration(run.elapsed),
    programText(base, run),
  ])
  const columns = [
    { title: 'run' },
    { title: 'outcome' },
    { title: 'started' },
    { title: 'took', align: 'right' as const },
    { title: 'program', canShrink: true },
  ]
  printLines(tableLines(columns, rows, paint, terminalWidth()))
}

export function outcomeText({ outcome }: RunInfo, paint: Paint): string {
  switch (outcome) {
    case 'ok':
      return paint.good(outcome)
    case 'failed':
    case 'unreadable':
      return paint.bad(outcome)
    case 'interrupted':
    case 'killed':
      return paint.warn(outcome)
    case 'running':
      return outcome
  }
}

function programText(base: string, { program, simulated }: RunInfo): string {
  const path = relative(base, program)
  const shown = path === '' || path.startsWith('..') ? program : path
  return clean(shown) + (simulated ? ' (simulated)' : '')
}

/** `2026-11-15 06:52:24` where we are. */
function localTime(iso: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return '?'
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 19).replace('T', ' ')
}
