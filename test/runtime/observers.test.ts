import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'

const program = (observers: string, options = ''): string => `
import { configure, main, task, waitOn } from 'millrace'
export const double = task({ name: 'double' }, x => 2 * x)
const seen = []
configure({ observers: ${observers} ${options} })
main(async () => {
  await waitOn([1, 2, 3].map(x => double(x)))
})
process.on('exit', () => console.log(JSON.stringify(seen)))
`

async function seen(text: string, args: string[] = []): Promise<{ seen: unknown[]; stderr: string }> {
  const folder = makeFolder({ 'app.mjs': text })
  const { code, stdout, stderr } = await millrace(folder, ['run', 'app.mjs', '--progress', 'plain', ...args])
  assert.equal(code, 0, stderr)
  return { seen: JSON.parse(stdout) as unknown[], stderr }
}

test('an observer gets all events, from the start of the run to its end', async () => {
  const all = await seen(program('[event => seen.push(event.type)]'))
  assert.equal(all.seen[0], 'run-started')
  assert.equal(all.seen.at(-1), 'run-ended')
  assert.equal(all.seen.filter(type => type === 'finished').length, 3)
})

test('an object has handlers for some events, also where nothing else observes', async () => {
  const some = program('[{ finished: event => seen.push(event.task) }]')
  assert.deepEqual((await seen(some)).seen.sort(), [1, 2, 3])
  assert.deepEqual((await seen(some, ['--no-journal', '--progress', 'none'])).seen.sort(), [1, 2, 3])
})

test('an observer that throws is dropped with a warning; others and the run go on', async () => {
  const { seen: types, stderr } = await seen(
    program('[() => { throw new Error("mine") }, event => seen.push(event.type)]'),
  )
  assert.equal(types.at(-1), 'run-ended')
  assert.equal(
    stderr.match(/an observer failed at an event 'run-started' and gets no more: mine/g)?.length,
    1,
  )
})

test('what cannot observe is refused', async () => {
  const folder = makeFolder({ 'app.mjs': program('[1]') })
  const { code, stderr } = await millrace(folder, ['run', 'app.mjs'])
  assert.equal(code, 2)
  assert.match(stderr, /observers is not a list of functions or of objects with handlers/)
})

test('an observer that joins late is told of the tasks that have not ended, then of all that happens', async () => {
  const folder = makeFolder({
    'app.mjs': `
import { main, observe, task, waitOn } from 'millrace'
export const double = task({ name: 'double' }, x => 2 * x)
export const wait = task({ name: 'wait' }, async open => {
  const { existsSync } = await import('node:fs')
  while (!existsSync(open)) await new Promise(resolve => setTimeout(resolve, 5))
  return 1
})
const seen = []
main(async () => {
  const { writeFileSync } = await import('node:fs')
  await waitOn(double(1))
  const open = wait('open')
  const after = double(open)
  const stop = observe(event => seen.push([event.type, event.task]))
  writeFileSync('open', '')
  await waitOn(after)
  stop()
  await waitOn(double(3))
})
process.on('exit', () => console.log(JSON.stringify(seen)))
`,
  })
  for (const more of [[], ['--no-journal', '--progress', 'none']]) {
    const { code, stdout, stderr } = await millrace(folder, ['run', 'app.mjs', ...more])
    assert.equal(code, 0, stderr)
    const seen = JSON.parse(stdout) as [string, number?][]
    const types = (task: number): string[] => seen.filter(([, id]) => id === task).map(([type]) => type)
    assert.equal(seen[0]?.[0], 'run-started')
    assert.equal(types(1).length, 0, 'it had ended')
    assert.deepEqual(types(3), ['submitted', 'ready', 'started', 'finished'])
    assert.equal(types(2).at(-1), 'finished')
    assert.equal(types(4).length, 0, 'the observer had left')
    rmSync(join(folder, 'open'), { force: true })
  }
})
