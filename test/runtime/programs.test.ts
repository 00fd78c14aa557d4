import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import test from 'node:test'
import { Program } from './program.ts'

/** What newcomers write, run the way they run it. */

const square = (exported: string): string => `export const square = task({}, (x${exported}) => x * x)`

const inOneFile = (types: boolean): string => `
import { task, main, waitOn } from 'millrace'
${square(types ? ': number' : '')}
main(async () => {
  const squares = [1, 2, 3].map(x => square(x))
  console.log(JSON.stringify(await waitOn(squares)))
})
`

const withoutMain = `
import { task, waitOn } from 'millrace'
const square = task({ name: 'square' }, x => x * x)
const futures = []
try {
  for (let i = 1; i <= 3; i++) futures.push(square(i))
} catch (error) {
  if (error.code !== 'MR_CALL_AT_LOAD') throw error
}
if (futures.length > 0) console.log(JSON.stringify(await waitOn(futures)))
`

const tasksFile = (types: boolean): string => `
import { task, FILE_OUT } from 'millrace'
import { writeFileSync } from 'node:fs'
export class Point { constructor(x${types ? ': number' : ''}) { this.x = x } ${types ? 'x: number' : ''} }
export const square = task({}, (x${types ? ': number' : ''}) => x * x)
export const point = task({}, (p${types ? ': Point' : ''}) => new Point(p.x + 1))
export const write = task({ params: [FILE_OUT] }, (path${types ? ': string' : ''}) => writeFileSync(path, 'written'))
export default task({ name: 'byDefault' }, (x${types ? ': number' : ''}) => -x)
`

const importing = `
import { main, waitOn } from 'millrace'
import negate, { Point, square, point } from './tasks.EXT'
main(async () => {
  const p = await point(new Point(1))
  console.log(JSON.stringify(await waitOn([square(4), negate(5)])), p instanceof Point, p.x)
})
`

test('one file, plain node', async () => {
  const program = new Program({ 'app.mjs': inOneFile(false) })
  const { code, out, err } = await program.run('app.mjs')
  assert.deepEqual([code, out, err], [0, '[1,4,9]\n', ''])
  await program.leavesNothing()
})

for (const type of ['module', 'commonjs'] as const) {
  test(`one file, tsx, type ${type}`, async () => {
    const program = new Program({ 'app.ts': inOneFile(true) }, type)
    const { code, out, err } = await program.run('app.ts')
    assert.deepEqual([code, out, err], [0, '[1,4,9]\n', ''])
    await program.leavesNothing()
  })

  test(`tasks in another file with a class and a default export, tsx, type ${type}`, async () => {
    const program = new Program(
      { 'app.ts': importing.replace('EXT', 'ts'), 'tasks.ts': tasksFile(true) },
      type,
    )
    const { code, out, err } = await program.run('app.ts')
    assert.deepEqual([code, out, err], [0, '[16,-5] true 2\n', ''])
    await program.leavesNothing()
  })
}

test('a module that reads the arguments of the program finds them in threads, too', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main, waitOn } from 'millrace'
const [name = 'nobody', ...more] = process.argv.slice(2)
export const greet = task({}, () => [name, more.length].join(' '))
main(async () => console.log(await waitOn(greet())))
`,
  })
  const { code, out, err } = await program.run('app.mjs', ['ada', 'x', 'y'])
  assert.deepEqual([code, out, err], [0, 'ada 2\n', ''])
  await program.leavesNothing()
})

test('a CommonJS program with require', async () => {
  const program = new Program(
    {
      'app.js': `
const { main, waitOn } = require('millrace')
const { square } = require('./tasks.js')
main(async () => console.log(await square(5)))
`,
      'tasks.js': `
const { task } = require('millrace')
exports.square = task({ name: 'square' }, x => x * x)
`,
    },
    'commonjs',
  )
  const { code, out, err } = await program.run('app.js')
  // Node 20 cannot require() an ES module without a flag; from 20.19 on it can.
  assert.deepEqual([code, out], [0, '25\n'], err)
  await program.leavesNothing()
})

test('tasks in another file, plain node', async () => {
  const program = new Program({ 'app.mjs': importing.replace('EXT', 'mjs'), 'tasks.mjs': tasksFile(false) })
  const { code, out, err } = await program.run('app.mjs')
  assert.deepEqual([code, out, err], [0, '[16,-5] true 2\n', ''])
  await program.leavesNothing()
})

test('without main, the tasks in another file', async () => {
  const program = new Program({
    'app.mjs': `
import { waitOn } from 'millrace'
import { square } from './tasks.mjs'
console.log(JSON.stringify(await waitOn([1, 2, 3].map(x => square(x)))))
`,
    'tasks.mjs': tasksFile(false),
  })
  const { code, out, err } = await program.run('app.mjs')
  assert.deepEqual([code, out, err], [0, '[1,4,9]\n', ''])
  await program.leavesNothing()
})

test('without main, in one file that expects to be loaded by threads too', async () => {
  const program = new Program({ 'app.mjs': withoutMain })
  const { code, out } = await program.run('app.mjs')
  assert.deepEqual([code, out], [0, '[1,4,9]\n'])
  await program.leavesNothing()
})

test('without main, in one file: says what to do instead of running everything in every thread', async () => {
  const program = new Program({
    'app.mjs': `
