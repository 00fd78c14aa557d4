import fc from 'fast-check'
import type { FailureFacts, RunEvent, RunEventType } from '../../src/core/events.ts'

/** Also text that is not ASCII, that is not well formed, and that looks like a format. */
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('é', 'データ/入力.fits', '\ud800', 'a\nb', '"', '\u0000', '😀'),
)

/** Times as a clock gives them: whole microseconds, floats, and large ones. */
const at = fc.oneof(
  fc.nat(10_000_000).map(micros => micros / 1000),
  fc.double({ min: 0, max: 1e12, noNaN: true }).map(value => value + 0),
  fc.constantFrom(0, 0.001, 2 ** 53, 1e15),
)

const id = fc.oneof(fc.nat(200), fc.nat(), fc.maxSafeNat())
const size = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constantFrom(-1, 0.5, 2 ** 31, 2 ** 32, 1e300))
const ids = fc.array(id, { maxLength: 6 })
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(arbitrary, { nil: null })

const failure: fc.Arbitrary<FailureFacts> = fc.record(
  {
    name: text,
    message: text,
    code: text,
    stack: text,
    timedOut: fc.boolean(),
    exitCode: fc.integer(),
    signal: text,
    command: text,
    cwd: text,
    tail: text,
  },
  { requiredKeys: ['name', 'message'], noNullPrototype: true },
) as fc.Arbitrary<FailureFacts>

const usage = fc.record(
  { cpuMs: at, peakBytes: size, askedBytes: size, readBytes: size, writtenBytes: size },
  { noNullPrototype: true },
)

const steps = fc.record(
  { from: at, fetch: at, queue: at, decode: at, run: at, wait: at, encode: at, report: at, commit: at },
  { noNullPrototype: true },
)

function event<T extends RunEventType>(
  type: T,
  fields: Record<string, fc.Arbitrary<unknown>>,
  optional: string[] = [],
): fc.Arbitrary<RunEvent> {
  const model = { type: fc.constant(type), at, ...fields }
  const requiredKeys = Object.keys(model).filter(key => !optional.includes(key)) as (keyof typeof model)[]
  return fc.record(model, { requiredKeys, noNullPrototype: true }) as unknown as fc.Arbitrary<RunEvent>
}

