import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { Program } from './program.ts'

type Finished = Extract<RunEvent, { type: 'finished' }>

const SOURCE = `
import { readFileSync, writeFileSync } from 'node:fs'
import { command, configure, main, task, waitOn, waitOnFile, FILE_IN, FILE_OUT, IN } from 'millrace'
const kinds = new Map()
const finished = {}
configure({
  journal: false,
  progress: 'none',
  ...JSON.parse(process.argv[2]),
  observers: [{
    submitted: ({ task, kind }) => kinds.set(task, kind),
    finished: event => (finished[kinds.get(event.task)] = event),
  }],
})
const spin = () => {
  const from = performance.now()
  while (performance.now() < from + 3);
  return performance.now() - from
}
export const inner = task({ name: 'inner', params: [IN] }, list => [spin(), list.length])
export const outer = task({ name: 'outer', params: [IN] }, async list => (await waitOn(inner(list)))[0])
export const write = task({ name: 'write', params: [FILE_OUT] }, path => writeFileSync(path, 'text'))
export const copy = command({ name: 'copy', params: [FILE_IN, FILE_OUT] }, (from, to) => ['cp', from, to])
main(async () => {
  const spun = await waitOn(outer(Array.from({ length: 10_000 }, (_, i) => 'word ' + i)))
  write('a.txt')
  copy('a.txt', 'b.txt')
  await waitOnFile('b.txt')
  console.log(JSON.stringify({ spun, ended: Object.values(finished) }))
})
`

async function run(options: object, env = {}): Promise<{ spun: number; ended: Finished[] }> {
  const program = new Program({ 'app.mjs': SOURCE })
  try {
    program.start('app.mjs', [JSON.stringify(options)], env)
    const { code, out, err } = await program.end()
    assert.equal(code, 0, err)
    return JSON.parse(out) as { spun: number; ended: Finished[] }
  } finally {
    program.remove()
  }
}

for (const nodes of ['here', 'local:1']) {
  test(`where the time of attempts went is measured on ${nodes}`, { timeout: 100_000 }, async () => {
    const { spun, ended } = await run({ stepTimes: true, nodes })
    const all = ended.map(({ steps }) => steps!)
    assert.equal(all.length, 4)
    for (const steps of all) {
      for (const [name, value] of Object.entries(steps)) assert(value >= 0 && Number.isFinite(value), name)
    }
    // In the order in which they are submitted.
    const [outer, inner, write, copy] = all
    assert(inner!.run >= spun - 0.01 && inner!.decode > 0 && inner!.encode > 0)
    assert(outer!.wait >= spun - 0.01, 'it waits for the other one')
    assert(outer!.wait >= inner!.run - 0.01)
    for (const steps of [write!, copy!]) assert(steps.fetch > 0 && steps.commit > 0)
    assert(copy!.run > 0 && copy!.decode === 0 && copy!.encode === 0)
  })
}

const SHORT = `
import { configure, main, task } from 'millrace'
let [measured, all] = [0, 0]
configure({
  journal: false,
  progress: 'none',
  stepTimes: JSON.parse(process.argv[2]),
  observers: [{ finished: ({ steps }) => { all++; if (steps) measured++ } }],
})
export const echo = task({ name: 'echo' }, x => x)
main(async () => {
  for (let round = 0; round < 20; round++) {
    const last = []
    for (let i = 0; i < 500; i++) last.push(echo(i))
    await Promise.all(last)
  }
  console.log(JSON.stringify({ measured, all }))
})
`

for (const how of [true, 'all']) {
  test(
    `of many short tasks ${how === 'all' ? 'all' : 'some'} are measured with ${how}`,
    { timeout: 100_000 },
    async () => {
      const program = new Program({ 'app.mjs': SHORT })
      try {
        program.start('app.mjs', [JSON.stringify(how)])
        const { code, out, err } = await program.end()
        assert.equal(code, 0, err)
        const { measured, all } = JSON.parse(out) as { measured: number; all: number }
        assert.equal(all, 10_000)
        if (how === 'all') assert.equal(measured, all)
        else assert(measured >= 1000, `${measured} were measured`)
      } finally {
        program.remove()
      }
    },
  )
}

test('nothing is measured that was not asked for', { timeout: 100_000 }, async () => {
  const { ended } = await run({})
  assert.deepEqual(
    ended.map(({ steps }) => steps),
    [undefined, undefined, undefined, undefined],
  )
})
