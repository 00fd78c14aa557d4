import assert from 'node:assert/strict'
import test from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { makeFolder, millrace } from '../cli/folder.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>
type Told = Of<'value' | 'submitted' | 'kind-defined'>

const program = (body: string): string => `
import { configure, main, task, waitOn, IN, INOUT } from 'millrace'
export const make = task({ name: 'make' }, bytes => new Uint8Array(bytes).fill(7))
export const fill = task({ name: 'fill', params: [INOUT, IN] }, (array, value) => { array.fill(value) })
export const look = task({ name: 'look' }, array => array.length)
const seen = []
const observe = event => { if (['value', 'submitted', 'kind-defined'].includes(event.type)) seen.push(event) }
configure({ observers: [observe] })
main(async () => {
${body}
})
process.on('exit', () => console.log(JSON.stringify(seen)))
`

/** What was told of the versions that tasks of a kind make, by their order. */
async function told(body: string, kind: string, args: string[] = []): Promise<Of<'value'>[][]> {
  const folder = makeFolder({ 'app.mjs': program(body) })
  const { code, stdout, stderr } = await millrace(folder, ['run', 'app.mjs', '--progress', 'none', ...args])
  assert.equal(code, 0, stderr)
  const events = JSON.parse(stdout) as Told[]
  const kinds = events.flatMap(event =>
    event.type === 'kind-defined' && event.name === kind ? event.kind : [],
  )
  const tasks = events.flatMap(event =>
    event.type === 'submitted' && kinds.includes(event.kind) ? [event] : [],
  )
  return tasks.map(task =>
    events.flatMap(event => (event.type === 'value' && task.writes.includes(event.version) ? [event] : [])),
  )
}

test('values from 64 KiB on are told of when they are made and when they are dropped; smaller ones are not', async () => {
  const body = `
  const large = make(2 ** 20)
  await waitOn([look(large), make(2 ** 15)])
  fill(large, 3)
  await waitOn(large)
`
  const [large, small] = await told(body, 'make')
  assert.deepEqual(
    large?.map(({ bytes }) => Math.floor(bytes / 2 ** 20)),
    [1, 0],
  )
  assert.deepEqual(small, [])
  const [filled] = await told(body, 'fill')
  assert.equal(filled?.length, 1)
})

test('of a value that stays on its node it is told that it does', async () => {
  const body = `await waitOn(look(make(2 ** 22)))`
  const [made] = await told(body, 'make', ['--nodes', 'local:2', '--no-journal'])
  assert.equal(made?.[0]?.stays, true)
})