/** One arbitrary per type. The type of the record makes a new event type a compile error here. */
export const arbitraries: Record<RunEventType, fc.Arbitrary<RunEvent>> = {
  'run-started': event(
    'run-started',
    {
      run: text,
      version: text,
      wallTime: text,
      program: text,
      args: fc.array(text, { maxLength: 3 }),
      again: text,
      cwd: text,
      pid: fc.nat(),
      nodes: fc.array(
        fc.record({ name: text, cpus: fc.nat(), memory: fc.maxSafeNat() }, { noNullPrototype: true }),
        {
          maxLength: 2,
        },
      ),
      policy: text,
      io: fc.record(
        { policy: text, flush: fc.constantFrom('off', 'idle', 'always'), prefetch: fc.boolean() },
        { noNullPrototype: true },
      ),
      simulated: fc.boolean(),
    },
    ['again', 'io'],
  ),
  'kind-defined': event('kind-defined', {
    kind: id,
    name: text,
    form: fc.constantFrom('function', 'command'),
    module: text,
  }),
  'demand-defined': event('demand-defined', {
    demand: id,
    cpus: fc.nat(),
    memory: size,
    tags: fc.array(text, { maxLength: 2 }),
    io: fc.boolean(),
    storage: maybe(
      fc.record(
        {
          bandwidth: maybe(fc.oneof(size, fc.constantFrom('auto', 'adaptive'))),
          direction: maybe(fc.constantFrom('read', 'write')),
          size: maybe(size),
          device: maybe(text),
        },
        { noNullPrototype: true },
      ),
    ),
  }),
  submitted: event(
    'submitted',
    {
      task: id,
      kind: id,
      demand: id,
      parent: maybe(id),
      group: maybe(fc.oneof(fc.constantFrom('g', 'h'), text)),
      priority: fc.oneof(fc.constant(0), fc.integer(), fc.constantFrom(1.5, Infinity, -Infinity, 2 ** 60)),
      reads: ids,
      writes: ids,
      files: fc.array(fc.record({ version: id, path: text }, { noNullPrototype: true }), { maxLength: 3 }),
      label: text,
    },
    ['files', 'demand', 'label'],
  ),
  'node-joined': event('node-joined', {
    node: fc.nat(100),
    name: text,
    cpus: fc.nat(),
    memory: fc.maxSafeNat(),
  }),
  'node-left': event('node-left', { node: fc.nat(100), isLost: fc.boolean(), reason: text }),
  ready: event('ready', { task: id }),
  started: event(
    'started',
    {
      task: id,
      attempt: fc.nat(),
      node: fc.nat(),
      lane: fc.nat(),
      cpus: size,
      implementation: text,
      device: fc.nat(),
    },
    ['implementation', 'device'],
  ),
  blocked: event('blocked', { task: id, reason: text }),
  resumed: event('resumed', { task: id, node: fc.nat(), lane: fc.nat() }),
  kept: event('kept', { task: id }),
  finished: event(
    'finished',
    { task: id, attempt: fc.nat(), usage, steps, kept: fc.constant(true as const) },
    ['usage', 'steps', 'kept'],
  ),
  failed: event(
    'failed',
    {
      task: id,
      attempt: fc.nat(),
      failure,
      next: fc.constantFrom('retry', 'fail', 'ignore', 'cancelSuccessors'),
      log: text,
    },
    ['log'],
  ),
  cancelled: event('cancelled', { task: id, cause: maybe(id), reason: text }),
  returned: event('returned', { task: id, reason: text }),
  released: event('released', { task: id, version: id }),
  committed: event('committed', { version: id, bytes: size }),
  found: event('found', { version: id, bytes: size }),
  'thread-died': event('thread-died', { node: fc.nat(), lane: fc.nat(), reason: text }),
  device: event('device', {
    device: fc.nat(),
    read: size,
    write: size,
    used: size,
    running: fc.nat(),
    waiting: fc.nat(),
  }),
  'device-failed': event('device-failed', { device: fc.nat(), reason: text }),
  waits: event('waits', { task: id, reason: text, lacks: fc.constantFrom('room', 'executor', 'device') }, [
    'lacks',
  ]),
  trial: event('trial', { kind: id, device: fc.nat(), bandwidth: size, concurrency: fc.nat(), mean: at }),
  verdict: event(
    'verdict',
    {
      kind: id,
      device: fc.nat(),
      bandwidth: size,
      concurrency: fc.nat(),
      learned: fc.nat(),
      waiting: fc.nat(),
      reason: text,
    },
    ['waiting'],
  ),
  move: event(
    'move',
    {
      move: id,
      phase: fc.constantFrom('started', 'done', 'failed', 'dropped'),
      why: fc.constantFrom('flush', 'prefetch'),
      version: id,
      from: fc.nat(),
      to: fc.nat(),
      bytes: size,
      reason: text,
    },
    ['reason'],
  ),
  stream: event('stream', {
    path: text,
    state: fc.constantFrom('absent', 'growing', 'committed', 'failed'),
    bytes: size,
    producers: fc.array(text, { maxLength: 3 }),
    readers: fc.array(fc.record({ name: text, waits: maybe(text) }, { noNullPrototype: true }), {
      maxLength: 3,
    }),
  }),
  value: event('value', { version: id, bytes: size, stays: fc.constant(true) }, ['stays']),
  measured: event('measured', { node: id, rss: size, available: size, memory: size, load: at }),
  removed: event('removed', { version: id }),
  intermediate: event('intermediate', { bytes: size, limit: size }),
  arguments: event('arguments', { task: id, text }),
  control: event(
    'control',
    {
      action: fc.constantFrom('pause', 'go-on', 'stop', 'cancel', 'priority'),
      by: text,
      task: id,
      what: text,
      count: fc.nat(),
      priority: fc.integer(),
    },
    ['task', 'what', 'count', 'priority'],
  ),
  note: event('note', { level: fc.constantFrom('info', 'warning'), text }),
  interrupted: event('interrupted', { signal: text, times: fc.nat() }),
  'run-ended': event(
    'run-ended',
    { outcome: fc.constantFrom('ok', 'failed', 'interrupted'), message: text },
    ['message'],
  ),
}

export const anyEvent: fc.Arbitrary<RunEvent> = fc.oneof(...Object.values(arbitraries))
