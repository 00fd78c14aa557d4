import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { RunEvent } from '../../src/core/events.ts'
import { finding } from '../../src/report/statistics/finding.ts'
import { IdTable } from '../../src/report/statistics/id-table.ts'
import { createPaint } from '../../src/report/terminal/paint.ts'
import { Statistics } from '../../src/report/statistics/statistics.ts'
import { summaryLines } from '../../src/report/terminal/summary.ts'
import { randomRun } from './random-run.ts'
import { runStarted, sampleRun } from './sample-run.ts'

function statisticsOf(events: RunEvent[]): Statistics {
  const statistics = new Statistics()
  for (const event of events) statistics.observe(event)
  return statistics
}

test('counts and running time agree with a slow count, in whatever order batches come', () => {
  const property = fc.property(randomRun, ({ events, truth }) => {
    const statistics = statisticsOf(events)
    const { total } = statistics
    const count = (state: string): number =>
      [...truth.states.values()].filter(found => found === state).length
    assert.equal(total.submitted, truth.states.size)
    for (const state of ['done', 'failed', 'ignored', 'cancelled'] as const)
      assert.equal(total[state], count(state))
    assert.equal(total.running, truth.running.size)
    assert.equal(total.waiting + total.ready + total.running + total.blocked, count('open'))
    assert.equal(statistics.failureCount, count('failed'))
    const ran = [...truth.ranMs.values()].reduce((sum, ms) => sum + ms, 0)
    assert.ok(Math.abs(total.busyMs - ran) < 1e-6)
    const parallelism = truth.anyRanMs > 0 ? truth.ranInAll / truth.anyRanMs : 0
    assert.ok(
      Math.abs(statistics.parallelism - parallelism) < 1e-6,
      `${statistics.parallelism} ${parallelism}`,
    )
    const kinds = [...statistics.kinds.values()]
    for (const state of ['submitted', 'waiting', 'ready', 'running', 'blocked', 'done', 'busyMs'] as const) {
      const sum = kinds.reduce((all, kind) => all + kind[state], 0)
      assert.ok(Math.abs(sum - total[state]) < 1e-6, state)
    }
  })
  fc.assert(property, { numRuns: 150 })
})

test('work that is done before the task that feeds it has ended is counted, and shown', () => {
  const submitted = { type: 'submitted', parent: null, group: null, priority: 0, kind: 1 } as const
  const started = { type: 'started', attempt: 1, node: 0, lane: 0, cpus: 1 } as const
  const statistics = statisticsOf([
    runStarted,
    { ...submitted, at: 0, task: 1, reads: [], writes: [1, 2] },
    { ...submitted, at: 0, task: 2, reads: [1], writes: [] },
    { ...started, at: 0, task: 1 },
    { type: 'released', at: 10, task: 1, version: 1 },
    { type: 'released', at: 20, task: 1, version: 7 },
    { ...submitted, at: 20, task: 3, reads: [7], writes: [] },
    { ...submitted, at: 20, task: 4, reads: [7], writes: [] },
    { ...started, at: 20, task: 2 },
    { type: 'finished', at: 50, task: 2, attempt: 1 },
    { ...started, at: 60, task: 3 },
    { type: 'blocked', at: 70, task: 3, reason: 'waits' },
    { type: 'resumed', at: 80, task: 3, node: 0, lane: 0 },
    { type: 'finished', at: 100, task: 1, attempt: 1 },
    { type: 'finished', at: 130, task: 3, attempt: 1 },
    { ...started, at: 140, task: 4 },
    { type: 'finished', at: 150, task: 4, attempt: 1 },
  ])
  assert.equal(statistics.early.tasks, 2)
  // 30 of the second task; 10 and 20 of the third, up to the end of the first.
  assert.equal(statistics.early.workMs, 60)
  const text = summaryLines(statistics, createPaint(false, true)).join('\n')
  assert.match(
    text,
    /early +2 tasks began before what feeds them ended: 60ms of work, which saved up to \d+ms/,
  )
})

