import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { sample } from './wf-sample.ts'

const PLATFORM = `
nodes:
  - name: n
    count: 2
    cpus: 4
    memory: 64GB
    ioExecutors: 100
    storage:
      - { name: ssd, bandwidth: 100MB/s, streamBandwidth: 25MB/s, capacity: 1TB }
`

const PROGRAM = `
import { task, main, waitOn, barrier, group, FILE_OUT, IN } from 'millrace'
export const compute = task({ cost: { compute: (i: number) => 10 + i, returns: (i: number) => 2 * i } },
  (i: number): number => { throw new Error('never run ' + i) })
export const save = task({ io: true, params: [IN, FILE_OUT], bandwidth: 50, size: '100MB' },
  async (_x: number, _path: string) => { throw new Error('never run') })
main(async () => {
  const values = [0, 1, 2, 3].map(i => compute(i))
  const [, , third] = await waitOn(values)
  console.log('third is', third)
  await group('saves', () => { values.forEach((value, i) => save(value, 'out' + i)) })
  compute(third as number)
  await barrier()
})
`

const folder = makeFolder({
  'p.yaml': PLATFORM,
  'app.ts': PROGRAM,
  'flow.json': JSON.stringify(sample()),
  'one.yaml': 'nodes: [{ name: n, cpus: 1 }]',
  'two.yaml': 'nodes: [{ name: n, cpus: 2 }]',
  'real.ts': `
import { task, main, waitOn } from 'millrace'
export const wait = task({ name: 'wait' }, (ms: number) => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  return ms
})
main(async () => { await waitOn([1, 2, 3, 4].map(() => wait(100))) })
`,
  'machine.json': JSON.stringify({
    nodes: [{ storage: [{ name: 'disk', path: 'out', bandwidth: '2000MB/s', capacity: '1GB' }] }],
  }),
  'slow.yaml': 'nodes: [{ name: n, cpus: 2, storage: [{ name: disk, bandwidth: 1MB/s }] }]',
  'io.ts': `
import { task, main, barrier, FILE_IN, FILE_OUT } from 'millrace'
import { readFile, writeFile } from 'node:fs/promises'
export const save = task({ name: 'save', io: true, params: [FILE_OUT], bandwidth: 500, size: '2MB' },
  async (path: string) => { await writeFile(path, Buffer.alloc(2_000_000)) })
export const count = task({ name: 'count', params: [FILE_IN] }, async (path: string) => (await readFile(path)).length)
main(async () => {
  for (let i = 0; i < 3; i++) save('out/' + i)
  for (let i = 0; i < 3; i++) count('out/' + i)
  count('real.ts')
  await barrier()
})
`,
  'out/.keep': '',
  'no-cost.ts': `
import { task, main } from 'millrace'
export const f = task({ name: 'f' }, () => 1)
main(() => { f() })
`,
  'number.ts': `
import { task, main } from 'millrace'
export const f = task({ name: 'f', cost: 5 as never }, () => 1)
main(() => { f() })
`,
  'never.ts': `
import { main } from 'millrace'
main(() => new Promise(() => undefined))
`,
})

test('a program is simulated: main runs, tasks do not, and values are those that their costs say', async () => {
  const { code, stdout, stderr } = await millrace(folder, ['simulate', 'app.ts', '--platform', 'p.yaml'])
  assert.equal(code, 0, stderr)
  assert.match(stderr, /third is 4/)
  // 13 s of computing; 4 times 100 MB on one SSD, two at a time at 25 MB/s each; then 14 s.
  assert.match(stdout, /^done simulated-\w+ after 31\.0s \(simulated\)/)
  assert.match(stdout, /save +4 +4/)
})

test('equal input gives equal output, and another run gives another table of values', async () => {
  const sweep = ['simulate', 'app.ts', '--platform', 'p.yaml', '--sweep', 'bandwidth=25,50,100', '--json']
  const once = await millrace(folder, sweep)
  const again = await millrace(folder, sweep)
  assert.equal(once.code, 0, once.stderr)
  assert.equal(once.stdout, again.stdout)
  const spans = once.stdout
    .trim()
    .split('\n')
    .map(line => (JSON.parse(line) as { makespan: number }).makespan)
  assert.deepEqual(spans, [31, 31, 35])
})

test('policies are compared in a table, for a workflow instance', async () => {
  const { code, stdout, stderr } = await millrace(folder, [
    'simulate',
    'flow.json',
    '--platform',
    'p.yaml',
    '--compare',
    'fifo,lifo,lifo/fcfs/flush',
  ])
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^simulated +time +gain/)
  assert.equal(stdout.trim().split('\n').length, 4)
})

test('a recorded run is simulated with other CPUs, and runs and stories know it', async () => {
  const real = await millrace(folder, ['run', 'real.ts', '--cpus', '2', '--progress', 'none'])
  assert.equal(real.code, 0, real.stderr)
  const span = async (platform: string): Promise<number> => {
    const { stdout, stderr } = await millrace(folder, [
      'simulate',
      'last',
      '--platform',
      platform,
      '--json',
      '--no-journal',
    ])
    assert.notEqual(stdout, '', stderr)
    return (JSON.parse(stdout) as { makespan: number }).makespan
  }
  const [two, one] = [await span('two.yaml'), await span('one.yaml')]
  assert(one >= 0.4 && one > two, `${one} s on one CPU, ${two} s on two`)
  await millrace(folder, ['simulate', 'flow.json', '--platform', 'p.yaml'])
  const { stdout } = await millrace(folder, ['runs'])
  assert.match(stdout, /flow\.json \(simulated\)/)
  const story = await millrace(folder, ['story', 'join'])
  assert.match(story.stdout, /it finished/)
})

