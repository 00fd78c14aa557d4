import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { readHead } from '../../src/runtime/resume/record.ts'
import { Stores } from '../../src/runtime/resume/stores.ts'
import { digestOf, hexOf } from '../../src/store/digest.ts'
import { Store } from '../../src/store/store.ts'
import { Running } from '../cli/folder.ts'
import { Program } from './folder.ts'

/**
 * Random programs over values, objects, files, directories, commands, streams, nested tasks, generators and failures. A step is made of numbers, so that a program and
 * what it prints when it is run in sequence follow from the list of steps alone.
 */
const APP = `
import { task, command, stream, main, waitOn, waitOnFile, INOUT, IN, FILE_IN, FILE_OUT, FILE_INOUT, DIR_IN, DIR_OUT } from 'millrace'
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { ran } from './ran.mjs'
import { steps } from './steps.mjs'
const spin = ms => { for (const end = performance.now() + ms; performance.now() < end;); }
export const value = task({}, (a, b, n) => { spin(n % 7); ran('value ' + n); return { n: (a.n * 31 + b.n * 17 + n) % 9973 } })
export const write = task({ params: [INOUT, IN, IN] }, (list, a, n) => { spin(n % 5); ran('write ' + n); list.items.push(a.n + n); list.last = list.items.at(-1) })
export const file = task({ params: [FILE_OUT, IN, IN] }, (path, a, n) => { spin(n % 5); ran('file ' + n); writeFileSync(path, 'file ' + a.n + ' ' + n + '\\n') })
export const grow = task({ params: [FILE_INOUT, IN] }, (path, n) => { ran('grow ' + n); appendFileSync(path, 'grown ' + n + '\\n') })
export const read = task({ params: [FILE_IN, IN] }, (path, n) => { ran('read ' + n); return { n: (readFileSync(path, 'utf8').length * 7 + n) % 9973 } })
export const leaf = task({}, n => { spin(n % 4); ran('leaf ' + n); return { n } })
export const tree = task({}, async (a, n) => { ran('tree ' + n); const [x, y] = await waitOn([leaf(n), leaf(n + 1000)]); return { n: (a.n + x.n + y.n) % 9973 } })
export const count = task({}, function* (a, n) { ran('count ' + n); for (let i = 0; i < n % 6; i++) { spin(1); yield { n: a.n + i } } })
export const take = task({}, async (values, n) => { ran('take ' + n); let sum = n; for await (const one of values) sum += one.n; return { n: sum % 9973 } })
export const fails = task({ onFailure: 'ignore', defaults: { returns: { n: 5 } } }, (a, n) => { ran('fails ' + n); if ((a.n + n) % 2) throw new Error('odd'); return { n: 6 } })
export const upper = command({ params: [FILE_IN, FILE_OUT, IN], stdin: 0, stdout: 1 }, (from, to, n) => ['sh', '-c', 'echo upper ' + n + ' >> ran.log; tr a-z A-Z'])
export const folder = task({ params: [FILE_IN, DIR_OUT, IN] }, (from, to, n) => { ran('folder ' + n); mkdirSync(to + '/in'); writeFileSync(to + '/in/one', readFileSync(from)); writeFileSync(to + '/two', 'two ' + n) })
export const inside = task({ params: [DIR_IN, IN] }, (path, n) => { ran('inside ' + n); return { n: (readFileSync(path + '/in/one', 'utf8').length * 5 + readFileSync(path + '/two', 'utf8').length + n) % 9973 } })
export const feed = command({ params: [FILE_OUT, IN] }, (to, n) => ['sh', '-c', 'echo feed ' + n + ' >> ran.log; for i in 1 2 3; do echo line $i ' + n + '; sleep 0.01; done > "$0"', to])
export const drain = command({ params: [FILE_IN, FILE_OUT], stdout: 1 }, from => ['sort', '-r', from])
main(async () => {
  const values = [{ n: 1 }, { n: 2 }]
  const list = { items: [], last: 0 }
  const files = []
  let folders = 0
  let streams = 0
  const at = n => values[n % values.length]
  for (const [kind, a, b, n] of steps) {
    const path = files.length > 0 ? files[a % files.length] : null
    if (kind === 0) values.push(value(at(a), at(b), n))
    else if (kind === 1) write(list, at(a), n)
    else if (kind === 2) { files.push('f' + files.length + '.txt'); file(files.at(-1), at(a), n) }
    else if (kind === 3 && path) grow(path, n)
    else if (kind === 4 && path) values.push(read(path, n))
    else if (kind === 5) values.push(tree(at(a), n))
    else if (kind === 6) values.push(take(count(at(a), n), n))
    else if (kind === 7) values.push(fails(at(a), n))
    else if (kind === 8 && path) { files.push('f' + files.length + '.txt'); upper(path, files.at(-1), n) }
    else if (kind === 9 && path) { const to = 'd' + folders++; folder(path, to, n); values.push(inside(to, n)) }
    else if (kind === 10) {
      const from = 's' + streams++ + '.txt'
      feed(stream(from, { commit: 'on_close', fire: 'no_update' }), n)
      files.push('f' + files.length + '.txt')
      drain(from, files.at(-1))
    }
  }
  await waitOn(list)
  const found = (await waitOn(values)).map(({ n }) => n)
  const texts = []
  for (const path of files) texts.push(readFileSync(await waitOnFile(path), 'utf8'))
  console.log(JSON.stringify({ found, list, texts }))
})
`

