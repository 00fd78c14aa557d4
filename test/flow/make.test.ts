import assert from 'node:assert/strict'
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { make, read } from './flows.ts'

const SUMS = `
import { rule, sh, target, temp, expand, param } from 'millrace/flow'
import { appendFileSync } from 'node:fs'
const factor = param('factor', 1)
rule('mid/{n}.sorted', 'in/{n}.txt', ({ out, in: text }) => sh\`sort -rn \${text} > \${out}; echo sort >> ran\`)
rule(['out/{n}.sum', 'out/{n}.count'], ['mid/{n}.sorted'], ({ out: [sum, count], in: [lines] }) =>
  sh\`awk '{s+=$1} END {print s*\${factor}}' \${lines} > \${sum}; wc -l < \${lines} > \${count}; echo sum >> ran\`)
rule('total.txt', expand('out/{n}.sum', { n: [1, 2] }), ({ out, in: sums }) => sh\`cat \${sums} > \${out}; echo total >> ran\`)
target('all', ['total.txt'])
`

const sums = (): string => makeFolder({ 'flow.ts': SUMS, 'in/1.txt': '1\n2\n3\n', 'in/2.txt': '10\n20\n' })

const ran = (folder: string): string[] => {
  const path = join(folder, 'ran')
  const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
  writeFileSync(path, '')
  return lines.filter(line => line !== '').sort()
}

test('a workflow is made once, and then there is nothing to do', async () => {
  const folder = sums()
  await make(folder)
  assert.equal(read(folder, 'total.txt'), '6\n30\n')
  assert.deepEqual(ran(folder), ['sort', 'sort', 'sum', 'sum', 'total'])
  const again = await make(folder)
  assert.match(again.stderr, /nothing to do/)
  assert.deepEqual(ran(folder), [])
})

test('a changed source runs what is made of it, and no more than changes', async () => {
  const folder = sums()
  await make(folder)
  ran(folder)
  // The same lines in another order: sorted they are what they were, and nothing after that has to run.
  writeFileSync(join(folder, 'in/1.txt'), '3\n2\n1\n')
  const { stderr } = await make(folder, ['--explain'])
  assert.match(stderr, /mid\/1\.sorted: in\/1\.txt has changed/)
  assert.deepEqual(ran(folder), ['sort'])
  writeFileSync(join(folder, 'in/1.txt'), '3\n2\n9\n')
  await make(folder)
  assert.deepEqual(ran(folder), ['sort', 'sum', 'total'])
  assert.equal(read(folder, 'total.txt'), '14\n30\n')
})

test('summary, progress, show, story and events tell rules that were left alone from those that ran', async () => {
  const folder = sums()
  await make(folder)
  writeFileSync(join(folder, 'in/1.txt'), '3\n2\n1\n')
  const { stderr } = await make(folder)
  assert.match(stderr, /1 ok, 2 up to date, of 3/)
  assert.match(stderr, /millrace: 2 other tasks were up to date\n/)
  assert.match(stderr, /\] ok mid\/.*\n(.*\n)*.*\] up to date out\/.*\n(.*\n)*.*\] up to date total\.txt/)
  const show = await millrace(folder, ['show'])
  assert.match(show.stdout, /1 ok, 2 up to date, of 3/)
  assert.match(show.stdout, /kind +tasks +ok +kept +busy/)
  assert.match(show.stdout, /total\.txt +1 +0 +1 +\S+ +- /)
  const { stdout } = await millrace(folder, ['show', '--json'])
  const events = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { type: string; task: number; kept?: true })
  const ends = events.filter(({ type }) => type === 'finished')
  assert.deepEqual(ends.map(({ kept }) => kept).toSorted(), [true, true, undefined])
  const left = ends.find(({ kept }) => kept)
  assert.match(
    (await millrace(folder, ['story', String(left?.task)])).stdout,
    /made nothing: the files in place are right/,
  )
  // One is looked into and found to be as it was: the plan begins again, and counts no task twice.
  writeFileSync(join(folder, 'in/1.txt'), '3\n2\n1\n')
  writeFileSync(join(folder, 'in/2.txt'), '7\n')
  const third = await make(folder)
  assert.match(third.stderr, /3 ok, of 3/)
  assert.match(third.stderr, /millrace: 2 other tasks were up to date\n/)
})

test('a new time without new content changes nothing', async () => {
  const folder = sums()
  await make(folder)
  ran(folder)
  utimesSync(join(folder, 'in/1.txt'), 1, 1)
  utimesSync(join(folder, 'out/1.sum'), 4e9, 4e9)
  const { stderr } = await make(folder)
  assert.match(stderr, /nothing to do/)
  assert.deepEqual(ran(folder), [])
})

test('a parameter that changes the command runs it again, and what it makes is different', async () => {
  const folder = sums()
  await make(folder)
  ran(folder)
  const { stderr } = await make(folder, ['--explain', '--', 'factor=10'])
  assert.match(stderr, /out\/1\.sum: the command has changed/)
  assert.deepEqual(ran(folder), ['sum', 'sum', 'total'])
  assert.equal(read(folder, 'total.txt'), '60\n300\n')
})

test('an output that was deleted or changed by hand is made again', async () => {
  const folder = sums()
  await make(folder)
  ran(folder)
  writeFileSync(join(folder, 'out/2.sum'), 'nonsense\n')
  const { stderr } = await make(folder, ['--explain'])
  assert.match(stderr, /out\/2\.sum is not what was made/)
  assert.equal(read(folder, 'total.txt'), '6\n30\n')
  assert.deepEqual(ran(folder), ['sum'])
})

test('a dry run prints the commands and runs nothing', async () => {
  const folder = sums()
  const { code, stdout } = await millrace(folder, ['make', '--dry-run', '--explain'])
  assert.equal(code, 0)
  assert.match(
    stdout,
    /^# mid\/1\.sorted: mid\/1\.sorted does not exist\nsort -rn in\/1\.txt > mid\/1\.sorted; /,
  )
  assert.match(stdout, /# 5 tasks\n# {3}2 x mid\/\{n\}\.sorted/)
  assert.equal(existsSync(join(folder, 'mid')), false)
  assert.equal(existsSync(join(folder, '.millrace')), false)
})

test('a failed command leaves no file, says which command it was, and what it had done is not done again', async () => {
  const folder = sums()
  writeFileSync(join(folder, 'flow.ts'), SUMS.replace('cat ${sums} > ${out}', 'cat ${sums} > ${out}; false'))
  const failed = await millrace(folder, ['make'])
  assert.equal(failed.code, 1)
  assert.match(failed.stderr, /total\.txt#\d+ .*exit code 1/s)
  assert.match(failed.stderr, /cat out\/1\.sum out\/2\.sum/)
  assert.equal(existsSync(join(folder, 'total.txt')), false)
  ran(folder)
  writeFileSync(join(folder, 'flow.ts'), SUMS)
  await make(folder)
  assert.deepEqual(ran(folder), ['total'])
})
