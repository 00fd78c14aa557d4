import assert from 'node:assert/strict'
import test from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import type { RunEvent } from '../../src/core/events.ts'
import { width } from '../../src/report/text.ts'
import { FakeTerminal } from './fake-terminal.ts'
import { randomRun } from './random-run.ts'
import { runStarted, sampleRun, submitted } from './sample-run.ts'

const journal = '.millrace/runs/brisk-otter/journal'

const block = [
  'failed jpeg#5 out.jpg at 3.5s',
  '  cause    ExitError: mJPEG ended with exit code 1 [MR_EXIT_CODE]',
  '  command  mJPEG -gray mosaic.fits out.jpg',
  '  cwd      /home/ada/sky',
  '  output   2 lines',
  '  | reading mosaic.fits',
  '  | no such plane',
  '  log      .millrace/runs/brisk-otter/logs/5.1.log',
  '  rerun    cd /home/ada/sky && mJPEG -gray mosaic.fits out.jpg',
]

const summary = [
  'failed brisk-otter after 3.5s',
  '  tasks        4 ok, 1 failed, 1 cancelled, of 6',
  '  repeated     1 attempt failed and made again',
  '  parallelism  1.3 tasks at once, on average while any ran (2 cpus, 75% used)',
  '  slowest      project: 3.3s in 2 tasks, longest 2.0s',
  '  finding      13% of the running time was lost in attempts that did not succeed',
  '  warnings     1, above',
  `  journal      ${journal}`,
  '  details      millrace show brisk-otter',
]

function observeAll(fake: FakeTerminal, events: RunEvent[]): void {
  for (const event of events) fake.terminal.observe(event)
}

test('plain: a line per completion, the failure in full at once and in a line at the end', () => {
  const fake = new FakeTerminal({ mode: 'plain', journal })
  observeAll(fake, sampleRun)
  fake.terminal.closeSync()
  assert.deepEqual(fake.screen, [
    'run brisk-otter: mosaic.ts on 1 node, 2 cpus, policy fifo',
    '[0/3] retry project#2 b.fits (ExitError: mProject e…code 2 [MR_EXIT_CODE]) 100ms',
    '[1/3] ok project#1 a.fits 1.2s',
    '[2/3] ok project#2 b.fits 2.0s',
    '[3/4] ok shrink#4 300ms',
    '[4/4] ok add#3 902ms',
    'warning the mosaic has a hole',
    '[5/6] failed jpeg#5 out.jpg 500ms',
    ...block,
    '[6/6] cancelled publish#6 out.jpg (jpeg#5 failed)',
    ...summary,
    '',
    'failed jpeg#5 out.jpg: ExitError: mJPEG ended with exit code 1 [MR_EXIT_CODE]',
    '',
  ])
})

