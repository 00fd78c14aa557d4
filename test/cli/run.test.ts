import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { jsonLines, makeFolder, millrace } from './folder.ts'
import { ordered, squares } from './programs.ts'

const runs: { file: string; type: string; source: string }[] = [
  { file: 'app.ts', type: 'module', source: squares(': number') },
  { file: 'app.mts', type: 'commonjs', source: squares(': number') },
  { file: 'app.js', type: 'module', source: squares() },
  { file: 'app.mjs', type: 'commonjs', source: squares() },
  {
    file: 'app.cjs',
    type: 'module',
    source: squares()
      .replace(/import (.*) from 'millrace'/, "const $1 = require('millrace')")
      .replace('export const square', 'const square = exports.square'),
  },
  {
    file: 'app.ts',
    type: 'commonjs',
    source: squares(': number'),
  },
]
for (const { file, type, source } of runs) {
  test(`runs ${file} in a package of type ${type}`, async () => {
    const folder = makeFolder({ [`src of mine/${file}`]: source }, { type })
    const { code, stdout, stderr } = await millrace(folder, [
      'run',
      `src of mine/${file}`,
      '--no-color',
      'one',
      '--',
      '--two',
      'a b',
    ])
    assert.equal(stdout, '["one","--two","a b"]\n1 4 9\n')
    assert.match(stderr, /\[3\/3\] ok square#/)
    assert.match(stderr, /tasks +3 ok, of 3/)
    assert.equal(code, 0)
  })
}

const endings: [string, string, number, RegExp][] = [
  ['a program without tasks', "console.log('hello')", 0, /^$/],
  ['a program with an exit code of its own', 'process.exitCode = 7', 7, /^$/],
  [
    'a module that throws',
    "throw new TypeError('boom')",
    1,
    /could not be loaded: TypeError: boom\n.*app\.mjs:1:7.*\n.*MR_MODULE/,
  ],
  ['a module that does not parse', 'const = 3', 1, /could not be loaded: SyntaxError: .*\n.*MR_MODULE/],
  [
    'a missing package',
    "import 'leftpad'",
    1,
    /app\.mjs imports the package leftpad.*\n.*npm install leftpad/,
  ],
  [
    'a missing file',
    "import './utl.mjs'",
    1,
    /app\.mjs imports .*utl\.mjs, which cannot be found\n.*MR_MODULE/,
  ],
  [
    'an option that a task cannot have',
    "import { task } from 'millrace'; task({ name: 't', cpsu: 1 }, () => 0)",
    2,
    /no option 'cpsu'; did you mean 'cpus'\?\n.*MR_OPTION/,
  ],
  [
    'a task that asks for too much',
    "import { task, main } from 'millrace'; export const t = task({ name: 't', cpus: 64 }, () => 0); main(async () => { await t() })",
    2,
    /asks for 64 CPUs/,
  ],
  [
    'a main that throws',
    "import { main } from 'millrace'; main(async () => { throw new Error('no luck') })",
    1,
    /Error: no luck\n +at .*app\.mjs/,
  ],
  [
    'an error that is not caught, with the block up',
    "import { task, main, waitOn } from 'millrace'; export const t = task({ name: 't' }, x => x && new Promise(() => {})); main(async () => { await waitOn(t(0)); t(1); setTimeout(() => { throw new Error('late') }, 300) })",
    1,
    /failed \S+ after [^]*Error: late\n +at /,
  ],
]
for (const [what, source, wanted, said] of endings) {
  test(`${what} gives exit code ${wanted}`, async () => {
    const folder = makeFolder({ 'app.mjs': source })
    const live = what.includes('block') ? ['--progress', 'live'] : ['--progress', 'plain']
    const { code, stderr } = await millrace(folder, ['run', 'app.mjs', '--no-color', ...live])
    assert.match(stderr, said)
    assert.equal(code, wanted)
  })
}

test('a program that cannot find millrace is told what to install, and where', async () => {
  const folder = makeFolder(
    { 'src/app.ts': squares(), 'src/app.cjs': "require('millrace')" },
    { installed: false },
  )
  for (const file of ['src/app.ts', 'src/app.cjs']) {
    const { code, stderr } = await millrace(folder, ['run', file])
    assert.match(stderr, /cannot find the package millrace\n/)
    assert.ok(stderr.includes(`npm install millrace\` in ${folder} [MR_MODULE]`), stderr)
    assert.equal(code, 1)
  }
})

const startOrder = (stdout: string): unknown[] =>
  jsonLines(stdout)
    .filter(event => event['type'] === 'started')
    .map(event => event['task'])

test('a policy can be given by name or as a file', async () => {
  const table = '[0, 0, 1, 4, 2, 3]'
  const folder = makeFolder({
    'app.mjs': ordered,
    'policy.ts': `import type { Policy } from 'millrace'
      const policy: Policy = { name: 'mine', score: task => ${table}[task.id] ?? 0 }
      export default policy`,
    // Without main there is no moment to wait for the policy: the launcher has to.
    'steps.mjs': ordered.slice(0, ordered.indexOf('main(')),
    'bare.mjs': `import { gate, step } from './steps.mjs'
      const open = gate()
      for (const x of [1, 2, 3, 4]) step(open, x)`,
  })
  const cases: [string[], number[]][] = [
    [
      ['app.mjs', '--policy', 'fifo'],
      [1, 2, 3, 4, 5],
    ],
    [
      ['app.mjs', '--policy', 'LIFO'],
      [1, 5, 4, 3, 2],
    ],
    [
      ['app.mjs', '--policy', 'policy.ts'],
      [1, 3, 5, 4, 2],
    ],
    [
      ['bare.mjs', '--policy', './policy.ts'],
      [1, 3, 5, 4, 2],
    ],
  ]
  for (const [args, wanted] of cases) {
    const { code, stdout, stderr } = await millrace(folder, ['run', ...args, '--cpus', '1', '--json'])
    assert.equal(stderr, '')
    assert.equal(code, 0)
    assert.deepEqual(startOrder(stdout), wanted, args.join(' '))
  }
})

test('--json gives nothing but JSON on stdout, prints of program and tasks among it', async () => {
  const folder = makeFolder({
    'app.mjs': `import { isMainThread } from 'node:worker_threads'
      if (isMainThread) console.log('before')
      import { task, main, waitOn } from 'millrace'
      export const talk = task({ name: 'talk' }, () => { console.log('from a task') })
      main(async () => { process.stdout.write('no line end'); await waitOn(talk()) })
      process.on('exit', () => console.log('after'))`,
  })
  const { code, stdout, stderr } = await millrace(folder, ['run', 'app.mjs', '--json'])
  assert.equal(code, 0)
  assert.equal(stderr, '')
  const events = jsonLines(stdout)
  const printed = events.filter(event => event['type'] === 'printed').map(event => event['text'])
  assert.deepEqual(printed, ['before\n', 'no line end', 'from a task\n', 'after\n'])
  assert.ok(events.some(event => event['type'] === 'run-ended' && event['outcome'] === 'ok'))
})

interface Slice {
  ph: string
  pid: number
  tid: number
  ts: number
  dur: number
}

test('--trace has a slice per task and no overlaps; --graph is the same for two runs', async () => {
  const folder = makeFolder({ 'app.mjs': ordered })
  for (const graph of ['one.dot', 'two.dot']) {
    const { code, stderr } = await millrace(folder, [
      'run',
      'app.mjs',
      '--trace',
      'run.json',
      '--graph',
      graph,
    ])
    assert.equal(code, 0)
    assert.ok(stderr.includes(join(folder, 'run.json')), stderr)
  }
  const { traceEvents } = JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8')) as {
    traceEvents: Slice[]
  }
  const slices = traceEvents.filter(event => event.ph === 'X').sort((a, b) => a.ts - b.ts)
  assert.equal(slices.length, 5)
  const ends = new Map<string, number>()
  for (const { pid, tid, ts, dur } of slices) {
    const lane = `${pid} ${tid}`
    assert.ok(ts >= (ends.get(lane) ?? 0) - 0.001, `overlap on ${lane}`)
    ends.set(lane, ts + dur)
  }
  const one = readFileSync(join(folder, 'one.dot'), 'utf8')
  assert.match(one, /^digraph/)
  assert.equal(one, readFileSync(join(folder, 'two.dot'), 'utf8'))
})

