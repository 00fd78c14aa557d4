import assert from 'node:assert/strict'
import { chmodSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Program } from './folder.ts'

const SUM = `
import { task, main, waitOn } from 'millrace'
import { ran } from './ran.mjs'
export const square = task({}, x => { ran('square ' + x); return { x, y: x * x } })
export const sum = task({}, squares => { ran('sum'); return squares.reduce((s, { y }) => s + y, 0) })
main(async () => {
  const squares = [1, 2, 3].map(x => square(x))
  console.log(await waitOn(sum(squares)))
})
`

test('a program that is run again with --resume runs no task again', async () => {
  const program = new Program({ 'app.mjs': SUM })
  const first = await program.run()
  assert.equal(first.stdout, '14\n', first.stderr)
  assert.deepEqual(first.ran, ['square 1', 'square 2', 'square 3', 'sum'])
  const second = await program.run('--resume')
  assert.equal(second.stdout, '14\n', second.stderr)
  assert.deepEqual(second.ran, [])
  assert.match(second.stderr, /0 ok, 4 kept from before, of 4/)
  const third = await program.run()
  assert.equal(third.ran.length, 4, 'without --resume all run')
})

test('what is kept does not count when code, an import, an argument or key has changed', async () => {
  const app = (more: string, key: string): string => `
    import { task, main, waitOn } from 'millrace'
    import { ran } from './ran.mjs'
    import { double } from './double.mjs'
    export const work = task({ key: ${key} }, x => { ran('work ' + x); return double(x) })
    main(async () => { console.log(await waitOn([work(1), work(2)])${more}) })
  `
  const program = new Program({ 'app.mjs': app('', '1'), 'double.mjs': 'export const double = x => 2 * x' })
  await program.run()
  assert.deepEqual((await program.run('--resume')).ran, [])
  writeFileSync(program.path('double.mjs'), 'export const double = x => 20 * x')
  const changed = await program.run('--resume', '--explain')
  assert.equal(changed.stdout, '[ 20, 40 ]\n')
  assert.match(changed.stderr, /work: 0 reused, 2 ran; first: work#\d+: its code changed: double\.mjs:1/)
  writeFileSync(program.path('double.mjs'), 'export const double = x => 2 * x')
  assert.deepEqual((await program.run('--resume')).ran, [], 'what was kept before is there again')
  writeFileSync(program.path('app.mjs'), app('', '2'))
  assert.equal((await program.run('--resume')).ran.length, 2)
})

test('swapped arguments, and arguments that print alike, are not taken for each other', async () => {
  const app = `
    import { task, main, waitOn } from 'millrace'
    import { list } from './list.mjs'
    import { show } from './show.mjs'
    main(async () => { for (const args of list) console.log(await waitOn(show(...args))) })
  `
  const show = `
    import { task } from 'millrace'
    import { inspect } from 'node:util'
    export const show = task({}, (...args) => inspect(args))
  `
  const pairs = [
    '[1, 2]',
    '[2, 1]',
    '["1", 2]',
    '[-0, 0]',
    '[0, -0]',
    '[NaN]',
    '["NaN"]',
    '[null]',
    '[undefined]',
    '["a,b"]',
    '["a", "b"]',
    '[1n]',
    '["1n"]',
    '[[1], 2]',
    '[[1, 2]]',
    '[{ a: 1, b: 2 }]',
    '[{ b: 2, a: 1 }]',
    '["\\ud800"]',
    '["\\ud801"]',
    '[new Date(0)]',
    '[new Map([[1, 2]])]',
    '[new Set([1])]',
    '[new Uint8Array([1])]',
    '[new Int8Array([1])]',
    '[true]',
    '["true"]',
  ]
  const program = new Program({
    'app.mjs': app,
    'show.mjs': show,
    'list.mjs': `export const list = [${pairs.join(', ')}]`,
  })
  const first = await program.run()
  writeFileSync(program.path('list.mjs'), `export const list = [${pairs.toReversed().join(', ')}]`)
  const second = await program.run('--resume')
  assert.deepEqual(second.stdout.trim().split('\n').toReversed(), first.stdout.trim().split('\n'))
  assert.equal(new Set(first.stdout.trim().split('\n')).size, pairs.length)
})

test('values around the size from which digests are kept are told apart by the tasks that read them', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOn } from 'millrace'
      import { ran } from './ran.mjs'
      // As text that is written, some are six times as long.
      export const make = task({}, (text, n) => { ran('make'); return text.repeat(n) + n })
      export const list = task({}, (text, n) => { ran('list'); return [text.repeat(n) + n] })
      export const size = task({}, one => { ran('size'); return Buffer.from(one + '').toString('hex').slice(-8) })
      main(async () => {
        const values = []
        for (const text of ['x', '\\0', 'é'])
          for (const n of [1, 600, 601, 690, 4080, 4081, 4090, 4091, 4092, 4093, 4094, 4095, 4096, 4097, 5000])
            values.push(size(make(text, n)), size(list(text, n)))
        console.log(JSON.stringify(await waitOn(values)))
      })
    `,
  })
  const first = await program.run()
  const second = await program.run('--resume')
  assert.equal(second.stdout, first.stdout)
  assert.deepEqual(second.ran, [])
})

test("objects that a task wrote are the program's own again, with what two names refer to", async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOn, INOUT } from 'millrace'
      import { ran } from './ran.mjs'
      export const turn = task({ params: [INOUT] }, list => { ran('turn'); list.items.reverse(); list.first = list.items[0] })
      main(async () => {
        const [a, b] = [{ name: 'a' }, { name: 'b' }]
        const list = { items: [a, b], first: a }
        turn(list)
        turn(list)
        turn(list)
        await waitOn(list)
        console.log(list.items[0] === b, list.first === b, list.items[1] === a, a.name, b.name)
      })
    `,
  })
  assert.equal((await program.run()).stdout, 'true true true a b\n')
  const second = await program.run('--resume')
  assert.equal(second.stdout, 'true true true a b\n')
  assert.deepEqual(second.ran, [])
})

