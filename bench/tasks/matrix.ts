import type { Case } from '../harness.ts'
import { runProgram } from '../run-program.ts'

interface Seconds {
  sequential: number[]
  parallel: number[]
}

/** By its address: the program is started in an empty folder, where `tsx` would not be found. */
const TSX = ['--import', import.meta.resolve('tsx')]
const SIZE = 1024
const BLOCK = 128

/**
 * Both are measured in turn in one process, often: where others use the same machine, one CPU is undisturbed for three
 * seconds more often than two are for half as long. What counts is how often the best of the one goes into the best of
 * the other.
 */
const speedUp = (kind: 'shared' | 'plain') => async () => {
  const { sequential, parallel } = await runProgram<Seconds>('matrix.ts', [SIZE, BLOCK, kind], {
    journal: true,
    execArgv: TSX,
  })
  return Math.min(...sequential) / Math.min(...parallel)
}

export function matrix(): Case[] {
  const SHARED = 'millrace, shared blocks'
  const PLAIN = 'millrace, plain blocks'
  const BARE = 'two bare threads, halves of the rows'
  return [
    {
      name: 'matrix',
      unit: 'x sequential',
      better: 'higher',
      take: 'best',
      rounds: 1,
      about: `${SIZE} x ${SIZE} in blocks of ${BLOCK}: speed-up on 2 CPUs over plain calls of the same function, best of twenty each`,
      arms: [
        { system: SHARED, run: speedUp('shared') },
        { system: PLAIN, run: speedUp('plain') },
        { system: BARE, run: speedUpOfBareThreads },
      ],
      // The second is for machines that cannot give the first to anyone, as when others use their CPUs.
      goals: [
        { of: SHARED, upFrom: 1.85, unit: 'x' },
        { of: SHARED, against: BARE, atLeast: 0.95 },
      ],
    },
  ]
}

/** What this machine gives to two threads that share nothing but memory: the ceiling. */
async function speedUpOfBareThreads(): Promise<number> {
  const { sequential, parallel } = await runProgram<Seconds>('bare-matrix.ts', [SIZE, BLOCK], {
    execArgv: TSX,
  })
  return Math.min(...sequential) / Math.min(...parallel)
}
