import { gain, time } from './build.ts'
import type { Build, Use } from './build.ts'
import { mareNostrum4 } from './platforms.ts'
import { percent } from './rows.ts'
import type { Row } from './rows.ts'

/**
 * Eager release (thesis 7.6.3.3): four tasks decompose a domain each into so many parts, and one task works on
 * each part; 8 nodes of MareNostrum 4. Their times are not stated: the parts take all CPUs together as long as
 * the decomposition takes, 100 s, at 800 parts per task.
 */
const GENERATORS = 4
const SECONDS = 100
const PART = (SECONDS * 8 * 48) / (GENERATORS * 800)

const decomposition =
  (parts: number, isEager: boolean) =>
  (build: Build): void => {
    for (let i = 0; i < GENERATORS; i++) {
      const made = Array.from({ length: parts }, () => build.value())
      build.task(
        'decompose',
        SECONDS,
        made.map((one): Use => [one, 'out']),
        undefined,
        isEager,
      )
      for (const one of made) build.task('solve', PART, [[one, 'in']])
    }
  }

export async function eagerRows(): Promise<Row[]> {
  const platform = mareNostrum4(8)
  const counts = [100, 200, 400, 800]
  const gains: number[] = []
  for (const parts of counts) {
    const lazy = await time(decomposition(parts, false), { platform })
    gains.push(gain(lazy, await time(decomposition(parts, true), { platform })))
  }
  const isGrowing = gains.every((one, i) => i === 0 || one >= (gains[i - 1] as number))
  return [
    {
      experiment: 'Domain decomposition, eager against lazy release',
      paper: 'more than 50% at most, growing with the parts',
      ours: gains.map(percent).join(', '),
      better: `${counts.join(', ')} parts per task`,
      turning: isGrowing ? 'grows' : 'does not grow',
      met: isGrowing && Math.max(...gains) >= 0.5,
    },
  ]
}
