import { readdir, readFile } from 'node:fs/promises'
import type { Board } from '../board/board.ts'
import { streamDown } from './commands.ts'
import type { StreamIo } from './screen.ts'
import { readState } from './up-state.ts'

/**
 * A run that was killed, and so was the shell that watched over it: what was complete is still brought to its place.
 * Where that shell is at work, or a step still ends, it is left to them.
 */
export async function endAbandoned(board: Board, io: StreamIo): Promise<void> {
  const { workflow } = board
  if (await isAtWork(workflow)) return
  if ((await readState(board)) === undefined) {
    await board.destroy(false).catch(() => false)
    return
  }
  const err = (text: string): void => io.err(`${workflow}, which was killed: ${text}`)
  await streamDown({ workflow, force: true }, { ...io, err }).catch((error: unknown) =>
    err(`${String(error)}\n`),
  )
}

/** All that belongs to a run has its name in its command line. */
async function isAtWork(workflow: string): Promise<boolean> {
  const pids = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name))
  const lines = pids.map(pid => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => ''))
  return (await Promise.all(lines)).some(line => line.split('\0').includes(workflow))
}