import { task, waitOn } from 'millrace'
export const square = task({ name: 'square' }, x => x * x)
console.log(await square(4))
`,
  })
  const { code, err } = await program.run('app.mjs')
  assert.equal(code, 1)
  assert.match(err, /MR_CALL_AT_LOAD/)
  assert.match(err, /main\(async/)
  await program.leavesNothing()
})

test('a program that writes await before main works, though there is nothing to wait for', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main } from 'millrace'
export const square = task({}, x => x * x)
await main(async () => { console.log(await square(6)) })
`,
  })
  const { code, out, err } = await program.run('app.mjs')
  assert.deepEqual([code, out, err], [0, '36\n', ''])
  await program.leavesNothing()
})

test('tasks that are not exported are found', async () => {
  const program = new Program({ 'app.mjs': inOneFile(false).replace('export const', 'const') })
  const { code, out } = await program.run('app.mjs')
  assert.deepEqual([code, out], [0, '[1,4,9]\n'])
  await program.leavesNothing()
})

test('a program that forgets to wait still finishes its tasks', async () => {
  const program = new Program({
    'app.mjs': `
import { main } from 'millrace'
import { write } from './tasks.mjs'
main(() => { for (let i = 0; i < 20; i++) write('out/' + i + '.txt') })
`,
    'tasks.mjs': tasksFile(false),
  })
  const { code, err } = await program.run('app.mjs')
  assert.deepEqual([code, err], [0, ''])
  assert.deepEqual(readdirSync(program.path('out')).length, 20)
  assert.equal(program.read('out/19.txt'), 'written')
  await program.leavesNothing()
})

test('a program without main that forgets to wait still finishes its tasks', async () => {
  const program = new Program({
    'app.mjs': `
import { write } from './tasks.mjs'
for (let i = 0; i < 20; i++) write('out/' + i + '.txt')
`,
    'tasks.mjs': tasksFile(false),
  })
  const { code, err } = await program.run('app.mjs')
  assert.deepEqual([code, err], [0, ''])
  assert.equal(program.read('out/19.txt'), 'written')
  await program.leavesNothing()
})

test('an error in main ends the program with 1 and is shown', async () => {
  const program = new Program({
    'app.mjs': `
import { main } from 'millrace'
main(async () => { throw new RangeError('the program is wrong') })
`,
  })
  const { code, err } = await program.run('app.mjs')
  assert.equal(code, 1)
  assert.match(err, /RangeError: the program is wrong/)
  await program.leavesNothing()
})

test('a failed task that is not waited for ends the program with 1 and is shown', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main } from 'millrace'
export const bad = task({ name: 'bad' }, () => { throw new Error('inside the task') })
main(() => { bad() })
`,
  })
  const { code, err } = await program.run('app.mjs')
  assert.equal(code, 1)
  assert.match(err, /bad#1 failed: inside the task/)
  assert.match(err, /app\.mjs:3/)
  await program.leavesNothing()
})

test('a failed task that is not waited for, without main', async () => {
  const program = new Program({
    'app.mjs': `
import { bad } from './tasks.mjs'
bad()
`,
    'tasks.mjs': `
import { task } from 'millrace'
export const bad = task({ name: 'bad' }, () => { throw new Error('inside the task') })
`,
  })
  const { code, err } = await program.run('app.mjs')
  assert.equal(code, 1)
  assert.match(err, /bad#1 failed: inside the task/)
  await program.leavesNothing()
})

test('an impossible constraint ends the program with 2', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main } from 'millrace'
export const big = task({ name: 'big', cpus: 64 }, () => 1)
main(async () => { await big() })
`,
  })
  const { code, err } = await program.run('app.mjs', [], { MILLRACE_CPUS: '2' })
  assert.equal(code, 2)
  assert.match(err, /task big asks for 64 CPUs, but the largest node has 2/)
  await program.leavesNothing()
})

test('process.exit in main ends the program at once with its code', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main, command } from 'millrace'
export const slow = task({}, () => new Promise(resolve => setTimeout(resolve, 60000)))
export const sleep = command({ name: 'sleep' }, () => ['sleep', '3600'])
main(async () => {
  slow()
  sleep()
  await new Promise(resolve => setTimeout(resolve, 100))
  process.exit(7)
})
`,
  })
  const { code, err } = await program.run('app.mjs')
  assert.equal(code, 7)
  assert.match(err, /process\.exit was called while 2 tasks had not ended: what they make is lost/)
  assert.match(err, /MR_ENDED/)
  await program.leavesNothing()
})

test('a task defined inside main is refused with a way out', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main } from 'millrace'
main(async () => {
  const late = task({ name: 'late' }, x => x)
  await late(1)
})
`,
  })
  const { code, err } = await program.run('app.mjs')
  assert.equal(code, 1)
  assert.match(err, /MR_NOT_TOP_LEVEL/)
  assert.match(err, /task late is not defined at the top level of .*app\.mjs/)
  await program.leavesNothing()
})

