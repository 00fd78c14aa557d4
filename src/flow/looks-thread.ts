import { statSync } from 'node:fs'
import { join } from 'node:path'
import { workerData } from 'node:worker_threads'
import { MISSING } from './file-table.ts'
import { columnsOf } from './looks-of-thread.ts'
import { readPaths } from './snapshot.ts'

/** Looks at the files of a snapshot, the last ones first. Folders, and whatever is strange, are left to the plan. */
const { snapshot, memory, count, folder } = workerData as {
  snapshot: string
  memory: SharedArrayBuffer
  count: number
  folder: string
}
const paths = readPaths(snapshot)
let end = paths.length
const { size, mtime, ctime, ino, done } = columnsOf(memory, count)
const options = { throwIfNoEntry: false } as const
for (let file = count - 1; file >= 0; file--) {
  const start = paths.lastIndexOf(0, end - 1)
  const path = paths.toString('utf8', start + 1, end)
  end = start
  try {
    const stats = statSync(path.startsWith('/') ? path : join(folder, path), options)
    if (stats && !stats.isFile()) continue
    size[file] = stats ? stats.size : MISSING
    mtime[file] = stats ? stats.mtimeMs : 0
    ctime[file] = stats ? stats.ctimeMs : 0
    ino[file] = stats ? stats.ino : 0
    Atomics.store(done, file, 1)
  } catch {
    continue
  }
}
