import { formatDuration, formatPercent } from '../format.ts'
import type { Comparison, KindComparison } from './comparison.ts'

/** `+12%`, `-3%`. */
export const changeText = (share: number): string =>
  `${share > 0 ? '+' : share < 0 ? '-' : ''}${formatPercent(Math.abs(share))}`

/** What to say of a kind. */
export function verdictText({ verdict, change }: KindComparison): string {
  switch (verdict) {
    case 'slower':
    case 'faster': {
      const [least, most] = [change?.least ?? 0, change?.most ?? 0].map(changeText)
      return `${verdict}, ${least} to ${most}`
    }
    case 'same':
      return 'no change beyond noise'
    case 'too few':
      return 'too few tasks to tell'
    case 'only before':
      return 'only in the first run'
    case 'only after':
      return 'only in the second run'
  }
}

/** The sentence that comes first. */
export function headline({ before, after }: Comparison): string {
  const share = before.elapsed > 0 ? (after.elapsed - before.elapsed) / before.elapsed : 0
  const times = `${formatDuration(before.elapsed)} before, ${formatDuration(after.elapsed)} after`
  const percent = formatPercent(Math.abs(share))
  const how = percent === '0%' ? 'as long as' : `${percent} ${share > 0 ? 'longer' : 'less time'} than`
  return `${after.name} took ${how} ${before.name}: ${times}`
}