interface Outcome {
  found: number[]
  list: { items: number[]; last: number }
  texts: string[]
}

type Step = readonly [kind: number, a: number, b: number, n: number]

/** The same without tasks. */
function sequential(steps: readonly Step[]): Outcome {
  const found = [1, 2]
  const list = { items: [] as number[], last: 0 }
  const texts: string[] = []
  const at = (n: number): number => found[n % found.length] as number
  for (const [kind, a, b, n] of steps) {
    const path = texts.length > 0 ? a % texts.length : -1
    if (kind === 0) found.push((at(a) * 31 + at(b) * 17 + n) % 9973)
    else if (kind === 1) {
      list.items.push(at(a) + n)
      list.last = at(a) + n
    } else if (kind === 2) texts.push(`file ${at(a)} ${n}\n`)
    else if (kind === 3 && path >= 0) texts[path] += `grown ${n}\n`
    else if (kind === 4 && path >= 0) found.push(((texts[path] as string).length * 7 + n) % 9973)
    else if (kind === 5) found.push((at(a) + n + n + 1000) % 9973)
    else if (kind === 6) found.push([...Array(n % 6).keys()].reduce((sum, i) => sum + at(a) + i, n) % 9973)
    else if (kind === 7) found.push((at(a) + n) % 2 ? 5 : 6)
    else if (kind === 8 && path >= 0) texts.push((texts[path] as string).toUpperCase())
    else if (kind === 9 && path >= 0)
      found.push(((texts[path] as string).length * 5 + `two ${n}`.length + n) % 9973)
    else if (kind === 10) texts.push([3, 2, 1].map(i => `line ${i} ${n}\n`).join(''))
  }
  return { found, list, texts }
}

const step = fc.tuple(fc.nat(10), fc.nat(50), fc.nat(50), fc.nat(900))

/** A hunt takes more of them: RESUME_KILLS=300 npm test -- kill */
const PROGRAMS = Number(process.env['RESUME_KILLS'] ?? 4)

