import assert from 'node:assert/strict'
import test from 'node:test'
import type { RunEvent, TaskUsage } from '../../src/core/events.ts'
import { createPaint } from '../../src/report/terminal/paint.ts'
import { Statistics } from '../../src/report/statistics/statistics.ts'
import { cacheHitRate } from '../../src/report/statistics/statistics-kind.ts'
import { summaryLines } from '../../src/report/terminal/summary.ts'
import { runStarted } from './sample-run.ts'

const plainPaint = createPaint(false, true)

const life = (task: number, kind: number, usage?: TaskUsage): RunEvent[] => [
  { type: 'submitted', at: 0, task, kind, parent: null, group: null, priority: 0, reads: [], writes: [] },
  { type: 'ready', at: 0, task },
  { type: 'started', at: 0, task, attempt: 1, node: 0, lane: 0, cpus: 1 },
  { type: 'finished', at: 100, task, attempt: 1, ...(usage && { usage }) },
]
const used = (askedBytes: number, readBytes: number, cpuMs = 50): TaskUsage => ({
  cpuMs,
  peakBytes: 1000 + askedBytes,
  askedBytes,
  readBytes,
  writtenBytes: 7,
})

function statisticsOf(...events: RunEvent[]): Statistics {
  const statistics = new Statistics()
  const named = ['copy', 'sort', 'think'].map((name, i): RunEvent => ({
    type: 'kind-defined',
    at: 0,
    kind: i + 1,
    name,
    form: 'command',
    module: '',
  }))
  for (const event of [runStarted, ...named, ...events]) statistics.observe(event)
  return statistics
}

test('what commands used is added up by kind, and the page cache by what devices did not have to read', () => {
  const statistics = statisticsOf(
    ...life(1, 1, used(8_000_000, 8_000_000)),
    ...life(2, 1, used(8_000_000, 0)),
    ...life(3, 2, used(4_000_000, 1_000_000)),
    ...life(4, 3, used(20_000, 0)),
    ...life(5, 3),
  )
  const [copy, sort, think] = [1, 2, 3].map(kind => statistics.kinds.get(kind)!)
  assert.equal(cacheHitRate(copy!), 0.5)
  assert.equal(cacheHitRate(sort!), 0.75)
  // It read no more than a program reads to start.
  assert.equal(cacheHitRate(think!), null)
  assert.equal(copy!.cpuMs, 100)
  assert.equal(copy!.peakBytes, 8_001_000)
  assert.equal(think!.measured, 1)
  const [line] = summaryLines(statistics, plainPaint).filter(one => one.includes('page cache'))
  assert.match(line ?? '', /55% of 20\.0 MB read was there \(copy 50%, sort 75%\)/)
})

test('a device that read ahead more than was asked for makes no negative rate', () => {
  const statistics = statisticsOf(...life(1, 1, used(1_000_000, 3_000_000)))
  assert.equal(cacheHitRate(statistics.total), 0)
})

test('nothing is said of the page cache where nothing is known', () => {
  const lines = summaryLines(statisticsOf(...life(1, 1)), plainPaint)
  assert(!lines.some(line => line.includes('page cache')))
})