const FILES = `
  import { task, command, main, waitOn, waitOnFile, FILE_IN, FILE_OUT, FILE_INOUT, DIR_OUT, DIR_IN, IN } from 'millrace'
  import { appendFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
  import { ran } from './ran.mjs'
  export const make = task({ params: [FILE_OUT, IN] }, (path, n) => { ran('make'); writeFileSync(path, 'made ' + n + '\\n') })
  export const grow = task({ params: [FILE_INOUT] }, path => { ran('grow'); appendFileSync(path, 'grown\\n') })
  export const upper = command({ params: [FILE_IN, FILE_OUT], stdin: 0, stdout: 1 }, () => ['sh', '-c', 'echo x >> ran.log; tr a-z A-Z'])
  export const folder = task({ params: [FILE_IN, DIR_OUT] }, (from, to) => {
    ran('folder')
    mkdirSync(to + '/inner')
    writeFileSync(to + '/inner/one', readFileSync(from))
    writeFileSync(to + '/two', 'two')
  })
  export const count = task({ params: [DIR_IN, FILE_IN] }, (path, source) => { ran('count'); return readdirSync(path).length + readFileSync(source, 'utf8').length })
  main(async () => {
    make('out/a.txt', 1)
    grow('out/a.txt')
    upper('out/a.txt', 'out/b.txt')
    folder('out/b.txt', 'out/dir')
    console.log(await waitOn(count('out/dir', 'source.txt')))
    await waitOnFile('out/b.txt')
  })
`

test('files, directories and commands are kept, and brought back when they are gone or changed', async () => {
  const program = new Program({ 'app.mjs': FILES, 'source.txt': 'abc' })
  const first = await program.run()
  assert.equal(first.stdout, '5\n', first.stderr)
  assert.equal(first.ran.length, 5)
  const expect = async (what: string, ran: string[] = []): Promise<void> => {
    const again = await program.run('--resume')
    assert.equal(again.stdout, '5\n', `${what}: ${again.stderr}`)
    assert.deepEqual(again.ran, ran, what)
    assert.equal(program.read('out/a.txt'), 'made 1\ngrown\n', what)
    assert.equal(program.read('out/b.txt'), 'MADE 1\nGROWN\n', what)
    assert.equal(program.read('out/dir/inner/one'), 'MADE 1\nGROWN\n', what)
    assert.deepEqual(readdirSync(program.path('out')).sort(), ['a.txt', 'b.txt', 'dir'], what)
  }
  await expect('as it was')
  rmSync(program.path('out'), { recursive: true })
  await expect('all gone')
  writeFileSync(program.path('out/b.txt'), 'something else')
  await expect('another file in its place')
  const { mtime, atime } = statSync(program.path('out/b.txt'))
  writeFileSync(program.path('out/b.txt'), 'MADE 1\nGR0WN\n')
  utimesSync(program.path('out/b.txt'), atime, mtime)
  await expect('same size and time, other content')
  rmSync(program.path('out/dir/two'))
  await expect('a file of the directory is gone')
})

