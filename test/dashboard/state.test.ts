import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { RunEvent } from '../../src/core/events.ts'
import { RunModel } from '../../src/report/dashboard/state/run-model.ts'
import { ReadyIo } from '../../src/report/dashboard/state/ready-io.ts'
import { Series } from '../../src/report/dashboard/state/series.ts'
import { ITEM, PARTS, bucketMs, levelFor, tileMs, tileRow } from '../../src/report/dashboard/state/tiles.ts'
import { nodesSection, dataSection, streamsSection } from '../../src/report/dashboard/sections/data.ts'
import { criticalPath, graphSection, nearGraph } from '../../src/report/dashboard/sections/graph.ts'
import { storageSection } from '../../src/report/dashboard/sections/storage.ts'
import { findTasks, taskFacts } from '../../src/report/dashboard/sections/task-facts.ts'
import { sampleRun } from '../report/sample-run.ts'
import { randomRun } from '../report/random-run.ts'
import { manyTasks } from './journal-of.ts'
import { richRun } from './rich-run.ts'

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

test('temporary files that were deleted are gone from the list and from their device; a kept task is done', () => {
  const events = [...richRun()]
  const end = events.pop() as RunEvent
  const before = modelOf(events)
  const version = [...before.versions.sized][0] as number
  const task = before.tasks.last
  const more: RunEvent[] = [
    { type: 'removed', at: 4000, version },
    { type: 'intermediate', at: 4000, bytes: 70, limit: 100 },
    {
      type: 'submitted',
      at: 4001,
      task: task + 1,
      kind: 0,
      parent: null,
      group: null,
      priority: 0,
      reads: [],
      writes: [],
    },
    { type: 'arguments', at: 4001, task: task + 1, text: '3, "a.txt"' },
    { type: 'ready', at: 4001, task: task + 1 },
    { type: 'kept', at: 4002, task: task + 1 },
    { type: 'control', at: 4003, action: 'pause', by: 'ada' },
  ]
  const model = modelOf([...events, ...more])
  assert.ok(dataSection(before, 4000).largest.some(row => row.version === version))
  const data = dataSection(model, 4100)
  assert.ok(!data.largest.some(row => row.version === version))
  assert.deepEqual([data.intermediate?.bytes, data.intermediate?.limit], [70, 100])
  assert.equal(model.tasks.stateOf(task + 1), 'done')
  assert.equal(taskFacts(model, task + 1)?.arguments, '3, "a.txt"')
  assert.equal(taskFacts(model, 1)?.arguments, 'none')
  assert.ok(model.isPaused)
  assert.match(model.notes.at(-1)?.text ?? '', /^ada paused the run/)
  for (const event of [{ ...more.at(-1), action: 'go-on' } as RunEvent, end]) model.observe(event)
  assert.ok(!model.isPaused)
})

test('tasks that wait for room are told from those that wait for bandwidth', () => {
  const ready = new ReadyIo()
  for (let i = 0; i < 3; i++) ready.add(1, true)
  ready.add(2, true)
  ready.told(1, 11, 'room')
  ready.told(2, 12, 'device')
  assert.deepEqual([ready.all, ready.forRoom], [4, 3])
  ready.told(1, 11, 'executor')
  assert.equal(ready.forRoom, 0)
})

test('tasks with a CPU that are held back by a bound wait for room, as long as one of which it was told', () => {
  const ready = new ReadyIo()
  for (let i = 0; i < 4; i++) ready.add(1, false)
  assert.deepEqual([ready.all, ready.forRoom], [0, 0])
  for (const task of [11, 12]) ready.told(1, task, 'room')
  assert.deepEqual([ready.all, ready.forRoom], [4, 4])
  ready.remove(1, 11)
  assert.deepEqual([ready.all, ready.forRoom], [3, 3])
  ready.remove(1, 12)
  assert.deepEqual([ready.all, ready.forRoom], [0, 0])
})