test('tasks of a workflow instance keep the ids that its file gives them', async () => {
  const files = ['--trace', 'ids.json', '--graph', 'ids.dot']
  const { code, stderr } = await millrace(folder, ['simulate', 'flow.json', '--platform', 'p.yaml', ...files])
  assert.equal(code, 0, stderr)
  for (const file of ['ids.json', 'ids.dot']) {
    const text = readFileSync(join(folder, file), 'utf8')
    for (const id of ['left_1', 'right_2', 'join_3']) assert.ok(text.includes(id), `${id} in ${file}`)
  }
  const story = await millrace(folder, ['story', 'right_2'])
  assert.match(story.stdout, /right#\d right_2/)
})

test('a recorded run is replayed on its own machine, and with a slower disk its files take longer', async () => {
  const real = await millrace(folder, ['run', 'io.ts', '--machine', 'machine.json', '--progress', 'none'])
  assert.equal(real.code, 0, real.stderr)
  const simulated = async (...words: string[]) => {
    const { stdout, stderr } = await millrace(folder, [
      'simulate',
      'last',
      '--json',
      '--no-journal',
      ...words,
    ])
    assert.notEqual(stdout, '', stderr)
    return JSON.parse(stdout) as { makespan: number; tasks: number; devices: { written: number }[] }
  }
  const here = await simulated()
  assert.equal(here.tasks, 7)
  const slow = await simulated('--platform', 'slow.yaml')
  // Where the disk of this machine took it all in no time, it went to memory, and takes no time there either.
  if (here.devices[0]?.written === 0) return
  assert.equal(here.devices[0]?.written, 6e6)
  assert(slow.makespan >= 6, `${slow.makespan} s`)
})

test('equal input gives equal bytes: results, journal, trace, graph and picture', async () => {
  let run = ''
  const made = async (): Promise<string[]> => {
    const words = ['simulate', 'app.ts', '--platform', 'p.yaml', '--json', '--seed', '7', '--jitter', '0.2']
    const files = ['--trace', 't.json', '--graph', 'g.dot', '--picture', 'p.svg']
    const { code, stdout, stderr } = await millrace(folder, [...words, ...files])
    assert.equal(code, 0, stderr)
    run = (JSON.parse(stdout) as { run: string }).run
    const journal = readFileSync(join(folder, '.millrace', 'runs', run, 'journal'), 'base64')
    const written = ['t.json', 'g.dot', 'p.svg'].map(one => readFileSync(join(folder, one), 'utf8'))
    return [stdout, journal, ...written]
  }
  const [once, again] = [await made(), await made()]
  assert.deepEqual(again, once)
  assert.match(once[2] ?? '', /simulated/, 'the trace says so')
  assert.match(once[3] ?? '', /simulated/, 'the graph says so')
  assert.match(once[4] ?? '', /simulated/, 'the picture says so')
  for (const words of [['show', run], ['story', 'save#5', run], ['runs'], ['explain', run]]) {
    const { stdout, stderr } = await millrace(folder, words)
    assert.match(stdout + stderr, /simulated/, `millrace ${words.join(' ')} says so`)
  }
})

const WRONG: [string, string[], RegExp][] = [
  ['no platform', ['flow.json'], /simulate needs a platform/],
  ['a task without a cost', ['no-cost.ts', '--platform', 'p.yaml'], /task f has no cost/],
  ['a cost that is a number', ['number.ts', '--platform', 'p.yaml'], /task f: cost is 5, not an object/],
  [
    'a program that waits for nothing',
    ['never.ts', '--platform', 'p.yaml'],
    /waits for something that never comes/,
  ],
  ['an unknown sweep', ['flow.json', '--platform', 'p.yaml', '--sweep', 'nods=1'], /did you mean nodes\?/],
  ['a file that is not there', ['none.json', '--platform', 'p.yaml'], /none\.json cannot be read/],
  [
    'an unknown policy',
    ['flow.json', '--platform', 'p.yaml', '--compare', 'fifo,lifu'],
    /no policy called 'lifu'/,
  ],
  [
    'an unknown I/O policy',
    ['flow.json', '--platform', 'p.yaml', '--compare', 'fifo/backfil'],
    /no policy called 'backfil'; did you mean backfill\?/,
  ],
  ['a comparison of nothing', ['flow.json', '--platform', 'p.yaml', '--compare', ','], /names no policy/],
  ['too many nodes', ['flow.json', '--platform', 'p.yaml', '--sweep', 'nodes=1e9'], /nodes cannot be '1e9'/],
  [
    'a trace of a table',
    ['flow.json', '--platform', 'p.yaml', '--sweep', 'nodes=1,2', '--trace', 't.json'],
    /--trace is for one simulation/,
  ],
]
for (const [what, words, message] of WRONG) {
  test(`${what} is said, with a way out`, async () => {
    const { code, stderr } = await millrace(folder, ['simulate', ...words])
    assert.notEqual(code, 0)
    assert.match(stderr, message)
    assert.doesNotMatch(stderr, /MR_INTERNAL/)
  })
}