test('programs that are killed and resumed, again and again, end as if they had run once, in sequence', async () => {
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 15, maxLength: 40 }),
    fc.array(fc.tuple(fc.nat(20), fc.nat(12)), { minLength: 1, maxLength: 5 }),
    fc.nat(5),
    async (steps, kills, nodes) => {
      const program = new Program({
        'app.mjs': APP,
        'steps.mjs': `export const steps = ${JSON.stringify(steps)}`,
      })
      const args = ['run', 'app.mjs', '--resume', '--checkpoint', 'all', '--progress', 'plain']
      // Some of them on agents.
      if (nodes === 0) args.push('--nodes', 'local:2')
      const expected = sequential(steps)
      const expectNoneTwice = nodes === 0 ? () => undefined : new KeptTasks(program, steps).expectNoneTwice
      for (const [lines, milliseconds] of kills) {
        const run = new Running(program.folder, args)
        // By what it has done; the time only moves it to some place between two lines.
        await done(program, lines, run.ended)
        await new Promise(resolve => setTimeout(resolve, milliseconds))
        run.process.kill('SIGKILL')
        await run.ended
        expectNoneTwice()
      }
      const last = await new Running(program.folder, args).ended
      assert.equal(last.code, 0, last.stderr)
      expectNoneTwice()
      assert.deepEqual(JSON.parse(last.stdout) as Outcome, expected)
      for (const [line, times] of countOf(program.ran()))
        assert.ok(
          times <= (kills.length + 1) * (countOf(linesOf(steps)).get(line) ?? 0),
          `${line} ran ${times} times, with ${kills.length} kills`,
        )
      rmSync(program.path('ran.log'), { force: true })
      const again = await new Running(program.folder, args).ended
      assert.deepEqual(JSON.parse(again.stdout) as Outcome, expected)
      assert.deepEqual(
        program.ran().filter(line => !/^(?:tree|feed) /.test(line)),
        [],
        'all of it is kept now, but for streams',
      )
      await nothingLeft(program)
    },
  )
  await fc.assert(property, { numRuns: PROGRAMS, endOnFailure: true, includeErrorInReport: true })
})

/**
 * Kinds of which each result that is kept spares one call. Not: a task that takes values while they come, and begins before it is
 * known which they are; one that calls others; and commands, of which a killed run may leave one that still writes its line.
 */
const SPARED = ['value', 'write', 'file', 'grow', 'read', 'leaf', 'count', 'fails', 'folder', 'inside']

/** The kinds of the program, as records name them: by their module, and their order among those of their form. */
const NAMES = new Map(
  ['task', 'command'].flatMap(form =>
    [...APP.matchAll(new RegExp(`^export const (\\w+) = ${form}\\(`, 'gm'))].map(([, name = ''], i) => [
      hexOf(digestOf(JSON.stringify(['app.mjs', form, String(i + 1)]))),
      name,
    ]),
  ) as [string, string][],
)

/** Follows what is in the store from one run to the next, by reading its files. */
class KeptTasks {
  readonly #program: Program
  readonly #calls: Map<string, number>
  #kept = new Map<string, number>()
  #lines = 0

  constructor(program: Program, steps: readonly Step[]) {
    this.#program = program
    this.#calls = countOf(linesOf(steps).map(kindOf))
  }