/** A run of one task that makes these versions, and of which these come before its end. */
function* releasing(writes: readonly number[], released: readonly number[]): Generator<RunEvent> {
  const [start] = sampleRun
  if (start) yield start
  yield { type: 'kind-defined', at: 0, kind: 0, name: 'count', form: 'function', module: '/home/ada/app.ts' }
  const submitted = { type: 'submitted', at: 0, kind: 0, parent: null, group: null, priority: 0 } as const
  yield { ...submitted, task: 1, reads: [], writes: [...writes] }
  yield { ...submitted, task: 2, reads: [writes[0] ?? 0], writes: [] }
  yield { type: 'started', at: 1, task: 1, attempt: 1, node: 0, lane: 0, cpus: 1 }
  for (const version of released) yield { type: 'released', at: 2, task: 1, version }
}

test('a generator has as many values as it yielded; the stream that holds them is none of them', () => {
  const rows = (writes: number[], released: number[]): [number, string[]][] =>
    streamsSection(modelOf(releasing(writes, released)), 10).streams.map(({ frontier, consumers }) => [
      frontier,
      consumers.map(({ name }) => name),
    ])
  // The stream comes with the first value, or before it where a task that was called makes the value.
  assert.deepEqual(rows([1], [10, 1, 11, 12]), [[3, ['count#2']]])
  assert.deepEqual(rows([1], [1, 10]), [[1, ['count#2']]])
  assert.deepEqual(rows([1], [1]), [])
  // Results that a task passes on by ready have names from the start.
  assert.deepEqual(rows([1, 2, 3], [1, 2]), [[2, ['count#2']]])
})

test('a task that reads a growing file only when it is complete is one of its consumers, and waits', () => {
  const model = new RunModel()
  const [start] = sampleRun
  const task = { kind: 1, parent: null, group: null, priority: 0 }
  const path = '/home/ada/sky/grow.dat'
  const files = [{ version: 1, path }]
  const events: RunEvent[] = [
    start as RunEvent,
    { type: 'kind-defined', at: 0, kind: 1, name: 'job', form: 'command', module: '' },
    { type: 'submitted', at: 1, task: 1, ...task, reads: [], writes: [1], files },
    { type: 'submitted', at: 1, task: 2, ...task, reads: [1], writes: [2], files },
    { type: 'stream', at: 2, path, state: 'growing', bytes: 10, producers: ['job#1'], readers: [] },
  ]
  for (const event of events) model.observe(event)
  const { streams, waits } = streamsSection(model, 3)
  assert.deepEqual(streams[0]?.consumers, [{ name: 'job#2', waits: true }])
  assert.deepEqual(waits, ['job#2 waits for the end of job#1'])
})

test('a node that runs one long task is in use before that has ended', () => {
  const model = new RunModel()
  const submitted = { kind: 1, parent: null, group: null, priority: 0, reads: [], writes: [1] }
  const events: RunEvent[] = [
    sampleRun[0] as RunEvent,
    { type: 'kind-defined', at: 0, kind: 1, name: 'job', form: 'command', module: '' },
    { type: 'submitted', at: 0, task: 1, ...submitted },
    { type: 'ready', at: 0, task: 1 },
    { type: 'started', at: 0, task: 1, attempt: 1, node: 0, lane: 0, cpus: 1 },
  ]
  for (const event of events) model.observe(event)
  assert.equal(nodesSection(model, 100).nodes[0]?.busyShare, 0.5)
  model.observe({ type: 'finished', at: 100, task: 1, attempt: 1 })
  assert.equal(nodesSection(model, 200).nodes[0]?.busyShare, 0.25)
})

test('after the end of a run nothing waits: devices are idle, and a stream that was not committed is cut off', () => {
  const model = new RunModel()
  for (const event of richRun()) {
    model.observe(event)
    if (event.type !== 'stream') continue
    const [stream] = streamsSection(model, event.at).streams
    assert.equal(stream?.state, 'growing')
  }
  const { streams, waits } = streamsSection(model, 3700)
  const file = streams.find(({ name }) => name.endsWith('grow.dat'))
  assert.deepEqual([file?.state, file?.rate, waits], ['cut off', 0, []])
  assert.ok(file?.consumers.every(consumer => !consumer.waits))
  const [device] = storageSection(model, 3700).devices
  assert.deepEqual([device?.running, device?.waiting], [0, 0])
})

