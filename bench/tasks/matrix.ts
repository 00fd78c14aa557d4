import type { Case } from '../harness.ts'
import { speedUp } from '../speed-up.ts'

/** By its address: the program is started in an empty folder, where `tsx` would not be found. */
const TSX = ['--import', import.meta.resolve('tsx')]
const SIZE = 1024
const BLOCK = 128

const ours = (kind: 'shared' | 'plain') => () =>
  speedUp('matrix.ts', [SIZE, BLOCK, kind], { journal: true, execArgv: TSX })

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
        { system: SHARED, run: ours('shared') },
        { system: PLAIN, run: ours('plain') },
        // What this machine gives to two threads that share nothing but memory: the ceiling.
        { system: BARE, run: () => speedUp('bare-matrix.ts', [SIZE, BLOCK], { execArgv: TSX }) },
      ],
      // The second is for machines that cannot give the first to anyone, as when others use their CPUs.
      goals: [
        { of: SHARED, upFrom: 1.85, unit: 'x' },
        { of: SHARED, against: BARE, atLeast: 0.95 },
      ],
    },
  ]
}
