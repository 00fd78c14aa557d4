import { closeSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { lookTool } from '../native/look-tool.ts'
import { LooksOfThread } from './looks-of-thread.ts'
import { LooksOfTool } from './looks-of-tool.ts'
import { readHeaderOf } from './snapshot.ts'
import type { LooksAhead } from './file-table.ts'

/** With fewer files it takes longer to start anything than it saves. */
const WORTH_IT = 5000

/** `folder` is the `.millrace` of the workflow. */
export function lookAhead(folder: string): LooksAhead | null {
  const snapshot = join(folder, 'flow', 'snapshot')
  const count = countIn(snapshot)
  if (count < WORTH_IT) return null
  const tool = lookTool()
  const root = dirname(folder)
  const fast = tool === null ? null : LooksOfTool.start(tool, snapshot, count, root)
  return fast ?? new LooksOfThread(snapshot, count, root)
}

function countIn(path: string): number {
  try {
    const file = openSync(path, 'r')
    const header = readHeaderOf(file)
    closeSync(file)
    return header?.files ?? 0
  } catch {
    return 0
  }
}