test('a move that failed and one that was not needed any more are told apart', () => {
  const move = { type: 'move', at: 3600, why: 'flush', version: 2, from: 0, to: 1, bytes: 5 } as const
  const model = modelOf(richRun())
  model.observe({ ...move, move: 2, phase: 'failed', reason: 'no space left' })
  model.observe({ ...move, move: 3, phase: 'dropped', reason: 'the run ends' })
  const { moved, recent } = storageSection(model, 3700)
  assert.deepEqual([moved.failed, moved.dropped, moved.flush.files], [1, 1, 1])
  assert.deepEqual(
    recent.slice(0, 2).map(({ phase, reason }) => [phase, reason]),
    [
      ['dropped', 'the run ends'],
      ['failed', 'no space left'],
    ],
  )
})

test('large values are among the data until they are dropped, with the node that has them and the tasks that wait', () => {
  const submitted = { kind: 1, parent: null, group: null, priority: 0 }
  const model = modelOf([
    { ...(sampleRun[0] as Extract<RunEvent, { type: 'run-started' }>), at: 0 },
    { type: 'kind-defined', at: 0, kind: 1, name: 'job', form: 'function', module: '' },
    { type: 'submitted', at: 0, task: 1, ...submitted, reads: [], writes: [1] },
    { type: 'submitted', at: 0, task: 2, ...submitted, reads: [1], writes: [2] },
    { type: 'ready', at: 0, task: 1 },
    { type: 'started', at: 0, task: 1, attempt: 1, node: 0, lane: 0, cpus: 1 },
    { type: 'finished', at: 5, task: 1, attempt: 1 },
    { type: 'value', at: 5, version: 1, bytes: 3e6, stays: true },
  ])
  const seen = (): unknown[] =>
    dataSection(model, 9).largest.map(({ version, isValue, bytes, maker, holders, place }) => {
      return [version, isValue, bytes, maker?.name, holders.map(({ name }) => name), place]
    })
  const node = model.nodes[0]?.name
  assert.deepEqual(seen(), [[1, true, 3e6, 'job#1', ['job#2'], node]])
  for (const event of [
    { type: 'ready', at: 6, task: 2 },
    { type: 'started', at: 6, task: 2, attempt: 1, node: 0, lane: 0, cpus: 1 },
    { type: 'finished', at: 7, task: 2, attempt: 1 },
    { type: 'value', at: 7, version: 2, bytes: 1e6 },
  ] as const)
    model.observe(event)
  assert.deepEqual(seen(), [
    [1, true, 3e6, 'job#1', [], node],
    [2, true, 1e6, 'job#2', [], null],
  ])
  model.observe({ type: 'value', at: 8, version: 1, bytes: 0 })
  assert.deepEqual(dataSection(model, 9).values, { count: 1, bytes: 1e6, most: 4e6 })
  assert.deepEqual(dataSection(model, 9).files, { count: 0, bytes: 0 })
  model.observe({ type: 'run-ended', at: 9, outcome: 'ok' })
  assert.deepEqual(seen(), [])
  assert.deepEqual(dataSection(model, 9).values, { count: 0, bytes: 0, most: 4e6 })
})

test('a node has its last measurement, and none before the first', () => {
  const model = modelOf(sampleRun.slice(0, 1))
  assert.equal(nodesSection(model, 1).nodes[0]?.measured, null)
  const use = { rss: 3e8, available: 5e9, memory: 8e9, load: 1.25 }
  model.observe({ type: 'measured', at: 1, node: 0, ...use, rss: 1 })
  model.observe({ type: 'measured', at: 2, node: 0, ...use })
  assert.deepEqual(nodesSection(model, 3).nodes[0]?.measured, use)
})
