import { formatDuration, plural } from '../format.ts'
import { withLabel } from '../label.ts'
import type { Paint } from './paint.ts'
import type { Attempt, KindStatistics } from '../statistics/statistics-kind.ts'
import type { Statistics } from '../statistics/statistics.ts'
import { clean, elide, padEnd, width } from '../text.ts'

export interface LiveView {
  statistics: Statistics
  /** Time of the run now. */
  elapsed: number
  columns: number
  rows: number
  paint: Paint
}

const MIN_NAME = 6
const MAX_NAME = 28
const SLOWEST = 3
const MOST_STREAMS = 10
/** A task is worth a line of its own when it has run this long; shorter ones would only flicker. */
const SLOW_MS = 1000

/**
 * A line for the run, one for each kind that has something to do, for files that stream, and for the tasks that run longest. Never
 * taller than the screen and never wider: names are cut in the middle, and fields that do not fit are left
 * out whole, last first, so that no number is ever cut.
 */
export function liveBlock(view: LiveView): string[] {
  const { statistics, paint } = view
  const columns = Math.max(1, view.columns - 1)
  let room = Math.max(1, view.rows - 1)
  const lines = [runLine(view, columns)]
  room--
  const slow = statistics.slowest(SLOWEST).filter(({ startedAt }) => view.elapsed - startedAt >= SLOW_MS)
  const slowest = slow.slice(0, room >= 6 ? SLOWEST : room >= 3 ? 1 : 0)
  const busy = statistics.devices.busy().slice(0, Math.max(0, Math.floor((room - slowest.length) / 2)))
  const left = room - slowest.length - busy.length
  const streams = statistics.streams.busiest(
    Math.max(0, Math.min(MOST_STREAMS, Math.floor(left / 2))),
    view.elapsed,
  )
  lines.push(...kindLines(statistics, left - streams.length, columns, paint))
  for (const { name, fields } of streams) lines.push(fit('  ~ ', name, fields, columns, paint))
  for (const { name, fields } of busy) lines.push(fit('  = ', name, fields, columns, paint))
  for (const attempt of slowest) lines.push(slowLine(view, attempt, columns))
  const { standstill } = statistics
  if (standstill !== null && lines.length < view.rows - 1)
    lines.push(elide(`  ${clean(standstill)}`, columns, paint.ellipsis))
  return lines.filter(line => line !== '')
}

function runLine({ statistics, elapsed, paint }: LiveView, columns: number): string {
  const { total, run } = statistics
  const fields = [
    `[${statistics.ended}/${total.submitted}]`,
    formatDuration(elapsed),
    ...activity(total, paint),
  ]
  const eta = statistics.outcome === null ? statistics.eta(elapsed) : null
  if (eta !== null && statistics.ended < total.submitted) fields.splice(2, 0, `ETA ${formatDuration(eta)}`)
  if (run?.simulated) fields.push('simulated')
  return fit('', clean(run?.run ?? 'millrace'), fields, columns, paint, paint.strong)
}

function kindLines(statistics: Statistics, room: number, columns: number, paint: Paint): string[] {
  const all = [...statistics.kinds.values()]
  const active = all.filter(kind => kind.running + kind.ready + kind.blocked > 0)
  const isAll = active.length <= room && (active.length === all.length || active.length < room)
  const count = Math.max(0, isAll ? active.length : Math.min(active.length, room - 1))
  const busiest = new Set(active.toSorted((a, b) => b.running - a.running).slice(0, count))
  const shown = active.filter(kind => busiest.has(kind))
  const heads = shown.map(kind => `[${endedOf(kind)}/${kind.submitted}]`)
  const headWidth = Math.max(0, ...heads.map(width))
  const nameWidth = Math.min(MAX_NAME, Math.max(0, ...shown.map(kind => width(clean(kind.name)))))
  const lines = shown.map((kind, index) => {
    const name = padEnd(elide(clean(kind.name), nameWidth, paint.ellipsis), nameWidth)
    const ran = kind.done - kind.kept
    const each = ran > 0 ? [`${formatDuration(kind.busyMs / ran)} each`] : []
    const fields = [...activity(kind, paint), ...each]
    return fit(`  ${heads[index]!.padStart(headWidth)} `, name, fields, columns, paint)
  })
  const hidden = all.length - shown.length
  if (hidden > 0 && room > shown.length) lines.push(hiddenLine(active, busiest, hidden, columns, paint))
  return lines
}

function hiddenLine(
  active: KindStatistics[],
  shown: Set<KindStatistics>,
  hidden: number,
  columns: number,
  paint: Paint,
): string {
  const running = active.reduce((sum, kind) => sum + (shown.has(kind) ? 0 : kind.running), 0)
  const text = `  ${plural(hidden, 'more kind')}, ${running === 0 ? 'none' : running} running`
  return width(text) <= columns ? paint.dim(text) : ''
}

function slowLine({ statistics, elapsed, paint }: LiveView, attempt: Attempt, columns: number): string {
  const nodes = statistics.nodes.all
  const place = nodes.length > 1 ? [`on ${clean(nodes[attempt.node]?.name ?? String(attempt.node))}`] : []
  const time = formatDuration(elapsed - attempt.startedAt)
  const tries = attempt.attempt > 1 ? [`attempt ${attempt.attempt}`] : []
  const name = clean(attempt.kind.name)
  const label = elide(clean(statistics.labelOf(attempt.task)), MAX_NAME, paint.ellipsis)
  const which = withLabel(`#${attempt.task}`, label)
  return fit(`  ${paint.pointer} `, name, [which, time, ...tries, ...place], columns, paint)
}

function activity(counts: KindStatistics, paint: Paint): string[] {
  const fields: string[] = []
  if (counts.kept > 0) fields.push(paint.dim(`${counts.kept} kept`))
  if (counts.running > 0) fields.push(`${counts.running} running`)
  if (counts.failed > 0) fields.push(paint.bad(`${counts.failed} failed`))
  if (counts.cancelled > 0) fields.push(paint.warn(`${counts.cancelled} cancelled`))
  if (counts.ignored > 0) fields.push(paint.warn(`${counts.ignored} ignored`))
  if (counts.ready > 0) fields.push(`${counts.ready} ready`)
  if (counts.waiting > 0) fields.push(`${counts.waiting} waiting`)
  if (counts.blocked > 0) fields.push(`${counts.blocked} blocked`)
  return fields
}

function endedOf(kind: KindStatistics): number {
  return kind.done + kind.failed + kind.cancelled + kind.ignored
}

function fit(
  before: string,
  name: string,
  fields: string[],
  columns: number,
  paint: Paint,
  decorate: (name: string) => string = text => text,
): string {
  for (let count = fields.length; count >= 0; count--) {
    const after = joinFields(fields.slice(0, count))
    const room = columns - width(before) - width(after)
    if (room < Math.min(MIN_NAME, width(name))) continue
    return before + decorate(elide(name, room, paint.ellipsis)) + after
  }
  return ''
}

/** `#12` belongs to the name before it, `[3/9]` stands apart; the rest is a list. */
function joinFields(fields: string[]): string {
  let text = ''
  let previous = ''
  for (const field of fields) {
    const isFirst = previous === '' || previous.startsWith('[') || previous.startsWith('#')
    text += (field.startsWith('#') ? '' : isFirst ? ' ' : ', ') + field
    previous = field
  }
  return text
}
