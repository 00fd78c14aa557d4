import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Case } from '../harness.ts'
import { makeFolder, runKept } from './run-kept.ts'

const TASKS = 4000

/** What keeping costs while tasks run. */
export function keeping(): Case[] {
  const arm = (system: string, checkpoint: 'all' | 'off') => ({
    system,
    run: async () => {
      const folder = makeFolder()
      const { milliseconds } = runKept(folder, 'short', TASKS, { checkpoint })
      rmSync(join(folder, '.millrace'), { recursive: true, force: true })
      return milliseconds
    },
  })
  return [
    {
      name: 'keep',
      unit: 'ms',
      better: 'lower',
      take: 'median',
      rounds: 9,
      about: `${TASKS} tasks of 1 ms with results of 1 KB, all kept, and none`,
      arms: [arm('millrace, all kept', 'all'), arm('millrace, none kept', 'off')],
      goals: [{ of: 'millrace, all kept', against: 'millrace, none kept', atMost: 1.03, orTie: true }],
    },
  ]
}
