import type { Case } from '../harness.ts'
import { isInstalled } from '../peers.ts'
import { speedUp } from '../speed-up.ts'

const MILLISECONDS = [0.02, 0.05, 0.2, 1, 5]
/** Tasks of piscina that a thread has at a time: the best of these counts. */
const CONCURRENT = [1, 16]

/** How short tasks may be before running them apart is not worth it. */
export function grain(): Case[] {
  return MILLISECONDS.map(milliseconds => ({
    name: `grain-${milliseconds}ms`,
    unit: 'x sequential',
    better: 'higher' as const,
    take: 'best' as const,
    rounds: 2,
    about: `600 ms of tasks of ${milliseconds} ms each: speed-up on 2 CPUs over plain calls, best of eight each`,
    arms: [
      { system: 'millrace', run: () => speedUp('grain.mjs', [milliseconds], { journal: true }) },
      {
        system: 'piscina, best',
        missing: isInstalled('piscina'),
        run: async () => {
          const all: number[] = []
          for (const concurrent of CONCURRENT) {
            all.push(await speedUp('piscina-grain.mjs', [milliseconds, concurrent]))
          }
          return Math.max(...all)
        },
      },
    ],
    goals: [{ of: 'millrace', against: 'piscina, best', atLeast: 1 }],
  }))
}
