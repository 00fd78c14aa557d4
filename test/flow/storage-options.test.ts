import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { COMMANDS, RUN_OPTIONS } from '../../src/cli/commands.ts'
import { makeFolder, millrace } from '../cli/folder.ts'
import { make, read } from './flows.ts'

type Event = Record<string, unknown> & { type: string }

const MACHINE = `nodes:
  - cpus: 4
    storage:
      - { name: fast, path: fast, bandwidth: 1000, capacity: 1GB }
      - { name: slow, path: slow, bandwidth: 400, capacity: 1GB }
`

const eventsOf = async (folder: string): Promise<Event[]> =>
  (await millrace(folder, ['show', '--json'])).stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Event)

const withFlow = (rules: string): string => {
  const folder = makeFolder({
    'flow.ts': `import { auto, rule, sh, target } from 'millrace/flow'\n${rules}`,
    'machine.yaml': MACHINE,
  })
  for (const device of ['fast', 'slow']) mkdirSync(join(folder, device))
  return folder
}

test('a rule bounds its bandwidth, by auto() or as text, and says size and device', async () => {
  const folder = withFlow(`
rule('a{n}', [], { name: 'a', io: true, bandwidth: auto(10, 50, 4) }, ({ out }) => sh\`echo a > \${out}\`)
rule('b{n}', 'a{n}', { name: 'b', io: true, bandwidth: 'auto(10,50,4)', size: '2MB', storage: 'slow' },
  ({ out, in: a }) => sh\`cp \${a} \${out}\`)
rule('c{n}', 'b{n}', { name: 'c', bandwidth: ({ n }) => 10 * Number(n), size: ({ n }) => \`\${n}MB\` },
  ({ out, in: b }) => sh\`cp \${b} \${out}\`)
target('all', ['c1', 'c2'])
`)
  await make(folder, ['--machine', 'machine.yaml', '--io-policy', 'backfill', '--flush', 'off'])
  assert.equal(read(folder, 'c2'), 'a\n')
  const events = await eventsOf(folder)
  const storage = events.flatMap(event => (event.type === 'demand-defined' ? [event['storage']] : []))
  const bounds = { min: 10e6, max: 50e6, delta: 4 }
  assert.deepEqual(storage.slice(0, 2), [
    { bandwidth: bounds, direction: null, size: null, device: null },
    { bandwidth: bounds, direction: null, size: 2e6, device: 'slow' },
  ])
  const rates = storage.slice(2).map(wish => (wish as { bandwidth: number }).bandwidth)
  assert.deepEqual(rates, [10e6, 20e6])
  const kinds = events.flatMap(event => (event.type === 'kind-defined' ? [event['name']] : []))
  const ofB = events.filter(event => event.type === 'submitted' && event['kind'] === kinds.indexOf('b') + 1)
  const started = events.filter(
    ({ type, task }) => type === 'started' && ofB.some(one => one['task'] === task),
  )
  assert.deepEqual(
    started.map(({ device }) => device),
    [1, 1],
  )
  const [run] = events
  assert.deepEqual(run?.['io'], { policy: 'backfill', flush: 'off', prefetch: false })
})

test('without a description, the bandwidth of a rule holds for the disk of the working folder', async () => {
  const folder = withFlow(
    `rule('a', [], { io: true, bandwidth: 'adaptive' }, ({ out }) => sh\`echo a > \${out}\`)`,
  )
  await make(folder, ['a'])
  const [run] = await eventsOf(folder)
  assert.deepEqual(
    (run?.['devices'] as { name: string }[] | undefined)?.map(({ name }) => name),
    ['disk'],
  )
})

