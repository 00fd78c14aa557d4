import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import type { Outcome, RunEvent } from '../../src/core/events.ts'
import { createJournal } from '../../src/report/journal/writer.ts'
import { newRunName } from '../../src/report/journal/run-names.ts'
import { logPath, runPaths } from '../../src/report/journal/run-paths.ts'
import { findRun, listRuns, pruneRuns, showRun } from '../../src/report/journal/runs.ts'
import { sampleRun } from './sample-run.ts'
import { temporaryFolder } from './temporary.ts'

const folder = temporaryFolder()
let bases = 0
const newBase = (): string => join(folder, String(++bases))
/** A process that has ended, so no process has its number; and one that surely lives. */
const deadPid = spawnSync('true').pid
const livePid = process.pid

async function keep(
  base: string,
  run: string,
  hour: number,
  end: Outcome | null,
  pid = deadPid,
): Promise<void> {
  const journal = createJournal(runPaths(base, run).journal)
  const wallTime = new Date(Date.UTC(2026, 0, 1, hour)).toISOString()
  journal.observe({ ...sampleRun[0], run, pid, wallTime } as RunEvent)
  journal.observe({ type: 'note', at: 5, level: 'info', text: 'hello' })
  if (end) journal.observe({ type: 'run-ended', at: 7, outcome: end })
  await journal.close()
}

test('paths', () => {
  assert.equal(runPaths('/b', 'r').journal, '/b/.millrace/runs/r/journal')
  assert.equal(logPath('/b', 'r', 12, 2), '/b/.millrace/runs/r/logs/12.2.log')
})

test('runs are listed newest first with how they ended', async () => {
  const base = newBase()
  assert.deepEqual(await listRuns(base), [])
  await keep(base, 'calm-heron', 1, 'ok')
  await keep(base, 'brisk-otter', 4, 'failed')
  await keep(base, 'misty-weir', 3, null)
  await keep(base, 'swift-teal', 2, null, livePid)
  mkdirSync(runPaths(base, 'not-a-run').folder)
  const runs = await listRuns(base)
  assert.deepEqual(
    runs.map(({ name, outcome, elapsed }) => [name, outcome, elapsed]),
    [
      ['brisk-otter', 'failed', 7],
      ['misty-weir', 'killed', 5],
      ['swift-teal', 'running', 5],
      ['calm-heron', 'ok', 7],
    ],
  )
  mkdirSync(runPaths(base, 'broken').folder)
  writeFileSync(runPaths(base, 'broken').journal, 'not a journal at all')
  const broken = await findRun(base, 'broken')
  assert.equal(broken.outcome, 'unreadable')
  // As a later version might write it: the other runs are listed as before.
  await keep(base, 'odd-otter', 9, 'exploded' as never)
  const all = await listRuns(base)
  assert.equal(all.find(({ name }) => name === 'odd-otter')?.outcome, 'unreadable')
  assert.equal(all.length, 6)
})

test('a run is found by name, by the start of its name, and as the last', async () => {
  const base = newBase()
  await assert.rejects(findRun(base, 'last'), /there are no runs/)
  await keep(base, 'calm-heron', 1, 'ok')
  await keep(base, 'calm-otter', 2, 'ok')
  await keep(base, 'misty-weir', 3, 'ok')
  assert.equal((await findRun(base, 'last')).name, 'misty-weir')
  assert.equal((await findRun(base, 'calm-heron')).name, 'calm-heron')
  assert.equal((await findRun(base, 'mis')).name, 'misty-weir')
  await assert.rejects(
    findRun(base, 'calm'),
    /several runs begin with `calm`\n {2}They are calm-otter, calm-heron/,
  )
  await assert.rejects(
    findRun(base, 'mysty-weir'),
    /no run `mysty-weir`\n {2}Did you mean misty-weir\? \[MR_JOURNAL\]/,
  )
  await assert.rejects(findRun(base, ''), /there is no run/)
  const { run, statistics } = await showRun(base, 'last')
  assert.equal(run.name, 'misty-weir')
  assert.equal(statistics.outcome, 'ok')
})

test('old runs are removed, but never one that lives nor what is not a run', async () => {
  const base = newBase()
  for (let hour = 1; hour <= 6; hour++) await keep(base, `run-${hour}`, hour, 'ok')
  await keep(base, 'alive', 0, null, livePid)
  mkdirSync(runPaths(base, 'other').folder)
  const outside = join(folder, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'journal'), 'precious')
  symlinkSync(outside, runPaths(base, 'link').folder)
  assert.deepEqual(await pruneRuns(base, 2), ['run-4', 'run-3', 'run-2', 'run-1'])
  assert.deepEqual(
    (await listRuns(base)).map(({ name }) => name),
    ['run-6', 'run-5', 'alive'],
  )
  assert.ok(existsSync(runPaths(base, 'other').folder))
  assert.ok(existsSync(join(outside, 'journal')))
  assert.deepEqual(await pruneRuns(base), [])
})

test('names are two words, and numbered when taken', () => {
  assert.equal(
    newRunName([], () => 0),
    'amber-avocet',
  )
  assert.equal(
    newRunName([], () => 0.999999),
    'windy-wren',
  )
  assert.equal(
    newRunName(['amber-avocet', 'amber-avocet-2'], () => 0),
    'amber-avocet-3',
  )
  let seed = 1
  const random = (): number => (seed = (seed * 16807) % 2147483647) / 2147483647
  const names = new Set<string>()
  for (let count = 0; count < 2000; count++) names.add(newRunName(names, random))
  assert.equal(names.size, 2000)
  for (const name of names) assert.match(name, /^[a-z]+-[a-z]+(-\d+)?$/)
})

test('a journal with an outcome that this version does not know spoils no list', async () => {
  const base = newBase()
  await keep(base, 'old-run-1', 1, 'ok')
  await keep(base, 'new-run-2', 2, 'paused' as Outcome)
  const runs = await listRuns(base)
  assert.deepEqual(
    runs.map(run => [run.name, run.outcome]),
    [
      ['new-run-2', 'unreadable'],
      ['old-run-1', 'ok'],
    ],
  )
})
