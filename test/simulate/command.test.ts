import assert from 'node:assert/strict'
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
  'no-cost.ts': `
import { task, main } from 'millrace'
export const f = task({ name: 'f' }, () => 1)
main(() => { f() })
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
  assert(one >= two + 0.19, `${one} s on one CPU, ${two} s on two`)
  await millrace(folder, ['simulate', 'flow.json', '--platform', 'p.yaml'])
  const { stdout } = await millrace(folder, ['runs'])
  assert.match(stdout, /flow\.json \(simulated\)/)
  const story = await millrace(folder, ['story', 'join'])
  assert.match(story.stdout, /it finished/)
})

const WRONG: [string, string[], RegExp][] = [
  ['no platform', ['flow.json'], /simulate needs a platform/],
  ['a task without a cost', ['no-cost.ts', '--platform', 'p.yaml'], /task f has no cost/],
  ['an unknown sweep', ['flow.json', '--platform', 'p.yaml', '--sweep', 'nods=1'], /did you mean nodes\?/],
  ['a file that is not there', ['none.json', '--platform', 'p.yaml'], /none\.json cannot be read/],
  [
    'an unknown policy',
    ['flow.json', '--platform', 'p.yaml', '--compare', 'fifo,lifu'],
    /no policy called 'lifu'/,
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
