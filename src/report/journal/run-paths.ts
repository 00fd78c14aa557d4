import { join } from 'node:path'

/**
 * Where runs are kept:
 *
 *   <base>/.millrace/runs/<run>/journal
 *   <base>/.millrace/runs/<run>/logs/<task>.<attempt>.log
 */
export function runsFolder(base: string): string {
  return join(base, '.millrace', 'runs')
}

export function runPaths(base: string, run: string): { folder: string; journal: string; logs: string } {
  const folder = join(runsFolder(base), run)
  return { folder, journal: join(folder, 'journal'), logs: join(folder, 'logs') }
}

export function logPath(base: string, run: string, task: number, attempt: number): string {
  return join(runPaths(base, run).logs, `${task}.${attempt}.log`)
}

/** Number of runs kept in a folder, the newest. */
export const KEPT_RUNS = 50