test('the sample run', () => {
  const statistics = statisticsOf(sampleRun)
  assert.equal(statistics.ended, 6)
  assert.equal(statistics.total.retried, 1)
  assert.equal(statistics.elapsed, 3520)
  assert.equal(statistics.outcome, 'failed')
  assert.equal(statistics.bytesCommitted, 2_097_152)
  assert.equal(statistics.failedName(5), 'jpeg#5 out.jpg')
  assert.equal(statistics.longestKind?.name, 'project')
  // 1200 + 100 + 2000 + 100 + 300 + 500 + 500.25 ms in which all but 8 + 1 + 1 + 4 of 3516.25 had a task.
  assert.equal(statistics.total.busyMs, 4700.25)
  assert.equal(statistics.parallelism.toFixed(3), (4700.25 / (3516.25 - 4 - 4 - 1 - 1 - 4)).toFixed(3))
})

test('an attempt that was called back before it began has not failed', () => {
  const returned = { type: 'returned', at: 30, task: 0, reason: 'it waits' } as const
  const events: RunEvent[] = [runStarted, submitted(0, 0), started(0, 10)]
  const unbegun = statisticsOf([...events, { ...returned, why: 'behind-long-task' }])
  assert.deepEqual([unbegun.total.retried, unbegun.lostMs], [0, 0])
  const lost = statisticsOf([...events, { ...returned, why: 'lost' }])
  assert.deepEqual([lost.total.retried, lost.lostMs], [1, 20])
})

test('parallelism is right where very many tasks ran one by one while another ran all the time', () => {
  const events: RunEvent[] = [runStarted, submitted(0, 0), started(0, 0)]
  for (let task = 1; task <= 10_000; task++) {
    events.push(submitted(task, 1), started(task, task * 2), finished(task, task * 2 + 1))
  }
  assert.equal(statisticsOf(events).parallelism.toFixed(6), (30_001 / 20_001).toFixed(6))
  events.push(finished(0, 20_001))
  assert.equal(statisticsOf(events).parallelism.toFixed(6), (30_001 / 20_001).toFixed(6))
  // And without that other one, each by itself.
  const alone = events.filter(event => !('task' in event) || event.task !== 0)
  assert.equal(statisticsOf(alone).parallelism.toFixed(6), '1.000000')
})

test('only the first failures are kept', () => {
  const events: RunEvent[] = [runStarted]
  for (let task = 1; task <= 50; task++) events.push(...lifeOf(task, 0, 0, 1, 'failed'))
  const statistics = statisticsOf(events)
  assert.equal(statistics.failureCount, 50)
  assert.deepEqual(
    statistics.failures.map(({ task }) => task),
    Array.from({ length: 20 }, (_, index) => index + 1),
  )
})

test('time left is what remains of each kind at the speed so far', () => {
  const events: RunEvent[] = [runStarted]
  for (let task = 1; task <= 4; task++) events.push(submitted(task, 0))
  assert.equal(statisticsOf(events).eta(), null)
  events.push(started(1, 0), started(2, 0), finished(1, 1000), finished(2, 1000))
  assert.equal(statisticsOf(events).eta(), 1000)
})

test('the slowest running tasks come first and ended ones are gone', () => {
  const events = [
    submitted(1, 0),
    submitted(2, 0),
    submitted(3, 0),
    started(2, 5),
    started(1, 9),
    started(3, 1),
  ]
  const statistics = statisticsOf([...events, finished(3, 10)])
  assert.deepEqual(
    statistics.slowest(3).map(({ task }) => task),
    [2, 1],
  )
})

