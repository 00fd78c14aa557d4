import type { Outcome } from '../../core/events.ts'
import { finding } from '../statistics/finding.ts'
import { formatBytes, formatCount, formatDuration, formatPercent, plural } from '../format.ts'
import type { Paint } from './paint.ts'
import { cacheHitRate } from '../statistics/statistics-kind.ts'
import type { Statistics } from '../statistics/statistics.ts'
import { clean } from '../text.ts'

export interface SummaryOptions {
  /** Where the journal is. */
  readonly journal?: string | undefined
  /** Warnings were printed when they came. */
  readonly isTold?: boolean
}

/** How the run ended, in about 12 lines. Without an end event it says that the journal stops there. */
export function summaryLines(
  statistics: Statistics,
  paint: Paint,
  { journal, isTold = false }: SummaryOptions = {},
): string[] {
  const { run, total, outcome, elapsed } = statistics
  const lines: string[] = []
  const add = (label: string, text: string | null): void => {
    if (text !== null) lines.push(`  ${paint.dim(label.padEnd(12))} ${text}`)
  }
  const name = run === null ? '' : ` ${paint.strong(clean(run.run))}`
  const simulated = run?.simulated ? ' (simulated)' : ''
  lines.push(`${outcomeText(outcome, paint)}${name} after ${formatDuration(elapsed)}${simulated}`)
  if (statistics.endMessage !== null) add('', clean(statistics.endMessage))
  add('tasks', taskCounts(statistics))
  if (total.retried > 0) add('repeated', `${plural(total.retried, 'attempt')} failed and made again`)
  if (total.busyMs > 0) {
    const { idleShare } = statistics
    const used = idleShare === null ? '' : `, ${formatPercent(1 - idleShare)} used`
    const cpus = statistics.cpus > 0 ? ` (${plural(statistics.cpus, 'cpu')}${used})` : ''
    const mean = `${statistics.parallelism.toFixed(1)} tasks at once, on average while any ran`
    add('parallelism', mean + cpus)
  }
  add('nodes', statistics.nodes.text(elapsed))
  add('early', earlyText(statistics))
  const longest = statistics.longestKind
  const count =
    longest === null ? 0 : longest.done - longest.kept + longest.failed + longest.cancelled + longest.ignored
  if (longest !== null && count > 0) {
    const spent = `${formatDuration(longest.busyMs)} in ${plural(count, 'task')}`
    add('slowest', `${clean(longest.name)}: ${spent}, longest ${formatDuration(longest.longestMs)}`)
  }
  for (const verdict of statistics.devices.verdicts().slice(0, 2)) add('limit', verdict)
  add('moved', statistics.devices.moved())
  add('page cache', cacheText(statistics))
  add('finding', finding(statistics))
  const { warnings, warningTexts } = statistics
  if (isTold && warnings > 0) add('warnings', `${formatCount(warnings)}, above`)
  if (!isTold) {
    for (const text of warningTexts) add('warning', clean(text))
    if (warnings > warningTexts.size) add('warnings', `${formatCount(warnings)} in all`)
  }
  if (journal !== undefined) {
    add('journal', clean(journal))
    if (run !== null) add('details', `millrace show ${clean(run.run)}`)
  }
  return lines
}

/** What consumers did before the task that feeds them had ended would have come after it, on all cpus at best. */
function earlyText({ early, cpus }: Statistics): string | null {
  if (early.tasks === 0) return null
  const began = `${plural(early.tasks, 'task')} began before what feeds ${early.tasks === 1 ? 'it' : 'them'} ended`
  const saved = formatDuration(early.workMs / Math.max(1, cpus))
  return `${began}: ${formatDuration(early.workMs)} of work, which saved up to ${saved}`
}

/** How much of what was read was still in memory, over all and for the kinds that read most. */
function cacheText({ total, kinds }: Statistics): string | null {
  const rate = cacheHitRate(total)
  if (rate === null) return null
  const most = [...kinds.values()].filter(kind => cacheHitRate(kind) !== null)
  most.sort((a, b) => b.askedBytes - a.askedBytes || a.kind - b.kind)
  const each = most.slice(0, 3).map(kind => `${clean(kind.name)} ${formatPercent(cacheHitRate(kind) ?? 0)}`)
  const whole = `${formatPercent(rate)} of ${formatBytes(total.askedBytes)} read was there`
  return most.length > 1 ? `${whole} (${each.join(', ')}${most.length > 3 ? ', …' : ''})` : whole
}

export function taskCounts({ total, ended }: Statistics): string {
  const parts = [`${formatCount(total.done - total.kept)} ok`]
  const add = (count: number, word: string): void => {
    if (count > 0) parts.push(`${formatCount(count)} ${word}`)
  }
  add(total.upToDate, 'up to date')
  add(total.kept - total.upToDate, 'kept from before')
  add(total.failed, 'failed')
  add(total.ignored, 'failed and ignored')
  add(total.cancelled, 'cancelled')
  add(total.submitted - ended, 'not ended')
  return `${parts.join(', ')}, of ${formatCount(total.submitted)}`
}

function outcomeText(outcome: Outcome | null, paint: Paint): string {
  switch (outcome) {
    case 'ok':
      return paint.good('done')
    case 'failed':
      return paint.bad('failed')
    case 'interrupted':
      return paint.warn('interrupted')
    case null:
      return paint.warn('not ended')
  }
}
