import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { jsonLines, makeFolder, millrace } from '../cli/folder.ts'

/** Programs that never call removeFile: temporary files go when no reader can come any more, and no run stands still. */

const TASKS = `
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { task, main, waitOn, waitOnFile, IN, FILE_IN, FILE_OUT } from 'millrace'

const bytesIn = path => {
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found?.isDirectory()) return found?.size ?? 0
  try {
    return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0)
  } catch {
    return 0
  }
}
const { IO, SIZE } = process.env
const options = { temporary: true, ...(IO ? { io: true } : {}), ...(SIZE ? { size: 10_000 } : {}) }
export const make = task({ name: 'make', ...options, params: [IN, FILE_OUT] }, async (letter, path) => {
  writeFileSync(path, letter.repeat(10_000))
})
export const change = task({ name: 'change', ...options, params: [FILE_IN, FILE_OUT] }, async (from, path) => {
  writeFileSync(path, readFileSync(from, 'utf8').toUpperCase())
})
export const use = task({ name: 'use', params: [FILE_IN, IN] }, async (path, folder) => ({
  text: readFileSync(path, 'utf8').slice(0, 1),
  there: bytesIn(folder),
}))
export const outer = task({ name: 'outer', params: [IN] }, async n => {
  const path = join('work', 'nested' + n)
  make('n', path)
  return (await waitOn(use(path, 'work'))).text
})
`

const LOOP = `
  const got = []
  for (let i = 0; i < 6; i++) {
    make('abcdef'[i], join('work', 't' + i))
    got.push(use(join('work', 't' + i), 'work'))
  }
`
const NESTED = `
  const got = []
  for (let i = 0; i < 6; i++) got.push(outer(i))
`
const SHOW = `
  waitOn(got).then(all => writeFileSync('result.json', JSON.stringify(all)))
`

/** The bound holds where the program has ended and its tasks go on. */
const LIMIT = 25_000

const MACHINES: [string, string | null][] = [
  ['without a machine description', null],
  ['with layers', '{ name: fast, path: fast, bandwidth: 1GB/s, capacity: 1MB }'],
  [
    'with a layer that has a bound of its own',
    '{ name: fast, path: fast, bandwidth: 1GB/s, maxIntermediate: 12kB }',
  ],
]

for (const [title, device] of MACHINES) {
  for (const env of [{}, { SIZE: '1' }, { IO: '1' }, { IO: '1', SIZE: '1' }] as Record<string, string>[]) {
    const kind = `${env['IO'] ? 'I/O tasks' : 'tasks'}${env['SIZE'] ? '' : ' of unknown size'}`
    test(`${title}: ${kind} whose program has ended keep the bound`, async () => {
      const { code, stderr, folder } = await run(`${LOOP}${SHOW}`, device, env)
      assert.equal(code, 0, stderr)
      const all = JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8')) as {
        text: string
        there: number
      }[]
      assert.equal(all.map(({ text }) => text).join(''), 'abcdef')
      const most = Math.max(...all.map(({ there }) => there))
      assert(most <= LIMIT, `${most} bytes were there`)
      assert.deepEqual(readdirSync(join(folder, 'work')), [])
    })
  }
}

for (const [title, body] of [
  ['waits for all results', `${LOOP}; await waitOn(got); ${SHOW}`],
  [
    'reads a file again after a wait',
    `${LOOP}; await waitOn(got); got.push(use('work/t0', 'work')); ${SHOW}`,
  ],
  [
    'changes what it made',
    `${LOOP}; for (let i = 0; i < 6; i++) change('work/t' + i, 'work/u' + i); await waitOn(got); ${SHOW}`,
  ],
] as const) {
  test(`a program that ${title} goes on with a warning where the bound cannot hold`, async () => {
    const { code, stdout, stderr, folder } = await run(body, null, { SIZE: '1' }, ['--json'])
    assert.equal(code, 0, stderr)
    const all = JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8')) as { text: string }[]
    assert.equal(all.map(({ text }) => text).join(''), title.startsWith('reads') ? 'abcdefa' : 'abcdef')
    const events = jsonLines(stdout)
    const notes = events.filter(({ type }) => type === 'note').map(({ text }) => String(text))
    assert(
      notes.some(text => /make#\d+ starts beyond .*removeFile.*maxIntermediate/.test(text)),
      notes.join('\n'),
    )
    const [first] = events.filter(({ type }) => type === 'waits')
    assert.match(String(first?.['reason']), /temporary data take 20 kB of 25 kB/)
    const story = await millrace(folder, ['story', String(first?.['task'])])
    assert.match(story.stdout, /temporary data take 20 kB of 25 kB/)
  })
}

test('what a task has called others to make goes when that task has ended, also under a bound', async () => {
  const { code, stderr, folder } = await run(`${NESTED}${SHOW}`, null, { SIZE: '1' })
  assert.equal(code, 0, stderr)
  assert.equal(readFileSync(join(folder, 'result.json'), 'utf8'), JSON.stringify(Array(6).fill('n')))
})

test('a temporary file that the program asked for stays at its path', async () => {
  const { code, folder, stderr } = await run(`make('x', 'work/kept'); void waitOnFile('work/kept')`, null, {})
  assert.equal(code, 0, stderr)
  assert(existsSync(join(folder, 'work', 'kept')))
})

async function run(body: string, device: string | null, env: Record<string, string>, more: string[] = []) {
  const folder = makeFolder({
    'app.mjs': `${TASKS}\nmain(async () => {\n${body}\n})\n`,
    'machine.yaml': `nodes:\n  - storage:\n      - ${device}\n`,
    'work/.keep': '',
    'fast/.keep': '',
  })
  rmSync(join(folder, 'work', '.keep'))
  const args = [
    'run',
    'app.mjs',
    '--max-intermediate',
    '25kB',
    ...(device ? ['--machine', 'machine.yaml'] : []),
  ]
  return { folder, ...(await millrace(folder, [...args, ...more], env)) }
}
