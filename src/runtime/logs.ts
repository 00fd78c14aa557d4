import { open } from 'node:fs/promises'
import type { Task } from '../core/task.ts'

const TAIL = 8192
const LINES = 20

export const logPath = (folder: string | null, task: Task): string | undefined =>
  folder === null ? undefined : `${folder}/${task.id}.${task.attempt}.log`

/** The last lines of a log, for people who look at a failure. */
export async function tailOf(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, 'r')
    try {
      const { size } = await file.stat()
      const length = Math.min(size, TAIL)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
      const lines = buffer.subarray(0, bytesRead).toString('utf8').trimEnd().split('\n')
      return lines.slice(-LINES).join('\n')
    } finally {
      await file.close()
    }
  } catch {
    return undefined
  }
}