const findings: [string, RunEvent[], RegExp | null][] = [
  ['nothing ran', [], null],
  [
    'all waited for one kind',
    [
      submitted(1, 7),
      submitted(2, 8),
      submitted(3, 8),
      ready(1),
      started(1, 0),
      finished(1, 800),
      ready(2, 800),
    ],
    /^CPUs were idle 50% of the time: tasks waited for `kind 7`$/,
  ],
  [
    'what all waited for was ready while others ran',
    [
      submitted(1, 8),
      submitted(2, 8),
      submitted(3, 7),
      submitted(4, 8),
      ready(1),
      ready(2),
      started(1, 0),
      started(2, 0),
      ready(3, 1),
      finished(1, 400),
      finished(2, 400),
      started(3, 400),
      finished(3, 1200),
      ready(4, 1200),
    ],
    /^CPUs were idle 33% .*: tasks waited for `kind 7`, which was ready for 399ms .* `priority`$/,
  ],
  [
    'attempts were lost',
    [submitted(1, 0), ...lifeOf(2, 0, 0, 500, 'failed'), started(1, 0), finished(1, 1000)],
    /^33% of the running time was lost/,
  ],
  [
    'all CPUs were busy',
    [submitted(1, 0), submitted(2, 0), started(1, 0), started(2, 0), finished(1, 1000), finished(2, 1000)],
    /^CPUs were busy 100% of the time/,
  ],
  [
    'one task on many cpus',
    lifeOf(1, 0, 0, 1000, 'ok'),
    /^CPUs were idle 50% of the time: 1 task cannot fill 2 cpus/,
  ],
  [
    'the first task began late',
    [...lifeOf(1, 0, 800, 1000, 'ok'), ...lifeOf(2, 0, 800, 1000, 'ok')],
    /^CPUs were idle 80% of the time: the first task began after 800ms$/,
  ],
  [
    'the last task came late',
    [...lifeOf(1, 0, 0, 100, 'ok'), ...lifeOf(2, 0, 0, 100, 'ok'), ...lifeOf(3, 0, 900, 1000, 'ok')],
    /^CPUs were idle 85% of the time: there were not enough tasks at hand$/,
  ],
]
for (const [situation, events, expected] of findings) {
  test(`the finding when ${situation}`, () => {
    const found = finding(statisticsOf([runStarted, ...events]))
    if (expected === null) assert.equal(found, null)
    else assert.match(found ?? '', expected)
  })
}

test('memory follows the tasks that are alive', () => {
  const table = new IdTable()
  let most = 0
  for (let id = 0; id < 100_000; id++) {
    table.set(id, 1)
    if (id >= 5000) table.delete(id - 5000)
    most = Math.max(most, table.pageCount)
  }
  assert.ok(most <= 7)
  assert.equal(table.get(99_999), 1)
  assert.equal(table.get(10), 0)
  table.delete(10)
  for (let id = 95_000; id < 100_000; id++) table.delete(id)
  assert.equal(table.pageCount, 0)
})

test('a table of ids answers as a map does', () => {
  const step = fc.record({ id: fc.oneof(fc.nat(3000), fc.maxSafeNat()), value: fc.nat(3) })
  const property = fc.property(fc.array(step, { maxLength: 60 }), steps => {
    const table = new IdTable()
    const map = new Map<number, number>()
    for (const { id, value } of steps) {
      if (value === 0) {
        table.delete(id)
        map.delete(id)
      } else {
        table.set(id, value)
        map.set(id, value)
      }
      for (const known of [...map.keys(), id]) assert.equal(table.get(known), map.get(known) ?? 0)
    }
  })
  fc.assert(property, { numRuns: 100 })
})

function submitted(task: number, kind: number): RunEvent {
  return {
    type: 'submitted',
    at: 0,
    task,
    kind,
    parent: null,
    group: null,
    priority: 0,
    reads: [],
    writes: [],
  }
}

function ready(task: number, at = 0): RunEvent {
  return { type: 'ready', at, task }
}

function started(task: number, at: number): RunEvent {
  return { type: 'started', at, task, attempt: 1, node: 0, lane: 0, cpus: 1 }
}

function finished(task: number, at: number): RunEvent {
  return { type: 'finished', at, task, attempt: 1 }
}

function lifeOf(task: number, kind: number, from: number, to: number, end: 'ok' | 'failed'): RunEvent[] {
  const failure = { name: 'Error', message: 'no' }
  const last: RunEvent =
    end === 'ok' ? finished(task, to) : { type: 'failed', at: to, task, attempt: 1, failure, next: 'fail' }
  return [submitted(task, kind), started(task, from), last]
}
