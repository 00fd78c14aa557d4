import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { DeviceStatistics } from '../../src/report/statistics/device-statistics.ts'
import { traceText } from '../../src/report/export/trace.ts'

const facts = { node: 0, read: 1e9, write: 1e6 * 100, capacity: 1e9 }
const events: RunEvent[] = [
  {
    type: 'run-started',
    at: 0,
    run: 'calm-mill',
    version: '0',
    wallTime: '2026-01-01T00:00:00Z',
    program: 'app.ts',
    args: [],
    cwd: '/',
    pid: 1,
    nodes: [{ name: 'n', cpus: 2, memory: 1, ioExecutors: 8 }],
    devices: [
      { name: 'nvme', path: '/nvme', ...facts },
      { name: 'disk', path: '/disk', ...facts, capacity: null },
    ],
    policy: 'fifo',
    simulated: false,
  },
  { type: 'kind-defined', at: 0, kind: 1, name: 'save', form: 'function', module: 'm' },
  { type: 'device', at: 1, device: 0, read: 0, write: 1e6 * 25, used: 512e6, running: 3, waiting: 12 },
  { type: 'trial', at: 2, kind: 1, device: 0, bandwidth: 1e6, concurrency: 8, mean: 250 },
  { type: 'trial', at: 3, kind: 1, device: 0, bandwidth: 2e6, concurrency: 4, mean: 110 },
  {
    type: 'verdict',
    at: 4,
    kind: 1,
    device: 0,
    bandwidth: 2e6,
    concurrency: 4,
    learned: 12,
    reason: 'it takes least time for all',
  },
  { type: 'device-failed', at: 5, device: 1, reason: 'is full' },
  {
    type: 'move',
    at: 6,
    move: 1,
    phase: 'started',
    why: 'flush',
    version: 1,
    from: 0,
    to: 1,
    bytes: 1e6,
  },
  { type: 'move', at: 7, move: 1, phase: 'done', why: 'flush', version: 1, from: 0, to: 1, bytes: 1e6 },
]

function seen(): DeviceStatistics {
  const devices = new DeviceStatistics()
  for (const event of events) devices.observe(event)
  return devices
}

test('a busy device has a line with its bandwidth, its queue and its room; an idle one has none', () => {
  assert.deepEqual(seen().busy(), [
    {
      name: 'nvme',
      fields: ['3 running', 'writes 25.0 MB of 100 MB/s', '12 waiting', '512 MB of 1.0 GB'],
    },
  ])
})

test('the verdict of learning is one sentence', () => {
  assert.deepEqual(seen().verdicts(), ['save on nvme: 4 at a time, 2.0 MB/s each, learned from 12 tasks'])
})

test('what was tried, decided, lost and moved can be explained', () => {
  assert.deepEqual(seen().explain(), [
    'save on nvme',
    '  tried 8 at a time, 1.0 MB/s each: 250ms per task',
    '  tried 4 at a time, 2.0 MB/s each: 110ms per task',
    '  took 4 at a time, 2.0 MB/s each: it takes least time for all',
    'disk was left out: is full',
    'moved 1 file between devices, 1.0 MB',
  ])
})

test('a kind whose limit was to be learned and was not says why', () => {
  const devices = seen()
  const storage = { bandwidth: 'auto' as const, direction: null, size: null, device: null }
  devices.observe({ type: 'kind-defined', at: 0, kind: 2, name: 'load', form: 'function', module: 'm' })
  devices.observe({ type: 'kind-defined', at: 0, kind: 3, name: 'rare', form: 'function', module: 'm' })
  devices.observe({
    type: 'demand-defined',
    at: 8,
    demand: 1,
    cpus: 0,
    memory: 0,
    tags: [],
    io: true,
    storage,
  })
  const rest = { type: 'submitted', at: 8, demand: 1, parent: null, group: null, priority: 0 } as const
  for (let task = 1; task <= 40; task++) {
    for (const kind of task % 10 === 0 ? [1, 2, 3] : [1, 2])
      devices.observe({ ...rest, task, kind, reads: [], writes: [] })
  }
  assert.deepEqual(
    devices.explain().filter(line => line.includes('no limit')),
    [
      'load: no limit was tried, of its 40 tasks hardly two waited at one time',
      'rare: no limit was tried, 4 tasks are too few',
    ],
  )
})

test('a limit that is tried again counts as it was last', () => {
  const devices = seen()
  devices.observe({ type: 'trial', at: 8, kind: 1, device: 0, bandwidth: 4e6, concurrency: 4, mean: 55 })
  const tried = devices.explain().filter(line => line.includes('tried'))
  assert.deepEqual(tried, [
    '  tried 8 at a time, 1.0 MB/s each: 250ms per task',
    '  tried 4 at a time, 4.0 MB/s each: 55ms per task',
  ])
})

test('a trace has counters per device, and lanes of I/O tasks say so', async () => {
  async function* all(): AsyncGenerator<RunEvent> {
    yield* events
    yield {
      type: 'submitted',
      at: 8,
      task: 1,
      kind: 1,
      parent: null,
      group: null,
      priority: 0,
      reads: [],
      writes: [],
    }
    yield { type: 'started', at: 9, task: 1, attempt: 1, node: 0, lane: 3, cpus: 0, device: 0 }
    yield { type: 'finished', at: 10, task: 1, attempt: 1 }
  }
  let text = ''
  for await (const piece of traceText(all())) text += piece
  const { traceEvents } = JSON.parse(text) as { traceEvents: { ph: string; name: string; args: object }[] }
  const counters = traceEvents.filter(({ ph, name }) => ph === 'C' && name.startsWith('nvme'))
  assert.deepEqual(
    counters.map(({ name, args }) => [name, args]),
    [
      ['nvme MB/s', { read: 0, write: 25 }],
      ['nvme MB', { used: 512 }],
      ['nvme tasks', { running: 3, waiting: 12 }],
    ],
  )
  assert.ok(
    traceEvents.some(({ name, args }) => name === 'thread_name' && 'name' in args && args.name === 'I/O 1'),
  )
})
