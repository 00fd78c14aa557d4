import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { Allowance } from '../../src/report/dashboard/allowance.ts'
import { LiveRun } from '../../src/report/dashboard/live-run.ts'
import { createJournal } from '../../src/report/journal/writer.ts'
import { ArgumentNotes } from '../../src/runtime/argument-notes.ts'
import { runStarted } from '../report/sample-run.ts'
import { temporaryFolder } from '../report/temporary.ts'
import { manyTasks } from './journal-of.ts'

const folder = temporaryFolder()
const TASKS = 2000
const HOUR = 3_600_000

/** The journal of a run that goes on and began so long ago, in blocks of a few events. */
function going(name: string, ageMs: number): string {
  const path = join(folder, name, 'journal')
  const journal = createJournal(path, { flushEvery: Infinity, blockBytes: 4096 })
  const wallTime = new Date(Date.now() - ageMs).toISOString()
  const [, ...events] = manyTasks(TASKS)
  journal.observe({ ...runStarted, pid: process.pid, wallTime } as RunEvent)
  journal.flushSync()
  for (const event of events.slice(0, -1)) journal.observe(event)
  journal.flushSync()
  after(() => journal.close())
  return path
}

/** An allowance on one CPU, of which each look takes this many milliseconds. */
function eachLook(ms: number): Allowance {
  let used = -ms
  return new Allowance(1, () => (used += ms))
}

test('the CPU time of a page grows with the run, and what starting took is not counted', () => {
  let used = 500
  const allowance = new Allowance(2, () => used)
  assert.equal(allowance.spent, 0)
  const atOnce = allowance.left(0)
  assert.ok(atOnce > 0)
  // At most one percent of two CPUs in a second.
  const aSecond = allowance.left(1000) - atOnce
  assert.ok(aSecond > 0 && aSecond <= 20)
  used += atOnce + 1
  assert.equal(allowance.left(0), -1)
  assert.equal(Math.round(allowance.until(0, 0)), Math.round(1000 / aSecond))
  assert.equal(allowance.until(1, HOUR), 0)
})

test('a page that has used its part of the CPUs stops reading and says how far behind it is', async () => {
  const path = going('young', 5000)
  const run = new LiveRun(path, eachLook(30))
  after(() => run.close())
  await run.read()
  const { submitted } = run.model.statistics.total
  assert.ok(submitted < TASKS, 'it read all')
  const section = run.section('run')
  assert.equal(section.isCaughtUp, false)
  assert.ok(section.behind > 1000, `${section.behind} ms`)
  assert.equal(section.elapsed, run.model.statistics.elapsed, 'it claims to show the present')
  // The run needs its CPUs no longer.
  run.allowance = null
  await run.read()
  assert.equal(run.model.statistics.total.submitted, TASKS)
  assert.equal(run.section('run').behind, 0)
  assert.equal(run.section('run').isCaughtUp, true)
})

test('a page that is opened late reads at once what happened before', async () => {
  const path = going('old', HOUR)
  const run = new LiveRun(path, eachLook(30))
  after(() => run.close())
  await run.read()
  assert.equal(run.model.statistics.total.submitted, TASKS)
  assert.equal(run.section('run').behind, 0)
})

test('arguments of some thousand tasks are told in a second, however many there are', () => {
  const told: RunEvent[] = []
  const notes = new ArgumentNotes(event => told.push(event))
  for (let task = 0; task < 50_000; task++) notes.called(task, [task], 0.01 * task)
  notes.called(50_000, ['next'], 1000)
  const last = told.at(-1)
  assert.ok(last?.type === 'arguments')
  assert.deepEqual([last.task, last.text], [50_000, '"next"'])
  assert.ok(told.length > 1000 && told.length < 10_000, `${told.length}`)
})
