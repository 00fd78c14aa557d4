import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { Running } from '../cli/folder.ts'
import { Program } from './folder.ts'

/**
 * Random programs over values, objects, files, nested tasks and generators. A step is made of numbers, so that a program and
 * what it prints when it is run in sequence follow from the list of steps alone.
 */
const APP = `
import { task, main, waitOn, waitOnFile, INOUT, IN, FILE_IN, FILE_OUT, FILE_INOUT } from 'millrace'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
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
main(async () => {
  const values = [{ n: 1 }, { n: 2 }]
  const list = { items: [], last: 0 }
  const files = []
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
  }
  return { found, list, texts }
}

const step = fc.tuple(fc.nat(7), fc.nat(50), fc.nat(50), fc.nat(900))

/** A hunt takes more of them: RESUME_KILLS=300 npm test -- kill */
const PROGRAMS = Number(process.env['RESUME_KILLS'] ?? 4)

test('programs that are killed and resumed, again and again, end as if they had run once, in sequence', async () => {
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 15, maxLength: 40 }),
    fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }),
    async (steps, kills) => {
      const program = new Program({
        'app.mjs': APP,
        'steps.mjs': `export const steps = ${JSON.stringify(steps)}`,
      })
      const args = ['run', 'app.mjs', '--resume', '--checkpoint', 'all', '--progress', 'plain']
      const expected = sequential(steps)
      for (const lines of kills) {
        const run = new Running(program.folder, args)
        // By what it has done, and not by the time.
        await Promise.race([done(program, lines), run.ended])
        run.process.kill('SIGKILL')
        await run.ended
      }
      const last = await new Running(program.folder, args).ended
      assert.equal(last.code, 0, last.stderr)
      assert.deepEqual(JSON.parse(last.stdout) as Outcome, expected)
      rmSync(program.path('ran.log'), { force: true })
      const again = await new Running(program.folder, args).ended
      assert.deepEqual(JSON.parse(again.stdout) as Outcome, expected)
      assert.deepEqual(
        program.ran().filter(line => !line.startsWith('tree')),
        [],
        'all of it is kept now',
      )
    },
  )
  await fc.assert(property, { numRuns: PROGRAMS, endOnFailure: true, includeErrorInReport: true })
})

/** Tasks have written down so many lines more than there are now. */
async function done(program: Program, more: number): Promise<void> {
  const count = (): number =>
    existsSync(program.path('ran.log')) ? readFileSync(program.path('ran.log'), 'utf8').split('\n').length : 0
  const from = count()
  while (count() < from + more) await new Promise(resolve => setTimeout(resolve, 2))
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

test('a run of which nobody said that it should be kept loses no long task', async () => {
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
