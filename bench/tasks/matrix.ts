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

/** Both are measured in turn in one process; what counts is how often the one goes into the other. */
const speedUp = (kind: 'shared' | 'plain', journal: boolean) => async () => {
  const { sequential, parallel } = await runProgram<Seconds>('matrix.ts', [SIZE, BLOCK, kind], {
    journal,
    execArgv: TSX,
  })
  return Math.min(...sequential) / Math.min(...parallel)
}

export function matrix(): Case[] {
  const SHARED = 'millrace, shared blocks'
  const PLAIN = 'millrace, plain blocks'
  return [
    {
      name: 'matrix',
      unit: 'x sequential',
      better: 'higher',
      take: 'median',
      rounds: 5,
      about: `${SIZE} x ${SIZE} in blocks of ${BLOCK}: speed-up on 2 CPUs over plain calls of the same function`,
      arms: [
        { system: SHARED, run: speedUp('shared', true) },
        { system: PLAIN, run: speedUp('plain', true) },
        { system: `${SHARED}, no journal`, run: speedUp('shared', false) },
        { system: `${PLAIN}, no journal`, run: speedUp('plain', false) },
        { system: 'two bare threads, halves of the rows', run: speedUpOfBareThreads },
      ],
      goals: [SHARED, PLAIN].map(of => ({ of, upFrom: 1.85, unit: 'x' })),
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