test('live: only what matters is printed above the block, which is gone at the end', () => {
  const fake = new FakeTerminal({ journal })
  for (const event of sampleRun) {
    fake.pass(Math.max(0, event.at + 1000 - fake.now))
    fake.terminal.observe(event)
  }
  fake.pass(1000)
  fake.terminal.closeSync()
  const [retry, ...rest] = fake.screen
  assert.match(retry!, /^\[0\/3\] retry project#2 b.fits \(ExitError.*\) 100ms$/)
  assert.deepEqual(rest, ['warning the mosaic has a hole', ...block, ...summary, '', ...block, ''])
  assert.equal(fake.timers, 0)
})

test('live: the block at 80 columns', () => {
  const fake = new FakeTerminal({})
  observeAll(fake, sampleRun.slice(0, 10))
  fake.pass(1500)
  assert.deepEqual(fake.screen, [
    'brisk-otter [0/3] 1.5s, 2 running, 1 waiting',
    '  [0/2] project 2 running',
    '  1 more kind, none running',
    '  ▸ project#1 a.fits 1.5s',
    '  ▸ project#2 b.fits 1.5s',
    '',
  ])
})

test('live: it is painted by a timer at most ten times a second, and only when it changes', () => {
  const fake = new FakeTerminal({})
  for (let round = 0; round < 50; round++) {
    observeAll(fake, sampleRun.slice(0, 10))
    assert.equal(fake.writes.length, 0)
  }
  fake.pass(50)
  assert.equal(fake.writes.length, 0)
  fake.pass(2000)
  assert.ok(fake.writes.length <= 20)
  const simulated = new FakeTerminal({})
  simulated.terminal.observe({ ...runStarted, simulated: true } as RunEvent)
  simulated.pass(1000)
  assert.equal(simulated.writes.length, 1)
  assert.match(simulated.text, /simulated/)
})

test('live: nothing that the program prints is lost or changed, however it comes', () => {
  const print = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', 'é') })
  const step = fc.record({ print, ms: fc.nat(250) })
  const property = fc.property(fc.array(step, { maxLength: 30 }), steps => {
    const fake = new FakeTerminal({ columns: 40, rows: 6 })
    observeAll(fake, sampleRun.slice(0, 10))
    for (const { print: text, ms } of steps) {
      fake.terminal.above(text)
      fake.pass(ms)
    }
    fake.terminal.closeSync()
    const printed = steps.map(({ print: text }) => text).join('')
    const shown = fake.screen.join('\n')
    assert.ok(shown.startsWith(printed), JSON.stringify({ printed, shown }))
  })
  fc.assert(property, { numRuns: 100 })
})

test('live: the start of a line is shown before its end comes, and after closing all goes straight out', () => {
  const fake = new FakeTerminal({})
  observeAll(fake, sampleRun.slice(0, 10))
  fake.pass(100)
  fake.terminal.above('working')
  fake.pass(100)
  assert.equal(fake.screen[0], 'working')
  fake.terminal.above(' done\n')
  assert.equal(fake.screen[0], 'working done')
  fake.terminal.closeSync()
  fake.terminal.closeSync()
  fake.terminal.above('last words')
  assert.equal(fake.screen.at(-1), 'last words')
})

test('live: the block never is taller or wider than the screen', () => {
  const size = fc.record({ columns: fc.integer({ min: 1, max: 120 }), rows: fc.integer({ min: 1, max: 30 }) })
  const property = fc.property(randomRun, size, fc.boolean(), ({ events }, { columns, rows }, unicode) => {
    const fake = new FakeTerminal({ columns, rows, unicode, color: true })
    const [first, ...rest] = events
    fake.terminal.observe(first!)
    for (const event of rest) {
      if (event.type === 'kind-defined')
        fake.terminal.observe({ ...event, name: `${event.name} with a long name` })
      else if (event.type !== 'failed') fake.terminal.observe(event)
    }
    fake.pass(3000)
    const lines = stripVTControlCharacters(fake.writes.at(-1)!).replace('\r', '').split('\n').slice(0, -1)
    assert.ok(lines.length <= Math.max(1, rows - 1))
    for (const line of lines) assert.ok(width(line) < Math.max(2, columns), line)
  })
  fc.assert(property, { numRuns: 100 })
})

test('live: kinds beyond the screen are counted, the busiest stay', () => {
  const fake = new FakeTerminal({ rows: 8, columns: 60 })
  const events: RunEvent[] = [runStarted]
  for (let kind = 0; kind < 12; kind++) {
    events.push({ type: 'kind-defined', at: 0, kind, name: `kind${kind}`, form: 'function', module: 'm' })
    for (let number = 0; number <= kind % 6; number++) {
      const task = kind * 10 + number
      const rest = { parent: null, group: null, priority: 0, reads: [], writes: [] }
      events.push({ type: 'submitted', at: 0, task, kind, ...rest })
      events.push({ type: 'started', at: 0, task, attempt: 1, node: 0, lane: task, cpus: 1 })
    }
  }
  observeAll(fake, events)
  fake.pass(1000)
  assert.deepEqual(fake.screen, [
    'brisk-otter [0/42] 1.0s, 42 running',
    '  [0/6] kind5  6 running',
    '  [0/6] kind11 6 running',
    '  10 more kinds, 30 running',
    '  ▸ kind0#0 1.0s',
    '  ▸ kind1#10 1.0s',
    '  ▸ kind1#11 1.0s',
    '',
  ])
})

test('names are cut in the middle and numbers never', () => {
  const fake = new FakeTerminal({ mode: 'plain', columns: 40, unicode: false })
  const name = 'a-name-that-is-much-too-long-for-this-line'
  observeAll(fake, [
    runStarted,
    { type: 'kind-defined', at: 0, kind: 0, name, form: 'function', module: 'm' },
    submitted(0, 1234567, 0, [], []),
    { type: 'started', at: 0, task: 1234567, attempt: 1, node: 0, lane: 0, cpus: 1 },
    { type: 'finished', at: 65_000, task: 1234567, attempt: 1 },
  ])
  assert.equal(fake.screen[1], '[1/1] ok a-name-...is-line#1234567 1m05s')
})

/** Tasks 1…count of kind 0, each taking 2 ms. */
function lives(first: number, count: number): RunEvent[] {
  return Array.from({ length: count }, (_, index) => first + index).flatMap(task => [
    submitted(0, task, 0, [], []),
    { type: 'started', at: 0, task, attempt: 1, node: 0, lane: 0, cpus: 1 },
    { type: 'finished', at: 2, task, attempt: 1 },
  ])
}

test('plain: above 20 completions a second they are counted, and it says so once', () => {
  const fake = new FakeTerminal({ mode: 'plain' })
  observeAll(fake, sampleRun.slice(0, 2))
  fake.pass(1000)
  observeAll(fake, lives(1, 100))
  fake.pass(1000)
  observeAll(fake, lives(101, 500))
  fake.pass(1000)
  observeAll(fake, lives(601, 3))
  fake.pass(2000)
  observeAll(fake, lives(604, 1))
  const lines = fake.screen.slice(1)
  assert.equal(lines[0], '[1/1] ok project#1 2ms')
  assert.equal(lines[19], '[20/20] ok project#20 2ms')
  assert.deepEqual(lines.slice(20), [
    'more than 20 tasks end per second: they are counted, a line per second and kind',
    '[100/100] ok project ×80 2ms each',
    '[600/600] ok project ×500 2ms each',
    '[603/603] ok project ×3 2ms each',
    '[604/604] ok project#604 2ms',
    '',
  ])
})

test('plain: a sign of life each 30 seconds', () => {
  const fake = new FakeTerminal({ mode: 'plain' })
  observeAll(fake, sampleRun.slice(0, 13))
  const before = fake.screen.length
  fake.pass(61_000)
  assert.deepEqual(fake.screen.slice(before - 1), [
    '[1/3] after 30.0s: 1 running, 0 ready, 1 waiting, 0 failed, ETA 651ms, slowest project#2 b.fits 29.9s',
    '[1/3] after 1m00s: 1 running, 0 ready, 1 waiting, 0 failed, ETA 651ms, slowest project#2 b.fits 59.9s',
    '',
  ])
})

test('output that is cut says how many lines there are, and where they are missing', () => {
  const fake = new FakeTerminal({ mode: 'plain' })
  fake.terminal.observe(runStarted)
  const failure = { name: 'Error', message: 'no', tail: 'a\nb\nz\n', tailCut: { first: 2, lines: 52 } }
  observeAll(fake, lives(1, 1).slice(0, 2))
  fake.terminal.observe({ type: 'failed', at: 1, task: 1, attempt: 1, failure, next: 'fail' })
  const at = fake.screen.indexOf('  output   3 of 52 lines')
  assert.deepEqual(fake.screen.slice(at + 1, at + 5), ['  | a', '  | b', '  | …', '  | z'])
})

for (const mode of ['plain', 'live'] as const) {
  test(`${mode}: a flood of failures stays readable`, () => {
    const fake = new FakeTerminal({ mode })
    fake.terminal.observe(runStarted)
    const failure = {
      name: 'Error',
      message: 'no',
      stack: 'Error: no\n    at f (/a.ts:1:2)\n    at node:internal/x',
    }
    for (let task = 1; task <= 500; task++) {
      observeAll(fake, lives(task, 1).slice(0, 2))
      fake.terminal.observe({ type: 'failed', at: 1, task, attempt: 1, failure, next: 'fail' })
    }
    fake.terminal.observe({ type: 'run-ended', at: 2, outcome: 'failed' })
    fake.terminal.closeSync()
    const lines = fake.screen
    assert.ok(lines.length < 200)
    assert.equal(lines.at(-2), 'and 480 more failures, all in the journal')
    assert.equal(lines.at(-3), 'failed kind 0#20: Error: no')
    assert.ok(lines.includes('           at f (/a.ts:1:2)'))
    assert.ok(lines.includes(`  rerun    millrace run mosaic.ts -- --size '2 deg'`))
  })
}

test('signals, dead threads and notes are told', () => {
  const fake = new FakeTerminal({ mode: 'plain' })
  observeAll(fake, [
    runStarted,
    { type: 'note', at: 1, level: 'info', text: 'hello' },
    { type: 'thread-died', at: 1, node: 0, lane: 3, reason: 'out of memory' },
    { type: 'interrupted', at: 1, signal: 'SIGINT', times: 1 },
    { type: 'interrupted', at: 1, signal: 'SIGINT', times: 2 },
    { type: 'run-ended', at: 2, outcome: 'interrupted', message: 'stopped by SIGINT' },
  ])
  fake.terminal.closeSync()
  assert.deepEqual(fake.screen.slice(1), [
    'hello',
    'warning thread 3 died: out of memory',
    'SIGINT nothing new is started, running tasks are waited for; once more kills them',
    'SIGINT again: running tasks are killed',
    'interrupted brisk-otter after 2ms',
    '               stopped by SIGINT',
    '  tasks        0 ok, of 0',
    '',
  ])
})

test('at a signal, the tasks that still run are named, the longest first', () => {
  const fake = new FakeTerminal({ mode: 'plain' })
  const events: RunEvent[] = [runStarted]
  for (let task = 1; task <= 7; task++) {
    events.push(
      {
        type: 'submitted',
        at: 0,
        task,
        kind: 0,
        parent: null,
        group: null,
        priority: 0,
        reads: [],
        writes: [],
      },
      { type: 'started', at: 10 - task, task, attempt: 1, node: 0, lane: task, cpus: 1 },
    )
  }
  observeAll(fake, [...events, { type: 'interrupted', at: 5000, signal: 'SIGINT', times: 1 }])
  fake.terminal.closeSync()
  const line = fake.screen.find(text => text.includes('still running')) ?? ''
  assert.deepEqual(line.match(/#\d+/g), ['#7', '#6', '#5', '#4', '#3'])
  assert.match(line, /^ {2}still running: .*#7 5\.0s, .*, 2 more$/)
})

test('json: each event is a line, what the program prints is one too, and nothing else', () => {
  const fake = new FakeTerminal({ mode: 'json', color: true })
  observeAll(fake, sampleRun)
  fake.pass(100)
  assert.equal(fake.writes.length, 1)
  fake.terminal.above('hi\n')
  fake.terminal.closeSync()
  const lines = fake.text.trimEnd().split('\n')
  assert.deepEqual(
    lines.map(line => JSON.parse(line) as unknown),
    [...sampleRun, { type: 'printed', text: 'hi\n' }],
  )
})

test('none: nothing but what the program prints', async () => {
  const fake = new FakeTerminal({ mode: 'none' })
  observeAll(fake, sampleRun)
  fake.terminal.above('hi')
  await fake.terminal.close()
  assert.equal(fake.text, 'hi')
})

test('colours have a meaning and can be left out', () => {
  const [colored, plain] = [true, false].map(color => {
    const fake = new FakeTerminal({ mode: 'plain', color })
    observeAll(fake, sampleRun)
    fake.terminal.closeSync()
    return fake.text
  })
  assert.ok(colored!.includes('\u001b[31mfailed\u001b[39m'))
  assert.ok(!plain!.includes('\u001b'))
  assert.equal(stripVTControlCharacters(colored!), plain)
})

test('live: files that stream, with their rate and who waits; complete ones go', () => {
  const fake = new FakeTerminal({ mode: 'live' })
  const stream = (at: number, path: string, bytes: number, more: object = {}): RunEvent => ({
    type: 'stream',
    at,
    path,
    state: 'growing',
    bytes,
    producers: ['make'],
    readers: [{ name: 'add', waits: null }],
    ...more,
  })
  const seen = (): string[] => fake.screen.filter(line => line.startsWith('  ~ '))
  const absent = { state: 'absent', readers: [{ name: 'add', waits: 'add waits for b, which make writes' }] }
  observeAll(fake, [runStarted, stream(0, 'a', 0), stream(0, 'b', 0, absent), stream(1000, 'a', 5_000_000)])
  fake.pass(2000)
  // 5 MB in the two seconds since the event before: the rate falls while nothing comes.
  assert.deepEqual(seen(), [
    '  ~ a make > add, 5.0 MB, 2.5 MB/s',
    '  ~ b make > add, not there yet, add waits',
  ])
  observeAll(fake, [stream(2000, 'a', 5_000_000, { state: 'committed' })])
  fake.pass(100)
  assert.deepEqual(seen(), ['  ~ b make > add, not there yet, add waits'])
  fake.terminal.closeSync()
})
