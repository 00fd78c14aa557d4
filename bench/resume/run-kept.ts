import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programPath } from '../run-program.ts'

export interface Printed {
  milliseconds: number
  /** Bytes that the coordinator has read. */
  read: number
}

const folders: string[] = []

/** A folder of its own, gone at the end. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-resume-'))
  for (const name of ['in', 'out']) mkdirSync(join(folder, name))
  if (folders.length === 0)
    process.on('exit', () => folders.forEach(one => rmSync(one, { recursive: true, force: true })))
  folders.push(folder)
  return folder
}

/** Runs resume.mjs in a folder, where its store is. */
export function runKept(
  folder: string,
  what: 'short' | 'finished' | 'files' | 'names',
  tasks: number,
  how: { checkpoint: 'all' | 'off'; resume?: boolean },
): Printed {
  const { status, stdout, stderr } = spawnSync(process.execPath, [programPath('resume.mjs')], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 600_000,
    env: {
      ...process.env,
      MILLRACE_CPUS: '2',
      MILLRACE_PROGRESS: 'none',
      MILLRACE_CHECKPOINT: how.checkpoint,
      ...(how.resume && { MILLRACE_RESUME: '1' }),
      RESUME_WHAT: what,
      RESUME_TASKS: String(tasks),
    },
  })
  if (status !== 0) throw new Error(`resume.mjs ended with ${String(status)}: ${stderr}`)
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as Printed
}
