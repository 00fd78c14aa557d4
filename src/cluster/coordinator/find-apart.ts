import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NodeLink } from './node-link.ts'

/** A network file system may show a new file late; milliseconds. */
const LATE = 2000
const PAUSE = 100

/** Whether the agent sees the working folder: a file with a token is written here and asked for there. A node that is lost meanwhile does not. */
export async function isApart(link: NodeLink): Promise<boolean> {
  const cwd = process.cwd()
  const folder = join(cwd, '.millrace')
  const text = randomBytes(16).toString('hex')
  const file = join(folder, `probe-${text.slice(0, 12)}`)
  try {
    mkdirSync(folder, { recursive: true })
    writeFileSync(file, text)
  } catch {
    // Nothing can be written here, so tasks cannot either: they only read, and what they do not find they say.
    return false
  }
  try {
    for (const until = performance.now() + LATE; ;) {
      const { hasFolder, seesFile } = await link.probe({ cwd, file, text })
      if (seesFile) return false
      if (!hasFolder || performance.now() > until) return true
      await new Promise(resolve => setTimeout(resolve, PAUSE))
    }
  } catch {
    return false
  } finally {
    rmSync(file, { force: true })
  }
}
