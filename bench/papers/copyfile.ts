import type { Policy } from '../../src/core/schedule/policy.ts'
import { fifo, hrf, lifo, lifoHrf, rank } from '../../src/core/schedule/policy.ts'
import { gain, time } from './build.ts'
import type { Build } from './build.ts'
import { tohoku } from './platforms.ts'
import { parts, percent } from './rows.ts'
import type { Row } from './rows.ts'

/**
 * copyfile (Pwrake IV.B): 100 files of 3 GiB on ten nodes, each copied twice, one process per node. Pwrake runs
 * a task where its file is, so each node copies its own ten files: that is what is simulated here.
 */
const SIZE = 3 * 2 ** 30

const copyfile = (build: Build): void => {
  for (let i = 0; i < 10; i++) {
    const input = build.input(SIZE)
    const first = build.file()
    build.task('A', 0, [
      [input, 'in', SIZE],
      [first, 'out', SIZE],
    ])
    build.task('B', 0, [
      [first, 'in', SIZE],
      [build.file(), 'out', SIZE],
    ])
  }
}

const POLICIES: readonly [string, Policy][] = [
  ['HRF', hrf],
  ['LIFO+HRF', lifoHrf],
  ['rank', rank],
]

export async function copyfileRows(): Promise<Row[]> {
  const platform = tohoku(1, 1)
  const first = await time(copyfile, { platform, policy: fifo })
  const last = await time(copyfile, { platform, policy: lifo })
  // Both in seconds: I over R plus O over W, with R of the cache for half of what LIFO reads (figure 8).
  const closed = (30 * 1024) / 70 + (30 * 1024) / 592 + (60 * 1024) / 59
  const others: string[] = []
  for (const [name, policy] of POLICIES) {
    others.push(`${name} ${percent(gain(first, await time(copyfile, { platform, policy })))}`)
  }
  return [
    {
      experiment: 'copyfile, LIFO against FIFO',
      paper: '30% (FIFO/LIFO 1.3)',
      ours: `${(first / last).toFixed(2)} times; ${percent(gain(first, last))} less time`,
      better: others.join(', '),
      turning: `LIFO ${last.toFixed(0)} s, by their formula ${closed.toFixed(0)} s`,
      met: first / last >= 1.3,
      off: parts(1.3, first / last),
    },
  ]
}
