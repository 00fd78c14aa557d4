import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import type { AgentProbe, AgentView } from '../link/start.ts'

/** What this machine sees of the coordinator's folder, and its clock. */
export function lookAround({ cwd, file, text }: AgentProbe): AgentView {
  return {
    hasFolder: existsSync(cwd),
    seesFile: contentOf(file) === text,
    canWrite: isWritable(cwd),
    clock: Date.now(),
  }
}

function contentOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}