test('--no-journal leaves nothing behind, and programs that tasks start do not inherit options', async () => {
  const folder = makeFolder({
    'app.mjs': `import { execFileSync } from 'node:child_process'
      import { task, main, waitOn } from 'millrace'
      export const env = task({ name: 'env' }, () => execFileSync('env', { encoding: 'utf8' }).includes('MILLRACE_OPTIONS'))
      main(async () => { console.log(await waitOn(env())) })`,
  })
  const { code, stdout } = await millrace(folder, ['run', 'app.mjs', '--no-journal', '--progress', 'none'])
  assert.equal(stdout, 'false\n')
  assert.equal(code, 0)
  assert.equal(existsSync(join(folder, '.millrace')), false)
})

test('an error of use names the line of the program', async () => {
  const folder = makeFolder({
    'app.ts': `
import { task, main } from 'millrace'
export const f = task({}, (x: number) => x)
main(() => {
  console.log(\`\${f(1)}\`)
})
`,
  })
  const { code, stderr } = await millrace(folder, ['run', 'app.ts', '--progress', 'none'])
  assert.equal(code, 1)
  assert.match(stderr, /\[MR_NOT_AWAITED\]\n\s+at .*app\.ts:5:\d+/)
})

test('errors of use name the line of the program', async () => {
  const source = `import { group, main, task } from 'millrace'
export const f = task({ name: 'f' }, (x: number) => x)
export const large = task({ name: 'large', cpus: 4000 }, (x: number) => x)
const cases: Record<string, () => unknown> = {
  add: () => (f(1) as unknown as number) + 1,
  text: () => JSON.stringify({ x: f(1) }),
  large: () => large(1),
  group: () => group((() => 1) as never, undefined as never),
}
main(async () => {
  await cases[process.argv[2] as string]?.()
})
`
  const folder = makeFolder({ 'app.ts': source })
  for (const [which, line] of [
    ['add', 5],
    ['text', 6],
    ['large', 7],
    ['group', 8],
  ] as const) {
    const { stderr, code } = await millrace(folder, ['run', 'app.ts', which, '--progress', 'none'])
    assert.ok(code === 1 || code === 2, which)
    assert.match(stderr, new RegExp(`app\\.ts:${line}:`), which)
  }
})
