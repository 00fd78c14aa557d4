import { problemText, StreamConfigError } from '../language/problems.ts'
import type { StreamIo } from './screen.ts'
import { StreamError } from '../stream-error.ts'

/** Turns what a user can meet into text and an exit code: 2 for configuration and usage, 1 for the rest. */
export async function watchdog(io: StreamIo, body: () => Promise<number>): Promise<number> {
  try {
    return await body()
  } catch (error) {
    if (error instanceof StreamConfigError) {
      for (const problem of error.problems) io.err(`${problemText(problem)}\n`)
      return 2
    }
    if (error instanceof StreamError) {
      io.err(`error: ${error.message}\n`)
      return error.code === 'MR_STREAM_STEPS' || error.code === 'MR_STREAM_DIR' ? 2 : 1
    }
    throw error
  }
}
