import { formatDuration, formatPercent, plural } from '../format.ts'
import type { Statistics } from './statistics.ts'
import type { KindStatistics } from './statistics-kind.ts'
import { clean } from '../text.ts'

/** Below this a remark would be noise. */
const MANY_TASKS = 1000
/** Of the run's time, for which a kind was ready and did not run. */
const HELD_SHARE = 0.1

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
    const idle = `CPUs were idle ${formatPercent(idleShare)} of the time`
    const idleMs = statistics.cpus * statistics.elapsed - statistics.cpuBusyMs
    const blamed = statistics.blamedKind
    if (blamed !== null && starvedMs > idleMs / 2) {
      return `${idle}: tasks waited for \`${clean(blamed.name)}\`${heldBack(statistics, blamed)}`
    }
    if (total.submitted < statistics.cpus) {
      return `${idle}: ${plural(total.submitted, 'task')} cannot fill ${plural(statistics.cpus, 'cpu')}`
    }
    const begunAt = statistics.begunAt ?? 0
    if (statistics.cpus * begunAt > idleMs / 2)
      return `${idle}: the first task began after ${formatDuration(begunAt)}`
    return `${idle}: there were not enough tasks at hand`
  }
  const ran = total.done - total.kept
  const mean = ran > 0 ? total.busyMs / ran : Infinity
  if (ran >= MANY_TASKS && mean < 0.5) {
    return `tasks ran ${formatDuration(mean)} on average: fewer and larger ones would cost less`
  }
  // Of a simulated run more is known: whether those that held the CPUs computed.
  if (idleShare !== null && idleShare < 0.1 && !statistics.run?.simulated) {
    return `CPUs were busy ${formatPercent(1 - idleShare)} of the time: more cpus would shorten the run`
  }
  const longest = statistics.longestKind
  if (longest === null || statistics.kinds.size < 2) return null
  return `\`${clean(longest.name)}\` took ${formatPercent(longest.busyMs / total.busyMs)} of the running time`
}

/** Those that all wait for were ready, and others ran: then they come too late whatever the number of CPUs. */
function heldBack({ kinds, elapsed }: Statistics, blamed: KindStatistics): string {
  if (blamed.heldMs < elapsed * HELD_SHARE) return ''
  const isFirst = [...kinds.values()].every(kind => kind === blamed || kind.priority < blamed.priority)
  if (isFirst) return ''
  return `, which was ready for ${formatDuration(blamed.heldMs)} while others ran. Give it a higher \`priority\``
}
