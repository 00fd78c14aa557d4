import { formatBytes, formatDuration, formatPercent, plural } from '../../report/format.ts'
import type { Paint } from '../../report/terminal/paint.ts'
import { busiestOf } from '../../simulate/outcome.ts'
import type { SimulatedOutcome } from '../../simulate/outcome.ts'
import { tableLines } from '../output.ts'

/** One simulation of several. */
export interface Result {
  variant: string
  outcome: SimulatedOutcome
}

const right = (...titles: string[]) => titles.map(title => ({ title, align: 'right' as const }))

/** Devices of one simulation, and what was busiest. */
export function outcomeLines(outcome: SimulatedOutcome, paint: Paint): string[] {
  const { devices, cacheHits, cacheMisses, between, nodesLost, remade, lostTime } = outcome
  const used = devices.filter(({ read, written }) => read + written > 0)
  const rows = used.map(({ name, read, written, reading, writing }) => [
    name,
    formatBytes(read),
    formatBytes(written),
    formatDuration(reading * 1000),
    formatDuration(writing * 1000),
  ])
  if (cacheHits > 0) rows.push(['page caches', formatBytes(cacheHits), '-', '-', '-'])
  const columns = [{ title: 'storage' }, ...right('read', 'written', 'reading', 'writing')]
  const lines = rows.length === 0 ? [] : ['', ...tableLines(columns, rows, paint)]
  const share = cacheHits / Math.max(1, cacheHits + cacheMisses)
  if (cacheHits > 0) lines.push(`${formatPercent(share)} of the bytes of files came from page caches`)
  if (between > 0) lines.push(`${formatBytes(between)} went from node to node`)
  if (nodesLost > 0) {
    const cut = formatDuration(lostTime * 1000)
    lines.push(
      `${plural(nodesLost, 'node')} gone: ${cut} of CPU time cut off, ${plural(remade, 'task')} run again for what was lost`,
    )
  }
  return outcome.makespan > 0 ? [...lines, '', ...busiestLines(outcome)] : lines
}

/** Whatever is at work for less than this share of the time does not say by itself how long all takes. */
const MOST = 0.5

/** What was busiest, and what to try: a sentence each. */
function busiestLines(outcome: SimulatedOutcome): string[] {
  const { computing, cpuUse } = outcome
  const { device, way, share, use } = busiestOf(outcome)
  const cpus = `CPUs computed for ${formatPercent(computing)} of their time`
  if (share < MOST) {
    const idle =
      device === null ? '' : `, and the busiest device, ${device}, worked for ${formatPercent(share)} of it`
    return [
      `Nothing is busy for most of the time: ${cpus}${idle}.`,
      'Tasks wait for each other, or too few run at one time; --picture shows when.',
    ]
  }
  if (device === null)
    return [`Busiest: ${cpus}.`, 'Try faster ones, --sweep speed=1,2, or more of them, --sweep nodes=…']
  const worked = way === 'read' ? 'was read from' : 'was written to'
  const bandwidth = use === null ? '' : `, at ${formatPercent(Math.min(1, use))} of its bandwidth`
  const held = cpuUse - computing > 0.01 ? ` and were held for ${formatPercent(cpuUse)}` : ''
  return [
    `Busiest: ${device} ${worked} for ${formatPercent(share)} of the time${bandwidth}; ${cpus}${held}.`,
    use !== null && use < MOST
      ? `Too few, or too many, use ${device} at one time for it to give what it has.`
      : `Try a faster one, --sweep ${device}.bandwidth=…, or a layer above it in the platform.`,
  ]
}

/** Several simulations, one in a line: how long each took, and what was busiest. */
export function comparisonLines(results: readonly Result[], paint: Paint): string[] {
  const first = results[0]?.outcome.makespan ?? 0
  const best = Math.min(...results.map(({ outcome }) => outcome.makespan))
  const hasCache = results.some(({ outcome }) => outcome.cacheHits > 0)
  const hasLinks = results.some(({ outcome }) => outcome.between > 0)
  // With flushing, data are still on their way when the last task has ended.
  const goesOn = results.some(({ outcome: { makespan, tasksEnded } }) => makespan > tasksEnded * 1.001)
  const rows = results.map(({ variant, outcome }) => {
    const { makespan, tasksEnded, cpuUse, computing, cacheHits, cacheMisses, between } = outcome
    const { device, share } = busiestOf(outcome)
    return [
      variant,
      formatDuration(makespan * 1000),
      ...(goesOn ? [formatDuration(tasksEnded * 1000)] : []),
      first > 0 ? formatPercent((first - makespan) / first) : '-',
      formatPercent(cpuUse),
      formatPercent(computing),
      ...(hasCache ? [formatPercent(cacheHits / Math.max(1, cacheHits + cacheMisses))] : []),
      ...(hasLinks ? [formatBytes(between)] : []),
      `${device ?? 'CPUs'} ${formatPercent(share)}`,
      makespan === best ? 'best' : '',
    ]
  })
  const columns = [
    { title: 'simulated' },
    ...right('time', ...(goesOn ? ['tasks ended'] : []), 'gain', 'cpus held', 'computing'),
    ...right(...(hasCache ? ['from cache'] : []), ...(hasLinks ? ['between nodes'] : []), 'busiest'),
    { title: '' },
  ]
  return tableLines(columns, rows, paint)
}