  /** After a run: no task has run whose result was in the store when the run began. */
  readonly expectNoneTwice = (): void => {
    const all = this.#program.ranInOrder()
    const ran = countOf(all.slice(this.#lines).map(kindOf))
    for (const name of SPARED) {
      const most = (this.#calls.get(name) ?? 0) - (this.#kept.get(name) ?? 0)
      const times = ran.get(name) ?? 0
      assert.ok(times <= most, `${name} ran ${times} times, and ${most} were not kept: ${all.join()}`)
    }
    this.#lines = all.length
    this.#kept = this.#inStore()
  }

  /** Results by kind; no two of one key. */
  #inStore(): Map<string, number> {
    const found = new Map<string, number>()
    if (!existsSync(this.#program.path('.millrace/store'))) return found
    const store = Store.open(this.#program.path('.millrace/store'), { isReadOnly: true })
    for (const bytes of new Stores(store, []).results()) {
      const name = NAMES.get(hexOf(readHead(bytes).kind))
      assert.ok(name !== undefined)
      found.set(name, (found.get(name) ?? 0) + 1)
    }
    void store.close()
    return found
  }
}

const kindOf = (line: string): string => line.split(' ')[0] ?? ''

function countOf(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1)
  return counts
}

/** What the tasks of a program write down when it runs once. */
function linesOf(steps: readonly Step[]): string[] {
  let files = 0
  return steps.flatMap(([kind, , , n]) => {
    const has = files > 0
    if (kind === 2 || kind === 10 || (kind === 8 && has)) files++
    if (kind === 10) return [`feed ${n}`]
    if (kind === 5) return [`tree ${n}`, `leaf ${n}`, `leaf ${n + 1000}`]
    if (kind === 6) return [`count ${n}`, `take ${n}`]
    if (kind === 9) return has ? [`folder ${n}`, `inside ${n}`] : []
    const name = { 0: 'value', 1: 'write', 2: 'file', 3: 'grow', 4: 'read', 7: 'fails', 8: 'upper' }[kind]
    return kind === 0 || kind === 1 || kind === 2 || kind === 7 || has ? [`${name} ${n}`] : []
  })
}

/** The guards of killed runs have removed what those left; on a busy machine they take some time for that. */
async function nothingLeft({ folder }: Program): Promise<void> {
  for (;;) {
    if (!readdirSync(folder).some(name => name.startsWith('.millrace-new'))) return
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/** Waits until tasks have written down this number of lines more than there are now, or the run has ended. */
async function done(program: Program, more: number, ended: Promise<unknown>): Promise<void> {
  const count = (): number =>
    existsSync(program.path('ran.log')) ? readFileSync(program.path('ran.log'), 'utf8').split('\n').length : 0
  const from = count()
  let isOver = false
  void ended.then(() => (isOver = true))
  while (!isOver && count() < from + more) await new Promise(resolve => setTimeout(resolve, 2))
}

test('after a kill, the next start says what it found and how to go on', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOn, snapshot } from 'millrace'
      import { ran } from './ran.mjs'
      export const work = task({}, x => { ran('work ' + x); return x })
      main(async () => {
        console.log(await waitOn([work(1), work(2)]))
        await snapshot()
        console.log('kept')
        if (!process.argv.includes('end')) await new Promise(resolve => setTimeout(resolve, 60_000))
      })
    `,
  })
  const run = new Running(program.folder, ['run', 'app.mjs', '--checkpoint', 'all'])
  await run.printed('stdout', 'kept')
  run.process.kill('SIGKILL')
  await run.ended
  const next = await program.run('--', 'end')
  assert.match(
    next.stderr,
    /run [\w-]+ was killed, or its machine stopped; it had kept 2 results\. To go on from there: millrace run app\.mjs .*--resume/,
  )
  assert.equal(next.ran.length, 2)
  const resumed = await program.run('--resume', '--', 'end')
  assert.equal(resumed.stdout, '[ 1, 2 ]\nkept\n')
  assert.deepEqual(resumed.ran, [])
})

test('a run whose results were still being written when it ended is not taken for a killed one', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, FILE_OUT } from 'millrace'
      import { writeFileSync } from 'node:fs'
      export const work = task({ params: [FILE_OUT] }, path => writeFileSync(path, Buffer.alloc(2e7)))
      main(() => void work('large'))
    `,
  })
  await program.run()
  const next = await program.run()
  assert.doesNotMatch(next.stderr, /was killed/)
})

test('a run without --keep loses no long task', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOn } from 'millrace'
      import { ran } from './ran.mjs'
      export const long = task({}, x => { ran('long'); for (const end = performance.now() + 150; performance.now() < end;); return x })
      export const short = task({}, x => { ran('short'); return x })
      main(async () => console.log(await waitOn([long(1), short(2)])))
    `,
  })
  await new Running(program.folder, ['run', 'app.mjs']).ended
  rmSync(program.path('ran.log'))
  const again = await new Running(program.folder, ['run', 'app.mjs', '--resume']).ended
  assert.equal(again.stdout, '[ 1, 2 ]\n', again.stderr)
  assert.deepEqual(program.ran(), ['short'])
})
