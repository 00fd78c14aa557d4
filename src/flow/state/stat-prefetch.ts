import { closeSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { buildLookTool, lookTool } from '../../native/look-tool.ts'
import { ToolStatPrefetch } from './tool-stat-prefetch.ts'
import { readHeaderOf } from './snapshot.ts'
import type { StatPrefetch } from './file-table.ts'

/** With fewer files it takes longer to start the tool than it saves. */
const WORTH_IT = 5000

/** `folder` is the `.millrace` of the workflow. Null where the tool is not built, or not worth it: then the plan looks itself. */
export function prefetchStats(folder: string): StatPrefetch | null {
  const snapshot = join(folder, 'flow', 'snapshot')
  const count = countIn(snapshot)
  const tool = count < WORTH_IT ? null : lookTool()
  return tool === null ? null : ToolStatPrefetch.start(tool, snapshot, count, dirname(folder))
}

/** Builds the tool, after a run, where the next one would be faster with it. */
export async function prepareLookAhead(folder: string): Promise<void> {
  const isMissing = countIn(join(folder, 'flow', 'snapshot')) >= WORTH_IT && lookTool() === null
  if (isMissing) await buildLookTool()
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
