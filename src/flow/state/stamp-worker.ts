import { hash } from 'node:crypto'
import { closeSync, lstatSync, openSync, readSync, statSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { digestFolderNow } from './digest-now.ts'
import { COLUMNS, SMALL } from './stamp-thread.ts'
import type { StampRequest, How } from './stamp-thread.ts'
import { stampOf } from './stamp.ts'

const buffer = Buffer.allocUnsafeSlow(SMALL + 1)

/** Leaves zeros for what is not a small plain file, or cannot be read. */
function look(path: string, how: How, into: Float64Array): void {
  if (how === 'folder') return into.set([0, 0, 0, 0, stampOf(digestFolderNow(path)), 0])
  const stats = how === 'link' ? lstatSync(path) : statSync(path)
  // After the look and before the content: what changes from here on has another time, unless it is within the tick.
  const at = Date.now()
  if (!stats.isFile()) return
  const isOutside = how === 'outside'
  if (isOutside) into.set([stats.size, stats.mtimeMs, stats.ctimeMs, stats.ino, 1, at])
  if (isOutside || stats.size > SMALL) return
  const file = openSync(path, 'r')
  let length = 0
  try {
    length = readSync(file, buffer, 0, stats.size + 1, 0)
  } finally {
    closeSync(file)
  }
  // It is being changed.
  if (length !== stats.size) return
  const stamp = stampOf(hash('sha256', buffer.subarray(0, length)))
  into.set([stats.size, stats.mtimeMs, stats.ctimeMs, stats.ino, stamp, at])
}

parentPort?.on('message', ({ paths, how }: StampRequest) => {
  const columns = new Float64Array(paths.length * COLUMNS.length)
  for (const [i, path] of paths.entries()) {
    try {
      look(path, how[i] as How, columns.subarray(i * COLUMNS.length, (i + 1) * COLUMNS.length))
    } catch {
      continue
    }
  }
  parentPort?.postMessage(columns, [columns.buffer])
})
