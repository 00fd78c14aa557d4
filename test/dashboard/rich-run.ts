import type { RunEvent } from '../../src/core/events.ts'
import { runStarted, sampleRun } from '../report/sample-run.ts'

/** The sample run with devices, moves, trials, streams and a second node: something for every view. */
export function* richRun(): Generator<RunEvent> {
  for (const event of sampleRun) {
    if (event.type === 'run-started') {
      yield {
        ...runStarted,
        nodes: [
          { name: 'n1', cpus: 2, memory: 8e9 },
          { name: 'n2', cpus: 2, memory: 8e9 },
        ],
        devices: [
          { name: 'nvme', path: '/nvme', node: 0, read: 4e8, write: 3e8, capacity: 1e9 },
          { name: 'disk', path: '/work', node: null, read: null, write: 1e8, capacity: null },
        ],
        io: { policy: 'fcfs', flush: 'always', prefetch: false },
      } as RunEvent
      continue
    }
    if (event.type === 'run-ended') yield* extras()
    yield event
  }
}

function* extras(): Generator<RunEvent> {
  const at = 3600
  for (let i = 0; i < 20; i++) {
    const state = { read: 1e7 * i, write: 2e8 - 1e6 * i, used: 4e7 * i, running: 3, waiting: i % 5 }
    yield { type: 'device', at: 100 * i, device: 0, ...state }
  }
  for (const [concurrency, mean] of [
    [1, 120],
    [2, 80],
    [4, 95],
    [4, 100],
  ] as const)
    yield { type: 'trial', at: at + concurrency, kind: 0, device: 0, bandwidth: 1e8, concurrency, mean }
  yield {
    type: 'verdict',
    at: at + 5,
    kind: 0,
    device: 0,
    bandwidth: 1.5e8,
    concurrency: 2,
    learned: 12,
    reason: '2 at a time took least',
  }
  yield { type: 'move', at, move: 1, phase: 'started', why: 'flush', version: 2, from: 0, to: 1, bytes: 2e6 }
  yield {
    type: 'move',
    at: at + 90,
    move: 1,
    phase: 'done',
    why: 'flush',
    version: 2,
    from: 0,
    to: 1,
    bytes: 2e6,
  }
  const stream = { type: 'stream', path: 'out/grow.dat', state: 'growing' } as const
  for (let i = 0; i < 5; i++)
    yield {
      ...stream,
      producers: ['make'],
      at: at + i * 20,
      bytes: i * 1e6,
      readers: [{ name: 'use', waits: 'use waits for make' }],
    }
  yield { type: 'measured', at: at + 50, node: 0, rss: 3e8, available: 5e9, memory: 8e9, load: 1.25 }
  yield { type: 'released', at: at + 50, task: 3, version: 900 }
  yield { type: 'value', at: at + 50, version: 900, bytes: 3e6, stays: true }
}