test('a result that was written into is made again', async () => {
  const program = new Program({ 'app.mjs': FILES, 'source.txt': 'abc' })
  await program.run()
  const path = program.path('out/b.txt')
  const { mtime, atime } = statSync(path)
  // In place: where files are kept by links, what is kept has changed too.
  writeFileSync(path, 'made 1\nGROWN\n')
  utimesSync(path, atime, mtime)
  const again = await program.run('--resume')
  assert.equal(again.stdout, '5\n', again.stderr)
  assert.equal(program.read('out/b.txt'), 'MADE 1\nGROWN\n')
  assert.equal(program.read('out/dir/inner/one'), 'MADE 1\nGROWN\n')
})

test('an input file that has changed behind its name, with the same size and time, is seen', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOn, FILE_IN } from 'millrace'
      import { readFileSync } from 'node:fs'
      import { ran } from './ran.mjs'
      export const read = task({ params: [FILE_IN] }, path => { ran('read'); return readFileSync(path, 'utf8') })
      main(async () => console.log(await waitOn(read('input.txt'))))
    `,
    'input.txt': 'first',
  })
  const time = new Date(Date.now() - 100_000)
  utimesSync(program.path('input.txt'), time, time)
  assert.equal((await program.run()).stdout, 'first\n')
  assert.deepEqual((await program.run('--resume')).ran, [])
  writeFileSync(program.path('input.txt'), 'FIRST')
  utimesSync(program.path('input.txt'), time, time)
  const changed = await program.run('--resume', '--explain')
  assert.equal(changed.stdout, 'FIRST\n')
  assert.match(changed.stderr, /its input changed: .*input\.txt/)
  chmodSync(program.path('input.txt'), 0o755)
  assert.deepEqual((await program.run('--resume')).ran, ['read'], 'it may be run now')
})

test('tasks that call tasks, generators, and failures that are ignored are kept', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOn } from 'millrace'
      import { ran } from './ran.mjs'
      export const leaf = task({}, x => { ran('leaf ' + x); return x + 1 })
      export const tree = task({}, async x => { ran('tree'); const [a, b] = await waitOn([leaf(x), leaf(x + 10)]); return a + b })
      export const count = task({}, function* (n) { ran('count'); for (let i = 0; i < n; i++) yield { i } })
      export const take = task({}, async stream => { ran('take'); let sum = 0; for await (const { i } of stream) sum += i; return sum })
      export const bad = task({ onFailure: 'ignore', defaults: { returns: 'nothing' } }, () => { ran('bad'); throw new Error('bad') })
      export const pair = task({ returns: 2 }, x => { ran('pair'); return [x, [x]] })
      main(async () => {
        const [one, two] = pair(7)
        console.log(await waitOn([tree(1), take(count(5)), bad(), one, two]))
        let sum = 0
        for await (const value of count(4)) sum += (await waitOn(value)).i
        console.log(sum)
      })
    `,
  })
  const first = await program.run()
  assert.equal(first.stdout, "[ 14, 10, 'nothing', 7, [ 7 ] ]\n6\n", first.stderr)
  assert.equal(first.ran.length, 8)
  const second = await program.run('--resume')
  assert.equal(second.stdout, first.stdout, second.stderr)
  assert.deepEqual(second.ran, [])
})

test('cache: false always runs, and so does what it is called by; what reads the same goes on from there', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOn } from 'millrace'
      import { ran } from './ran.mjs'
      export const now = task({ cache: false }, () => { ran('now'); return 5 })
      export const caller = task({}, async () => { ran('caller'); return await waitOn(now()) })
      export const after = task({}, x => { ran('after'); return x + 1 })
      main(async () => console.log(await waitOn([after(now()), caller()])))
    `,
  })
  assert.equal((await program.run()).stdout, '[ 6, 5 ]\n')
  const second = await program.run('--resume')
  assert.equal(second.stdout, '[ 6, 5 ]\n')
  assert.deepEqual(second.ran, ['caller', 'now', 'now'])
})

test('a caller whose tasks write files runs again, and its tasks do not', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOn, barrier, FILE_OUT } from 'millrace'
      import { writeFileSync } from 'node:fs'
      import { ran } from './ran.mjs'
      export const write = task({ params: [FILE_OUT] }, path => { ran('write'); writeFileSync(path, 'text') })
      export const caller = task({}, async () => { ran('caller'); write('made.txt'); await barrier(); return 1 })
      main(async () => console.log(await waitOn(caller())))
    `,
  })
  await program.run()
  rmSync(program.path('made.txt'))
  const second = await program.run('--resume')
  assert.deepEqual(second.ran, ['caller'])
  assert.equal(program.read('made.txt'), 'text')
})

