import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { RunEvent } from '../../src/core/events.ts'
import { RunModel } from '../../src/report/dashboard/state/run-model.ts'
import { Series } from '../../src/report/dashboard/state/series.ts'
import { ITEM, PARTS, bucketMs, levelFor, tileMs, tileRow } from '../../src/report/dashboard/state/tiles.ts'
import { criticalPath, graphSection, nearGraph } from '../../src/report/dashboard/sections/graph.ts'
import { findTasks, taskFacts } from '../../src/report/dashboard/sections/task-facts.ts'
import { sampleRun } from '../report/sample-run.ts'
import { randomRun } from '../report/random-run.ts'
import { manyTasks } from './journal-of.ts'

function modelOf(events: Iterable<RunEvent>): RunModel {
  const model = new RunModel()
  for (const event of events) model.observe(event)
  return model
}

test('a task has its story, its inputs and outputs, and who made and reads them', () => {
  const model = modelOf(sampleRun)
  const facts = taskFacts(model, 3)
  assert.equal(facts?.name, 'add#3')
  assert.equal(facts?.state, 'done')
  assert.deepEqual(
    facts?.inputs.map(({ name, maker }) => [name, maker?.name]),
    [
      ['proj/a.fits', 'project#1'],
      ['proj/b.fits', 'project#2'],
    ],
  )
  assert.ok(facts?.story.some(line => line.includes('gave its lane back')))
  assert.ok(facts?.outputs[0]?.readers.some(({ name }) => name === 'jpeg#5'))
  assert.equal(taskFacts(model, 99), null)
})

test('tasks are found by number, name, file and state', () => {
  const model = modelOf(sampleRun)
  const names = (query: string): string[] => findTasks(model, query).map(({ name }) => name)
  assert.deepEqual(names('2'), ['project#2'])
  assert.deepEqual(names('add#3'), ['add#3'])
  assert.deepEqual(names('proj'), ['project#1', 'project#2'])
  assert.deepEqual(names('out.jpg'), ['jpeg#5'])
  assert.deepEqual(names('state:failed'), ['jpeg#5'])
  assert.deepEqual(names('nothing'), [])
})

test('the critical path goes back by the input that came last', () => {
  const model = modelOf(sampleRun)
  assert.deepEqual(
    criticalPath(model).map(({ name }) => name),
    ['project#2', 'add#3', 'jpeg#5'],
  )
  const graph = graphSection(model)
  assert.ok(graph.edges.some(({ from, to, count }) => from === 'k0' && to === 'k1' && count === 2))
  const near = nearGraph(model, 3, 1)
  assert.deepEqual(near.nodes.map(({ name }) => name).sort(), ['add#3', 'jpeg#5', 'project#1', 'project#2'])
})

test('states of tasks agree with the statistics, whatever happens', () => {
  fc.assert(
    fc.property(randomRun, ({ events }) => {
      const model = modelOf(events)
      const counts = new Map<string, number>()
      for (let task = 0; task <= model.tasks.last; task++) {
        if (!model.tasks.has(task)) continue
        const state = model.tasks.stateOf(task)
        counts.set(state, (counts.get(state) ?? 0) + 1)
      }
      const { total } = model.statistics
      for (const state of ['waiting', 'ready', 'running', 'blocked', 'done', 'failed', 'ignored'] as const)
        assert.equal(counts.get(state) ?? 0, total[state], state)
      for (const lane of model.lanes.rows)
        for (let i = 1; i < lane.size; i++) assert.ok(lane.starts.get(i) >= lane.starts.get(i - 1))
    }),
  )
})

test('tiles of each level have the same busy time as the slices', () => {
  const model = modelOf(manyTasks(3000, 3))
  const lane = model.lanes.rows[0]!
  let busy = 0
  for (let i = 0; i < lane.size; i++) busy += lane.ends.get(i) - lane.starts.get(i)
  const end = lane.ends.get(lane.size - 1)
  for (const level of [4, 6, 8, 11, 14]) {
    let found = 0
    for (let index = 0; index * tileMs(level) <= end; index++) {
      const row = tileRow(lane, level, index)
      assert.ok(row.length <= 256 * ITEM * 2)
      for (let at = 0; at < row.length; at += ITEM)
        found += ((row[at + 1]! / PARTS) * bucketMs(level) * row[at + 5]!) / 255
    }
    assert.ok(Math.abs(found - busy) < busy * 0.1, `level ${level}: ${found} of ${busy}`)
  }
  assert.ok(bucketMs(levelFor(3)) <= 3 && bucketMs(levelFor(3)) > 1.4)
})

test('a series keeps the amount that was spread, however long it gets', () => {
  const series = new Series(10)
  let sum = 0
  for (let i = 0; i < 500; i++) {
    series.spread(i * 100, i * 100 + 37, i)
    sum += i
  }
  const { width, values } = series.points(50_000)
  const found = values.reduce((total, value) => total + value * width, 0)
  assert.ok(values.length <= 512)
  assert.ok(Math.abs(found - sum) < sum * 0.01)
})

test('a series in which nothing happens any more reaches to the end', () => {
  const series = new Series(10)
  series.spread(0, 100, 5)
  const { width, values } = series.points(100_000)
  assert.ok(values.length * width >= 100_000)
})
