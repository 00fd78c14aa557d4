import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { folder, start } from './program.ts'

/** Values stay on the node that made them, and are made again when it is lost. Tasks run on n1 and n2, or on n3 alone. */
const root = join(import.meta.dirname, '..', '..')
const machines = join(folder, 'stays.yaml')
writeFileSync(
  machines,
  `nodes:
  - { name: n, count: 2, cpus: 1, tags: [a] }
  - { name: far, cpus: 1, tags: [b] }
`,
)
const program = join(folder, 'stays.mjs')
writeFileSync(
  program,
  `
import { appendFileSync, readFileSync } from 'node:fs'
import { task, main, waitOn, barrier, IN, INOUT, CONCURRENT } from ${JSON.stringify(pathToFileURL(join(root, 'dist', 'index.js')).href)}
const [mode, log] = process.argv.slice(2)
const a = { tags: ['a'] }
const SIZE = 100_000
const note = what => appendFileSync(log, what + ' ' + process.pid + '\\n')
export const make = task({ name: 'make', ...a }, (value, size) => { note('make'); return new Float64Array(size).fill(value) })
export const more = task({ name: 'more', ...a }, x => { note('more'); return x.map(one => one + 1) })
export const bump = task({ name: 'bump', params: [INOUT], ...a }, x => { note('bump'); for (let i = 0; i < x.length; i++) x[i]++ })
export const head = task({ name: 'head', ...a }, x => x[0])
export const sumFar = task({ name: 'sumFar', tags: ['b'] }, x => { note('far'); return x.reduce((s, one) => s + one, 0) })
export const addAll = task({ name: 'addAll', params: [CONCURRENT], tags: ['b'] }, x => { x[0] += 1 })
export const inner = task({ name: 'inner', ...a }, x => x[1])
export const outer = task({ name: 'outer', ...a }, async () => {
  const x = make(5, SIZE)
  return (await inner(x)) + (await x)[2]
})
const lines = () => readFileSync(log, 'utf8').trim().split('\\n').map(line => line.split(' '))
const isAlive = pid => {
  try { return process.kill(pid, 0) } catch { return false }
}
/** Ends the node on which this was done last, and waits until it has. */
const kill = async what => {
  const pid = Number(lines().findLast(([name]) => name === what)[1])
  process.kill(pid, 'SIGKILL')
  while (isAlive(pid)) await new Promise(resolve => setTimeout(resolve, 5))
}
const times = what => lines().filter(([name]) => name === what).length
const modes = {
  async read() {
    const x = make(2, SIZE)
    const far = await waitOn(sumFar(x))
    const here = await waitOn(x)
    return [far, here[SIZE - 1], here.length, times('make')]
  },
  async lost() {
    const x = make(2, SIZE)
    await barrier()
    await kill('make')
    return [await waitOn(sumFar(x)), times('make')]
  },
  async awaited() {
    const x = make(2, SIZE)
    await barrier()
    await kill('make')
    const here = await waitOn(x)
    return [here[SIZE - 1], times('make')]
  },
  async chain() {
    let x = make(0, SIZE)
    for (let i = 0; i < 15; i++) x = more(x)
    await waitOn(x)
    for (let i = 0; i < 5; i++) x = more(x)
    await barrier()
    await kill('more')
    return [await waitOn(sumFar(x)), times('make'), times('more') > 20 && times('more') <= 25]
  },
  async inout() {
    const x = new Float64Array(SIZE)
    for (let i = 0; i < 3; i++) bump(x)
    await barrier()
    await kill('bump')
    bump(x)
    await waitOn(x)
    return [x[SIZE - 1], times('bump') > 4]
  },
  async home() {
    // What is here, or on another node, too, is not made again.
    const [x, y] = [make(1, SIZE), make(2, SIZE)]
    await waitOn(x)
    await waitOn(sumFar(y))
    await kill('make')
    return [await waitOn(sumFar(x)), await waitOn(sumFar(y))]
  },
  async other() {
    const x = make(3, SIZE)
    addAll(x)
    const nested = await outer()
    return [(await waitOn(x))[0], nested]
  },
  async memory() {
    for (let i = 0; i < 12; i++) await waitOn(head(make(i, 5_000_000)))
    const [, peak] = /VmHWM:\\s*(\\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))
    return [Number(peak) / 1024 < 350]
  },
}
main(async () => {
  console.log(JSON.stringify(await modes[mode]()))
})
`,
)

async function run(mode: string): Promise<unknown> {
  const words = [process.execPath, join(root, 'bin', 'millrace.js'), 'run', program, '--nodes', machines]
  const log = join(folder, `stays-${mode}`)
  const { code, text, said } = await start([...words, '--no-journal', '--progress', 'none', '--', mode, log])
    .ended
  assert.equal(code, 0, said)
  return JSON.parse(text)
}

const skip = process.platform === 'linux' ? false : 'agents of this machine reach each other on Linux only'
const options = { skip, timeout: 120_000 }

test('a large value stays on its node, and is read on another one and by the program', options, async () => {
  assert.deepEqual(await run('read'), [200_000, 2, 100_000, 1])
})

test('a value that was only on a node that dies is made again for a task', options, async () => {
  assert.deepEqual(await run('lost'), [200_000, 2])
})

test('it is made again for the program', options, async () => {
  assert.deepEqual(await run('awaited'), [2, 2])
})

test(
  'of a chain of values only those behind the one that the program has are made again',
  options,
  async () => {
    assert.deepEqual(await run('chain'), [2_000_000, 1, true])
  },
)

test('an object that tasks have changed is made again from what the program gave', options, async () => {
  assert.deepEqual(await run('inout'), [4, true])
})

test('what is also elsewhere outlives its node', options, async () => {
  assert.deepEqual(await run('home'), [100_000, 200_000])
})

test('tasks that write together, and tasks that call others, have such values', options, async () => {
  assert.deepEqual(await run('other'), [4, 10])
})

test('480 MB of values that nobody reads here take no memory of the coordinator', options, async () => {
  assert.deepEqual(await run('memory'), [true])
})