test('methods of instances count: a changed class is seen where the task does not import it', async () => {
  const box = (factor: number): string => `
    import { task } from 'millrace'
    export class Box { constructor(x) { this.x = x } size() { return this.x * ${factor} } }
    export const unused = task({}, () => 0)
  `
  const program = new Program({
    'box.mjs': box(2),
    'tasks.mjs': `
      import { task } from 'millrace'
      export const measure = task({}, box => box.size())
      export const wrap = task({}, box => [box])
      export const open = task({}, list => list[0].size())
    `,
    'app.mjs': `
      import { main, waitOn } from 'millrace'
      import { Box } from './box.mjs'
      import { measure, wrap, open } from './tasks.mjs'
      main(async () => console.log(await waitOn([measure(new Box(4)), open(wrap(new Box(5)))])))
    `,
  })
  assert.equal((await program.run()).stdout, '[ 8, 10 ]\n')
  writeFileSync(program.path('box.mjs'), box(3))
  assert.equal((await program.run('--resume')).stdout, '[ 12, 15 ]\n')
})

test('a result of one run is used by --resume=RUN, and not those of others', async () => {
  const program = new Program({ 'app.mjs': SUM })
  await program.run()
  const [run = ''] = readdirSync(program.path('.millrace/runs'))
  assert.deepEqual((await program.run(`--resume=${run}`)).ran, [])
  // One that has only used what others kept.
  const user = readdirSync(program.path('.millrace/runs')).find(name => name !== run && name !== 'last')
  assert.deepEqual((await program.run(`--resume=${user}`)).ran, [])
  const unknown = await program.run('--resume=nobody')
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /nothing is kept of run nobody/)
})

test('a store of another version is refused with a code', async () => {
  const program = new Program({ 'app.mjs': SUM })
  await program.run()
  writeFileSync(program.path('.millrace/store/format'), 'millrace store 99\n')
  const refused = await program.run('--resume')
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /is of version 99, and this Millrace reads version 1/)
})

test('--cache shares results between folders; with :ro it is only read', async () => {
  const cache = join(new Program({ 'app.mjs': SUM }).folder, 'cache')
  const one = new Program({ 'app.mjs': SUM })
  const other = new Program({ 'app.mjs': SUM })
  await one.run('--cache', cache)
  assert.deepEqual((await other.run('--cache', cache)).ran, [])
  const before = readdirSync(join(cache, 'segments')).length
  assert.deepEqual((await other.run('--cache', `${cache}:ro`)).ran, [])
  assert.equal(readdirSync(join(cache, 'segments')).length, before)
  const missing = await other.run('--cache', 'nowhere:ro')
  assert.match(missing.stderr, /there is no store in .*nowhere/)
})

test('programs count by their files where a task names them', async () => {
  const program = new Program({
    'app.mjs': `
      import { command, main, waitOnFile, FILE_OUT } from 'millrace'
      export const tool = command({ params: [FILE_OUT], programs: ['./tool.sh', './helper.sh'], stdout: 0 }, () => ['./tool.sh'])
      main(async () => { tool('out.txt'); await waitOnFile('out.txt') })
    `,
    'tool.sh': '#!/bin/sh\necho ran >> ran.log\necho one\n',
  })
  chmodSync(program.path('tool.sh'), 0o755)
  await program.run()
  assert.deepEqual((await program.run('--resume')).ran, [])
  writeFileSync(program.path('tool.sh'), '#!/bin/sh\necho ran >> ran.log\necho two\n')
  await program.run('--resume')
  assert.equal(readFileSync(program.path('out.txt'), 'utf8'), 'two\n')
  // One that was not there counts when it comes.
  assert.deepEqual((await program.run('--resume')).ran, [])
  writeFileSync(program.path('helper.sh'), '#!/bin/sh\n')
  assert.deepEqual((await program.run('--resume')).ran, ['ran'])
})
