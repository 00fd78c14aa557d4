import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'

const page = readFileSync(new URL('../../docs/simulation.md', import.meta.url), 'utf8')
const [, section = ''] = /\n## What if there were a burst buffer\?\n([^]*?)\n## /.exec(page) ?? []
const blocks = [...section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, kind, text = '']) => ({
  kind,
  text,
}))
const textOf = (kind: string, nth = 0): string => blocks.filter(one => one.kind === kind)[nth]?.text ?? ''

const folder = makeFolder({
  'ensemble.ts': textOf('ts'),
  'today.yaml': textOf('yaml'),
  'buffer.yaml': textOf('yaml', 1),
  'chain.ts': `
import { task, main } from 'millrace'
export const step = task({ cost: { compute: 5 } }, (x: number) => x)
main(() => { step(step(step(1) as never) as never) })
`,
  'reader.ts': `
import { task, main, FILE_OUT } from 'millrace'
export const make = task({ params: [FILE_OUT], cost: { compute: 1, writes: '900MB' } }, (_path: string) => {})
main(() => { for (let i = 0; i < 8; i++) make('f' + i) })
`,
  'slow.yaml':
    'nodes: [{ name: n, cpus: 4, storage: [{ name: disk, bandwidth: 100MB/s, streamBandwidth: 10MB/s }] }]',
})

const simulated = async (...words: string[]): Promise<string> => {
  const { code, stdout, stderr } = await millrace(folder, ['simulate', ...words, '--no-journal'])
  assert.equal(code, 0, stderr)
  return stdout
}

test('the question of the burst buffer has the answer that stands in docs/simulation.md', async () => {
  const [program, ...words] = textOf('sh').trim().split(' ')
  assert.equal(program, 'millrace')
  const { stdout, stderr } = await millrace(folder, words)
  assert.equal(stdout, textOf('text'), stderr)
})

test('one simulation says what was busiest, and what to try', async () => {
  const today = await simulated('ensemble.ts', '--platform', 'today.yaml')
  assert.match(
    today,
    /Busiest: pfs was written to for 96% of the time, at 100% of its bandwidth; CPUs computed for 43%/,
  )
  assert.match(today, /--sweep pfs\.bandwidth=/)
  const large = await simulated('ensemble.ts', '--platform', 'buffer.yaml')
  assert.match(large, /Busiest: CPUs computed for 69% of their time/)
})

test('tasks that wait for each other are told from CPUs and devices that are busy', async () => {
  const chain = await simulated('chain.ts', '--platform', 'today.yaml')
  assert.match(chain, /Nothing is busy for most of the time: CPUs computed for 3% of their time/)
})

test('CPUs that are held by tasks which wait for a disk do not count as busy', async () => {
  const slow = await simulated('reader.ts', '--platform', 'slow.yaml')
  // Four at a time, 90 s each at 10 MB/s, after a second of computing.
  assert.match(slow, /disk was written to for 99% of the time, at 40% of its bandwidth/)
  assert.match(slow, /CPUs computed for 1% of their time and were held for 100%/)
  assert.doesNotMatch(slow, /more cpus would shorten the run/)
})

test('devices are swept over, and those that are not there are named', async () => {
  const swept = await simulated(
    'ensemble.ts',
    '--platform',
    'buffer.yaml',
    '--sweep',
    'nvme.capacity=100GB,400GB',
    '--json',
  )
  const spans = swept
    .trim()
    .split('\n')
    .map(line => (JSON.parse(line) as { makespan: number }).makespan)
  assert(spans.length === 2 && (spans[1] as number) < (spans[0] as number), String(spans))
  for (const [sweep, message] of [
    ['nvm.capacity=1GB', /no device 'nvm'; did you mean nvme\?/],
    ['pfs.bandwidth=0', /pfs\.bandwidth cannot be '0'/],
    ['pfs.latency=1', /--sweep cannot be/],
  ] as const) {
    const { code, stderr } = await millrace(folder, [
      'simulate',
      'ensemble.ts',
      '--platform',
      'buffer.yaml',
      '--sweep',
      sweep,
    ])
    assert.equal(code, 2, stderr)
    assert.match(stderr, message)
  }
})
