import type { RunEvent } from '../../src/core/events.ts'

export const runStarted: RunEvent = {
  type: 'run-started',
  at: 0,
  run: 'brisk-otter',
  version: '0.1.0',
  wallTime: '2026-11-02T10:00:00.000Z',
  program: 'mosaic.ts',
  args: ['--size', '2 deg'],
  cwd: '/home/ada/sky',
  pid: 1,
  nodes: [{ name: 'n1', cpus: 2, memory: 8e9 }],
  policy: 'fifo',
  simulated: false,
}

/**
 * Two `project` tasks feed an `add`, which calls a nested `shrink` and waits for it. The second project
 * fails once; a `jpeg` then fails for good and a `publish` is cancelled because of it.
 */
export const sampleRun: RunEvent[] = [
  runStarted,
  {
    type: 'kind-defined',
    at: 0,
    kind: 0,
    name: 'project',
    form: 'command',
    module: '/home/ada/sky/tasks.ts',
  },
  { type: 'kind-defined', at: 0, kind: 1, name: 'add', form: 'function', module: '/home/ada/sky/tasks.ts' },
  submitted(
    1,
    1,
    0,
    [1],
    [2],
    [
      [1, 'raw/a.fits'],
      [2, 'proj/a.fits'],
    ],
  ),
  { type: 'ready', at: 1, task: 1 },
  submitted(
    2,
    2,
    0,
    [3],
    [4],
    [
      [3, 'raw/b.fits'],
      [4, 'proj/b.fits'],
    ],
  ),
  { type: 'ready', at: 2, task: 2 },
  submitted(3, 3, 1, [2, 4], [5]),
  { type: 'started', at: 4, task: 1, attempt: 1, node: 0, lane: 0, cpus: 1 },
  { type: 'started', at: 5, task: 2, attempt: 1, node: 0, lane: 1, cpus: 1 },
  {
    type: 'failed',
    at: 105,
    task: 2,
    attempt: 1,
    failure: {
      name: 'ExitError',
      message: 'mProject ended with exit code 2',
      exitCode: 2,
      code: 'MR_EXIT_CODE',
    },
    next: 'retry',
  },
  { type: 'started', at: 106, task: 2, attempt: 2, node: 0, lane: 1, cpus: 1 },
  { type: 'finished', at: 1204, task: 1, attempt: 1 },
  { type: 'committed', at: 1204, version: 2, bytes: 2_097_152 },
  { type: 'finished', at: 2106, task: 2, attempt: 2 },
  { type: 'committed', at: 2106, version: 4, bytes: 0 },
  { type: 'ready', at: 2106, task: 3 },
  { type: 'started', at: 2110, task: 3, attempt: 1, node: 0, lane: 0, cpus: 2, implementation: 'wide' },
  {
    type: 'kind-defined',
    at: 2150,
    kind: 2,
    name: 'shrink',
    form: 'function',
    module: '/home/ada/sky/tasks.ts',
  },
  { ...submitted(2200, 4, 2, [], [6]), parent: 3, group: 'small' },
  { type: 'ready', at: 2200, task: 4 },
  { type: 'blocked', at: 2210, task: 3, reason: 'waits for shrink#4' },
  { type: 'started', at: 2211, task: 4, attempt: 1, node: 0, lane: 0, cpus: 1 },
  { type: 'finished', at: 2511, task: 4, attempt: 1 },
  { type: 'resumed', at: 2512, task: 3, node: 0, lane: 1 },
  { type: 'finished', at: 3012, task: 3, attempt: 1 },
  { type: 'note', at: 3012, level: 'warning', text: 'the mosaic has a hole' },
  {
    type: 'kind-defined',
    at: 3013,
    kind: 3,
    name: 'jpeg',
    form: 'command',
    module: '/home/ada/sky/tasks.ts',
  },
  submitted(3014, 5, 3, [5], [7], [[7, 'out.jpg']]),
  { type: 'ready', at: 3014, task: 5 },
  {
    type: 'kind-defined',
    at: 3014,
    kind: 4,
    name: 'publish',
    form: 'function',
    module: '/home/ada/sky/tasks.ts',
  },
  submitted(3015, 6, 4, [7], [8], [[7, 'out.jpg']]),
  { type: 'started', at: 3016, task: 5, attempt: 1, node: 0, lane: 0, cpus: 1 },
  {
    type: 'failed',
    at: 3516.25,
    task: 5,
    attempt: 1,
    failure: {
      name: 'ExitError',
      message: 'mJPEG ended with exit code 1',
      code: 'MR_EXIT_CODE',
      exitCode: 1,
      command: 'mJPEG -gray mosaic.fits out.jpg',
      cwd: '/home/ada/sky',
      tail: 'reading mosaic.fits\n\u001b[31mno such plane\u001b[0m\n',
    },
    next: 'fail',
    log: '.millrace/runs/brisk-otter/logs/5.1.log',
  },
  { type: 'cancelled', at: 3516.25, task: 6, cause: 5, reason: 'jpeg#5 failed' },
  { type: 'run-ended', at: 3520, outcome: 'failed' },
]

export function submitted(
  at: number,
  task: number,
  kind: number,
  reads: number[],
  writes: number[],
  files?: [number, string][],
): Extract<RunEvent, { type: 'submitted' }> {
  const named = files && { files: files.map(([version, path]) => ({ version, path })) }
  return {
    type: 'submitted',
    at,
    task,
    kind,
    parent: null,
    group: null,
    priority: 0,
    reads,
    writes,
    ...named,
  }
}

export async function* stream(events: Iterable<RunEvent>): AsyncGenerator<RunEvent> {
  yield* events
}
