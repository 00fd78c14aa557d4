import { STEPS } from '../../core/events.ts'
import { keptFailureBlocks } from '../../report/terminal/failure-block.ts'
import { formatBytes, formatCount, formatDuration, formatPercent } from '../../report/format.ts'
import { writeGraph } from '../../report/export/graph.ts'
import { writeParaver } from '../../report/export/paraver.ts'
import { writePicture } from '../../report/export/picture.ts'
import { readJournal } from '../../report/journal/reader.ts'
import type { Paint } from '../../report/terminal/paint.ts'
import { findRun, showRun } from '../../report/journal/runs.ts'
import type { RunInfo } from '../../report/journal/runs.ts'
import { cacheHitRate } from '../../report/statistics/statistics-kind.ts'
import type { KindStatistics } from '../../report/statistics/statistics-kind.ts'
import type { Statistics } from '../../report/statistics/statistics.ts'
import { summaryLines } from '../../report/terminal/summary.ts'
import { clean } from '../../report/text.ts'
import { writeTrace } from '../../report/export/trace.ts'
import { eventsOf, unreadText } from './events-of.ts'
import { paintFor, printJson, printLines, remark, tableLines, terminalWidth } from '../output.ts'
import type { Column } from '../output.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'
import { checkTargets } from '../targets.ts'

const FAILURES_IN_FULL = 10

/** `millrace show` */
export async function execute(given: Given): Promise<void> {
  const base = process.cwd()
  const name = given.operands[0] ?? 'last'
  checkTargets(given)
  if (given.flags.get('json')) {
    const run = await findRun(base, name)
    await printJson(eventsOf(run))
    return writeFiles(run, given)
  }
  const { run, statistics, unread } = await showRun(base, name)
  const paint = paintFor(process.stdout)
  const lines = summaryLines(statistics, paint)
  lines.push(`  ${paint.dim('journal'.padEnd(12))} ${clean(run.journal)}`, ...stateLines(run))
  const told = unreadText(run, unread)
  if (told !== null) lines.push(`  ${told}`)
  if (statistics.kinds.size > 0) lines.push('', ...kindLines(statistics, paint))
  if (statistics.total.stepped > 0) lines.push('', ...stepLines(statistics, paint))
  if (statistics.failureCount > 0) {
    lines.push('', ...keptFailureBlocks(statistics, FAILURES_IN_FULL, paint))
  }
  printLines(lines)
  await writeFiles(run, given)
}

/** What a journal without an end means. */
function stateLines({ outcome, pid }: RunInfo): string[] {
  if (outcome === 'running') return [`  It runs still, as process ${pid}.`]
  if (outcome === 'killed') return ['  Its process was killed before it could say how it ended.']
  if (outcome === 'unreadable') return ['  Its journal cannot be read.']
  return []
}

const COLUMNS: readonly Column[] = [
  { title: 'kind', canShrink: true },
  ...[
    'tasks',
    'ok',
    'kept',
    'failed',
    'ignored',
    'cancelled',
    'retried',
    'busy',
    'mean',
    'longest',
    'cpu',
    'peak',
    'read',
    'cached',
  ].map(title => ({
    title,
    align: 'right' as const,
  })),
]

const countsOf = (kind: KindStatistics): number[] => [
  kind.submitted,
  kind.done - kind.kept,
  ...(['kept', 'failed', 'ignored', 'cancelled', 'retried'] as const).map(count => kind[count]),
]

/** Columns that are zero for all are left out. */
export function kindLines(statistics: Statistics, paint: Paint): string[] {
  const kinds = [...statistics.kinds.values()].sort((a, b) => b.busyMs - a.busyMs || a.kind - b.kind)
  const rows = kinds.map(kind => [
    clean(kind.name),
    ...countsOf(kind).map(formatCount),
    formatDuration(kind.busyMs),
    meanText(kind),
    formatDuration(kind.longestMs),
    ...usageCells(kind),
  ])
  const isShown = COLUMNS.map((_, index) => index < 3 || rows.some(row => row[index] !== '0'))
  const pick = <T>(cells: readonly T[]): T[] => cells.filter((_, index) => isShown[index])
  return tableLines(pick(COLUMNS), rows.map(pick), paint, terminalWidth())
}

/** What each step of an attempt took, in the mean. */
export function stepLines(statistics: Statistics, paint: Paint): string[] {
  const columns: readonly Column[] = [
    { title: 'mean per step', canShrink: true },
    ...['attempts', ...STEPS].map(title => ({ title, align: 'right' as const })),
  ]
  const kinds = [...statistics.kinds.values()].filter(({ stepped }) => stepped > 0)
  const rows = kinds
    .sort((a, b) => b.busyMs - a.busyMs || a.kind - b.kind)
    .map(({ name, stepped, stepsMs }) => [
      clean(name),
      formatCount(stepped),
      ...STEPS.map(step => formatStep(stepsMs[step] / stepped)),
    ])
  return tableLines(columns, rows, paint, terminalWidth())
}

/** Steps may be much shorter than a millisecond. */
const formatStep = (milliseconds: number): string =>
  milliseconds === 0 ? '-' : milliseconds < 10 ? `${milliseconds.toFixed(3)}ms` : formatDuration(milliseconds)

/** Share of a CPU while running, largest memory, bytes read, and how many of them the page cache had. */
function usageCells(kind: KindStatistics): string[] {
  if (kind.measured === 0) return ['0', '0', '0', '0']
  const rate = cacheHitRate(kind)
  return [
    kind.measuredMs > 0 ? formatPercent(kind.cpuMs / kind.measuredMs) : '-',
    formatBytes(kind.peakBytes),
    formatBytes(kind.askedBytes),
    rate === null ? '-' : formatPercent(rate),
  ]
}

/** Of attempts: those that failed took time as well, and results that were kept took none. */
function meanText({ busyMs, done, kept, failed, ignored, retried }: KindStatistics): string {
  return done > kept ? formatDuration(busyMs / (done - kept + failed + ignored + retried)) : '-'
}

/** What is asked for by --trace, --graph, --picture and --paraver. */
export async function writeFiles({ journal }: Pick<RunInfo, 'journal'>, given: Given): Promise<void> {
  const trace = valueOf(given, 'trace')
  const graph = valueOf(given, 'graph')
  const picture = valueOf(given, 'picture')
  const paraver = valueOf(given, 'paraver')
  if (trace !== undefined) {
    await writeTrace(readJournal(journal), trace)
    remark(`trace written to ${trace} (open it in ui.perfetto.dev)`)
  }
  if (graph !== undefined) {
    await writeGraph(readJournal(journal), graph)
    remark(`graph written to ${graph} (draw it with: dot -Tsvg ${graph} -o graph.svg)`)
  }
  if (picture !== undefined) {
    await writePicture(readJournal(journal), picture)
    remark(`picture written to ${picture}`)
  }
  if (paraver !== undefined) {
    await writeParaver(() => readJournal(journal), paraver)
    remark(`trace for Paraver written to ${paraver}, with its .pcf and .row`)
  }
  const otlp = valueOf(given, 'otlp')
  if (otlp !== undefined) {
    const { sendOtlp } = await import('../../report/export/otlp.ts')
    const { spans } = await sendOtlp(readJournal(journal), otlp)
    remark(`${spans} spans sent to ${otlp}`)
  }
}
