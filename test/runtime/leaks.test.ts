import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import { until } from './embedded.ts'
import { Program } from './program.ts'

/**
 * Whenever and however a coordinator ends, nothing of its run is left: no process, no staging folder, no
 * temporary file, no shared memory; and what was there before is as it was.
 */

const tasks = `
import { appendFileSync, writeFileSync } from 'node:fs'
import { command, task, FILE_INOUT, FILE_OUT, INOUT, DIR_OUT } from 'millrace'
export const append = task({ name: 'append', params: [FILE_INOUT] }, path => {
  appendFileSync(path, ' half')
  for (const end = performance.now() + 5; performance.now() < end;);
  appendFileSync(path, ' whole')
})
export const make = task({ name: 'make', params: [FILE_OUT] }, path => writeFileSync(path, 'made'))
export const folder = task({ name: 'folder', params: [DIR_OUT] }, path => {
  for (let i = 0; i < 20; i++) writeFileSync(path + '/' + i, String(i))
})
export const work = task({ name: 'work', params: [INOUT] }, array => { array[0]++ })
export const stubborn = command({ name: 'stubborn', params: [FILE_INOUT] }, path =>
  ['sh', '-c', 'trap "" TERM INT HUP; echo half >> "$1"; sleep 3600 & setsid sleep 3600 & wait', 'sh', path])
export const quick = command({ name: 'quick', params: [FILE_OUT] }, path => ['sh', '-c', 'echo made > "$1"', 'sh', path])
export const spins = task({ name: 'spins' }, () => { for (;;); })
`

const busy = `
import { main, waitOn, waitOnFile } from 'millrace'
import { writeFileSync } from 'node:fs'
import * as tasks from './tasks.mjs'
main(async () => {
  const array = new Float64Array(10000)
  const how = process.argv[2]
  if (how === 'stubborn') tasks.stubborn('input.txt')
  writeFileSync('started', '')
  for (let i = 0; ; i++) {
    tasks.append('other.txt')
    tasks.make('out/' + (i % 7) + '.txt')
    tasks.quick('out/q' + (i % 3) + '.txt')
    if (i % 10 === 0) tasks.folder('tree')
    tasks.work(array)
    if (i === 20) writeFileSync('going', '')
    await waitOn(array)
    if (i % 5 === 0) await waitOnFile('out/q0.txt')
  }
})
`

const newProgram = (): Program =>
  new Program({ 'app.mjs': busy, 'tasks.mjs': tasks, 'input.txt': 'original', 'other.txt': 'start' })

async function check(program: Program): Promise<void> {
  assert.equal(program.read('input.txt'), 'original')
  // Whole versions only, however many.
  assert.match(program.read('other.txt'), /^start( half whole)*$/)
  for (const name of readdirSync(program.folder).includes('out') ? readdirSync(program.path('out')) : []) {
    if (!name.startsWith('.')) assert.match(program.read(`out/${name}`), /^made\n?$/)
  }
  await program.leavesNothing()
}

/** The same moments each time, spread over the first second. */
const moments = [0, 3, 10, 25, 60, 120, 200, 350, 500, 800]

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`${signal} at ten moments`, { timeout: 240_000 }, async () => {
    for (const moment of moments) {
      const program = newProgram()
      program.start('app.mjs', ['stubborn'])
      await until(() => readdirSync(program.folder).includes('started'), 'the start')
      await new Promise(resolve => setTimeout(resolve, moment))
      process.kill(program.coordinator, signal)
      const { code, signal: ended } = await program.end()
      assert(signal === 'SIGKILL' ? ended === 'SIGKILL' : code === 143, `${code} ${ended}`)
      await check(program)
    }
  })
}

test('SIGKILL while everything starts', { timeout: 240_000 }, async () => {
  for (const moment of [20, 60, 100, 140, 180, 220, 260, 320]) {
    const program = newProgram()
    program.start('app.mjs', ['stubborn'])
    await new Promise(resolve => setTimeout(resolve, moment))
    process.kill(program.coordinator, 'SIGKILL')
    await program.end()
    await check(program)
  }
})

test('the first Ctrl-C lets running tasks end, the second kills', { timeout: 300_000 }, async () => {
  for (const how of ['', 'stubborn']) {
    const program = newProgram()
    program.start('app.mjs', [how])
    await until(() => readdirSync(program.folder).includes('going'), 'the program')
    process.kill(program.coordinator, 'SIGINT')
    if (how === 'stubborn') {
      await new Promise(resolve => setTimeout(resolve, 300))
      process.kill(program.coordinator, 'SIGINT')
    }
    const { code } = await program.end()
    assert.equal(code, 130)
    await check(program)
  }
})

test('a program under tsx is as clean', { timeout: 300_000 }, async () => {
  for (const moment of [0, 100, 400]) {
    const program = newProgram()
    writeFileSync(program.path('app.ts'), `// @ts-nocheck\n${busy}`)
    program.start('app.ts', ['stubborn'])
    await until(() => readdirSync(program.folder).includes('started'), 'the start')
    await new Promise(resolve => setTimeout(resolve, moment))
    process.kill(program.coordinator, 'SIGKILL')
    await program.end()
    await check(program)
  }
})

test(
  'a process that a task waits for in its thread ends with a killed run',
  { timeout: 240_000 },
  async () => {
    const program = new Program({
      'app.mjs': `
import { execFileSync } from 'node:child_process'
import { main, task } from 'millrace'
export const sleeps = task({}, () => {
  execFileSync('sh', ['-c', 'sleep 0.4; touch going; sleep 3600'])
})
main(async () => sleeps())
`,
    })
    program.start('app.mjs')
    await until(() => readdirSync(program.folder).includes('going'), 'the process')
    process.kill(program.coordinator, 'SIGKILL')
    await program.end()
    await program.leavesNothing()
  },
)

test('an error in main stops what runs', { timeout: 240_000 }, async () => {
  const program = new Program({
    'app.mjs': `
import { main } from 'millrace'
import * as tasks from './tasks.mjs'
main(async () => {
  for (let i = 0; i < 10; i++) tasks.append('other.txt')
  await new Promise(resolve => setTimeout(resolve, 30))
  throw new Error('enough')
})
`,
    'tasks.mjs': tasks,
    'input.txt': 'original',
    'other.txt': 'start',
  })
  const { code, err } = await program.run('app.mjs')
  assert.equal(code, 1)
  assert.match(err, /enough/)
  await check(program)
})
