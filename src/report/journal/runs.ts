import { readdir, rm, stat } from 'node:fs/promises'
import { MillraceError } from '../../core/errors.ts'
import type { Outcome, RunEvent } from '../../core/events.ts'
import { nearest } from '../../general/nearest.ts'
import { KEPT_RUNS, runPaths, runsFolder } from './run-paths.ts'
import { readJournalBlocks, readJournalEnds } from './reader.ts'
import { Statistics } from '../statistics/statistics.ts'

export interface RunInfo {
  name: string
  folder: string
  journal: string
  /** `killed`: its process is gone and it never said that it ended. `unreadable`: its journal says nothing. */
  outcome: Outcome | 'running' | 'killed' | 'unreadable'
  /** ISO 8601; of the folder, if the journal does not tell. */
  startedAt: string
  /** Milliseconds up to the last event. */
  elapsed: number
  program: string
  simulated: boolean
  pid: number | null
}

const OUTCOMES: readonly string[] = ['ok', 'failed', 'interrupted'] satisfies Outcome[]

/** The runs of this folder, newest first. A folder without a journal is no run. */
export async function listRuns(base: string): Promise<RunInfo[]> {
  const runs: RunInfo[] = []
  for (const name of await runNames(base)) {
    const info = await readInfo(base, name)
    if (info) runs.push(info)
  }
  return runs.sort((a, b) => compare(b.startedAt, a.startedAt) || compare(a.name, b.name))
}

/** Names in use, also of runs whose journal cannot be read. */
export async function runNames(base: string): Promise<string[]> {
  try {
    const entries = await readdir(runsFolder(base), { withFileTypes: true })
    return entries.filter(entry => entry.isDirectory()).map(entry => entry.name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** The run that was at work last before `own`, if its process ended without saying so. Looks into one journal only. */
export async function killedBefore(base: string, own: string): Promise<RunInfo | null> {
  let newest: { name: string; at: number } | null = null
  for (const name of await runNames(base)) {
    if (name === own) continue
    const at = await stat(runPaths(base, name).journal).then(
      found => found.mtimeMs,
      () => 0,
    )
    if (at > (newest?.at ?? 0)) newest = { name, at }
  }
  const info = newest && (await readInfo(base, newest.name))
  return info?.outcome === 'killed' ? info : null
}

/** A run by its name, by the start of its name if only one begins so, or by `last`. */
export async function findRun(base: string, name: string): Promise<RunInfo> {
  const runs = await listRuns(base)
  if (runs.length === 0) {
    throw new MillraceError('MR_JOURNAL', `there are no runs in ${base}`, {
      hint: 'Runs are kept in the folder in which they were started.',
    })
  }
  const exact = name === 'last' ? runs[0] : runs.find(run => run.name === name)
  if (exact) return exact
  const begun = name === '' ? [] : runs.filter(run => run.name.startsWith(name))
  if (begun.length === 1) return begun[0]!
  if (begun.length > 1) {
    throw new MillraceError('MR_JOURNAL', `several runs begin with \`${name}\``, {
      hint: `They are ${begun.map(run => run.name).join(', ')}.`,
    })
  }
  const near = nearest(
    name,
    runs.map(run => run.name),
  )
  throw new MillraceError(
    'MR_JOURNAL',
    `there is no run \`${name}\``,
    near ? { hint: `Did you mean ${near}?` } : {},
  )
}

export interface ShownRun {
  run: RunInfo
  statistics: Statistics
  /** Bytes at the end of its journal that cannot be read. */
  unread: number
}

/** A run and its counts, from which `summaryLines` and `keptFailureBlocks` make text. */
export async function showRun(base: string, name: string): Promise<ShownRun> {
  const run = await findRun(base, name)
  const statistics = new Statistics()
  let unread = 0
  for await (const events of readJournalBlocks(run.journal, bytes => (unread = bytes))) {
    for (const event of events) statistics.observe(event)
  }
  return { run, statistics, unread }
}

/**
 * Removes all but the newest runs and returns the names of those removed. A run whose process lives is
 * kept at any age; so is every folder that holds no journal, because it may not be ours.
 */
export async function pruneRuns(base: string, keep = KEPT_RUNS): Promise<string[]> {
  const removed: string[] = []
  for (const run of (await listRuns(base)).slice(Math.max(0, keep))) {
    if (run.pid !== null && isAlive(run.pid)) continue
    await rm(run.folder, { recursive: true, force: true })
    removed.push(run.name)
  }
  return removed
}

async function readInfo(base: string, name: string): Promise<RunInfo | null> {
  const { folder, journal } = runPaths(base, name)
  let modified: Date
  try {
    modified = (await stat(journal)).mtime
  } catch {
    return null
  }
  const { first, last } = await ends(journal)
  const started = first?.type === 'run-started' ? first : null
  const pid = started?.pid ?? null
  return {
    name,
    folder,
    journal,
    outcome: outcomeOf(started, last),
    // A simulated run has no time of its own.
    startedAt: started && !started.simulated ? started.wallTime : modified.toISOString(),
    elapsed: last?.at ?? 0,
    program: started?.program ?? '',
    simulated: started?.simulated ?? false,
    pid,
  }
}

async function ends(journal: string): Promise<{ first: RunEvent | null; last: RunEvent | null }> {
  try {
    return await readJournalEnds(journal)
  } catch (error) {
    if (error instanceof MillraceError) return { first: null, last: null }
    throw error
  }
}

function outcomeOf(
  started: Extract<RunEvent, { type: 'run-started' }> | null,
  last: RunEvent | null,
): RunInfo['outcome'] {
  if (started === null) return 'unreadable'
  // A later version may know others.
  if (last?.type === 'run-ended') return OUTCOMES.includes(last.outcome) ? last.outcome : 'unreadable'
  return isAlive(started.pid) ? 'running' : 'killed'
}

/** True when in doubt: a process of another user cannot be asked, but it is there. */
export function isAlive(pid: number): boolean {
  if (pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** ISO times sort as text. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