test('a module that throws in a thread is named with its reason', async () => {
  const program = new Program({
    'app.mjs': `
import { main } from 'millrace'
import { work } from './tasks.mjs'
main(async () => { await work() })
`,
    'tasks.mjs': `
import { isMainThread } from 'node:worker_threads'
import { task } from 'millrace'
if (!isMainThread) throw new Error('not in my thread')
export const work = task({ name: 'work' }, () => 1)
`,
  })
  const { code, err } = await program.run('app.mjs')
  assert.equal(code, 1)
  assert.match(err, /MR_MODULE/)
  assert.match(err, /tasks\.mjs could not be loaded by a compute thread: not in my thread/)
  await program.leavesNothing()
})

test('a module that is gone when a thread wants it is named', async () => {
  const program = new Program({
    'app.mjs': `
import { main } from 'millrace'
import { rmSync } from 'node:fs'
import { work } from './tasks.mjs'
rmSync(new URL('./tasks.mjs', import.meta.url), { force: true })
main(async () => { await work() })
`,
    'tasks.mjs': `
import { task } from 'millrace'
export const work = task({ name: 'work' }, () => 1)
`,
  })
  const { code, err } = await program.run('app.mjs')
  assert.equal(code, 1)
  assert.match(err, /MR_MODULE/)
  await program.leavesNothing()
})

test('a module that calls tasks while a thread loads it is told to use main', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main } from 'millrace'
export const work = task({ name: 'work' }, () => 1)
if (process.env.CALL) work()
main(async () => { process.env.CALL = '1'; console.log(await work()) })
`,
  })
  const { code, err } = await program.run('app.mjs', [], { CALL: '1' })
  assert.equal(code, 1)
  assert.match(err, /MR_CALL_AT_LOAD/)
  await program.leavesNothing()
})

test('out of memory fails the task and the run goes on', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main } from 'millrace'
export const eat = task({ name: 'eat' }, () => { const all = []; for (;;) all.push(new Array(100000).fill(1.5)) })
export const add = task({ name: 'add' }, (a, b) => a + b)
main(async () => {
  try { await eat() } catch (error) { console.log(error.code) }
  console.log(await add(1, 2))
})
`,
  })
  const { code, out, err } = await program.run('app.mjs', [], { NODE_OPTIONS: '--max-old-space-size=64' })
  assert.deepEqual([code, out], [0, 'MR_THREAD_DIED\n3\n'], err)
  await program.leavesNothing()
})

test('what tasks and commands print is shown and kept in log files', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main, command } from 'millrace'
export const say = task({ name: 'say' }, text => { console.log(text); console.error('error ' + text) })
export const shout = command({ name: 'shout' }, text => ['echo', text])
main(async () => { await say('hello'); await shout('world') })
`,
  })
  const { code, out } = await program.run('app.mjs')
  assert.equal(code, 0)
  assert.match(out, /hello/)
  const runs = program.path('.millrace/runs')
  const [run] = readdirSync(runs)
  const logs = (readdirSync(runs, { recursive: true }) as string[]).filter(name => name.endsWith('.log'))
  assert.equal(logs.length, 2, `${run}: ${logs.join()}`)
  const texts = logs.sort().map(name => program.read(`.millrace/runs/${name}`))
  assert.equal(texts[0], 'hello\nerror hello\n')
  assert.equal(texts[1], 'world\n')
  await program.leavesNothing()
})

test('main twice, and calls after the end, are told so', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main } from 'millrace'
export const work = task({ name: 'work' }, () => 1)
main(async () => { await work(); setTimeout(() => { try { work() } catch (error) { console.log(error.code) } }, 500) })
`,
  })
  const { out } = await program.run('app.mjs')
  assert.equal(out, 'MR_ENDED\n')
  await program.leavesNothing()
})

test('threads that end before they begin fail their tasks after some tries, also tasks with retries', async () => {
  const program = new Program({
    'app.mjs': `
import { isMainThread } from 'node:worker_threads'
import { task, main } from 'millrace'
if (!isMainThread) process.exit(3)
export const add = task({ name: 'add', retries: 5 }, (a, b) => a + b)
main(async () => {
  try { await add(1, 2) } catch (error) { console.log(error.code, String(error.cause)) }
})
`,
  })
  const { code, out, err } = await program.run('app.mjs')
  assert.equal(code, 0, err)
  assert.match(out, /MR_\w+ .*no thread can begin: the thread ended with process\.exit\(3\)/)
  await program.leavesNothing()
})

test('a main that waits for what can never come fails, and says so', async () => {
  const program = new Program({
    'app.mjs': `
import { task, main } from 'millrace'
export const add = task({ name: 'add' }, (a, b) => a + b)
main(async () => {
  console.log(await add(1, 2))
  await new Promise(() => {})
})
`,
  })
  const { code, out, err } = await program.run('app.mjs')
  assert.deepEqual([code, out], [1, '3\n'], err)
  assert.match(err, /MR_MAIN_WAITS/)
  await program.leavesNothing()
})
