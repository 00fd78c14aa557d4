import { runProgram } from './run-program.ts'
import type { ProgramOptions } from './run-program.ts'

interface Seconds {
  sequential: number[]
  parallel: number[]
}

/**
 * How often the best of the parallel runs goes into the best of the sequential ones. The program measures both in turn,
 * often: where others use the same machine, one CPU is undisturbed for three seconds more often than two are for half
 * as long.
 */
export async function speedUp(
  program: string,
  args: (string | number)[],
  options: ProgramOptions = {},
): Promise<number> {
  const { sequential, parallel } = await runProgram<Seconds>(program, args, options)
  return Math.min(...sequential) / Math.min(...parallel)
}
