import { formatDuration, formatPercent, plural } from './format.ts'
import type { Statistics } from './statistics.ts'
import { clean } from './text.ts'

/** Below this a remark would be noise. */
const MANY_TASKS = 1000

/**
 * The one thing about this run that is most worth knowing, in a sentence, or null when nothing stands out.
 * The order is by what a person can gain: lost work, idle lanes, overhead, and only then where time went.
 */
export function finding(statistics: Statistics): string | null {
  const { total, lostMs, starvedMs, idleShare } = statistics
  if (total.busyMs === 0) return null
  const lost = lostMs / total.busyMs
  if (lost > 0.1) {
    return `${formatPercent(lost)} of the running time was lost in attempts that did not succeed`
  }
  if (idleShare !== null && idleShare > 0.25) {
    const idle = `threads were idle ${formatPercent(idleShare)} of the time`
    const idleMs = statistics.cpus * statistics.elapsed - statistics.cpuBusyMs
    const blamed = statistics.blamedKind
    if (blamed !== null && starvedMs > idleMs / 2)
      return `${idle}: tasks waited for \`${clean(blamed.name)}\``
    if (total.submitted < statistics.cpus) {
      return `${idle}: ${plural(total.submitted, 'task')} cannot fill ${plural(statistics.cpus, 'cpu')}`
    }
    const begunAt = statistics.begunAt ?? 0
    if (statistics.cpus * begunAt > idleMs / 2)
      return `${idle}: the first task began after ${formatDuration(begunAt)}`
    return `${idle}: there were not enough tasks at hand`
  }
  const mean = total.done > 0 ? total.busyMs / total.done : Infinity
  if (total.done >= MANY_TASKS && mean < 0.5) {
    return `tasks ran ${formatDuration(mean)} on average: fewer and larger ones would cost less`
  }
  // Of a simulated run more is known: whether those that held the threads computed.
  if (idleShare !== null && idleShare < 0.1 && !statistics.run?.simulated) {
    return `threads were busy ${formatPercent(1 - idleShare)} of the time: more cpus would shorten the run`
  }
  const longest = statistics.longestKind
  if (longest === null || statistics.kinds.size < 2) return null
  return `\`${clean(longest.name)}\` took ${formatPercent(longest.busyMs / total.busyMs)} of the running time`
}