test('wrong options of a rule are refused where they are written', async () => {
  for (const [option, code] of [
    ["size: 'much'", 'MR_UNIT'],
    ["bandwidth: 'auto(50,10)'", 'MR_OPTION'],
    ["bandwidth: 'atuo'", 'MR_UNIT'],
    ['storage: 3', 'MR_OPTION'],
    ["temporary: 'yes'", 'MR_OPTION'],
    ['io: true, cpus: 2', 'MR_OPTION'],
  ] as const) {
    const folder = withFlow(`rule('a', [], { ${option} }, ({ out }) => sh\`echo a > \${out}\`)`)
    const { code: exit, stderr } = await millrace(folder, ['make', 'a'])
    assert.equal(exit, 2, stderr)
    assert.match(stderr, new RegExp(`flow\\.ts:2.*\\[?${code}`, 's'))
    assert.ok(!existsSync(join(folder, 'a')))
  }
})

test('temporary files of rules go after their last reader, and stay within --max-intermediate', async () => {
  const folder = withFlow(`
rule('tmp/{n}', [], { name: 'part', temporary: true, size: 10_000 }, ({ out }) => sh\`head -c 10000 /dev/zero > \${out}\`)
rule('sizes/{n}', 'tmp/{n}', { name: 'use' }, ({ out, in: part }) => sh\`test -s \${part}; (cat tmp/* 2> /dev/null || true) | wc -c > \${out}\`)
rule('kept', 'tmp/kept', ({ out, in: part }) => sh\`cp \${part} \${out}\`)
target('all', Array.from({ length: 12 }, (_, n) => \`sizes/\${n}\`))
`)
  // Others may be deleted while a task counts what is there.
  await make(folder, ['-j', '4', '--max-intermediate', '25KB'])
  for (let n = 0; n < 12; n++) {
    const there = Number(read(folder, `sizes/${n}`))
    assert.ok(there >= 10_000 && there <= 25_000, `${there} bytes were there`)
    assert.ok(!existsSync(join(folder, `tmp/${n}`)))
  }
  // Nothing misses what is gone, and what is asked for stays.
  assert.match((await make(folder)).stderr, /nothing to do/)
  await make(folder, ['kept', 'tmp/kept', '--max-intermediate', '25KB'])
  assert.equal(read(folder, 'tmp/kept').length, 10_000)
})

test('a rule that can never fit is refused before it runs', async () => {
  const folder = withFlow(`
rule('big', [], { memory: '2GB' }, ({ out }) => sh\`echo > \${out}\`)
rule('part', [], { temporary: true, size: '2MB' }, ({ out }) => sh\`echo > \${out}\`)
`)
  for (const words of [
    ['big', '--memory', '1GB'],
    ['part', '--max-intermediate', '1MB'],
  ]) {
    const { code, stderr } = await millrace(folder, ['make', ...words])
    assert.notEqual(code, 0)
    assert.match(stderr, /MR_CONSTRAINT/)
  }
})

test('make and run have the same options for how tasks are run', async () => {
  for (const name of ['run', 'make']) {
    const options = COMMANDS.find(command => command.name === name)?.options ?? []
    for (const option of RUN_OPTIONS) {
      assert.ok(
        options.some(one => one.name === option.name),
        `${name} has --${option.name}`,
      )
    }
  }
  const rules = `rule('a{n}', [], { io: true }, ({ out }) => sh\`echo a > \${out}\`)\ntarget('all', ['a1', 'a2', 'a3'])\n`
  const folder = withFlow(rules)
  await make(folder, ['--machine', 'machine.yaml', '--io-executors', '1'])
  const [run] = await eventsOf(folder)
  assert.equal((run?.['nodes'] as { ioExecutors: number }[] | undefined)?.[0]?.ioExecutors, 1)
  for (const words of [
    ['--io-executors', '0'],
    ['--io-policy', 'nearest'],
    ['--flush', 'never'],
    ['--machine', 'nowhere.yaml'],
    ['--max-intermediate', 'much'],
  ]) {
    const { code, stderr } = await millrace(folder, ['make', '--force', ...words])
    assert.equal(code, 2, stderr)
  }
})
