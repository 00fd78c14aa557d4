import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { thisProcess } from '../../src/storage/owner.ts'
import { makeFolder } from '../cli/folder.ts'
import { make } from '../flow/flows.ts'
import { until } from './embedded.ts'
import { Program } from './program.ts'

/** Programs write their command line into their results: equal work must give equal bytes in every run. */

const has = (program: string): boolean => {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`])
    return true
  } catch {
    return false
  }
}

const SAM = [
  '@HD\tVN:1.6',
  '@SQ\tSN:c\tLN:99',
  'r2\t0\tc\t9\t9\t2M\t*\t0\t0\tAC\tII',
  'r1\t0\tc\t3\t9\t2M\t*\t0\t0\tAC\tII',
  '',
].join('\n')
const VCF = [
  '##fileformat=VCFv4.2',
  '##contig=<ID=c,length=99>',
  '#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO',
  'c\t5\t.\tA\tC\t9\tPASS\t.',
  '',
].join('\n')
const RECORD =
  '#!/bin/sh\nfor out do :; done\nmkdir -p "$(dirname "$out")"\n{ pwd; printf "%s\\n" "$0" "$@"; } > "$out"\n'

function newProgram(text: string): Program {
  const program = new Program({ 'app.ts': text, 'in.sam': SAM, 'in.vcf': VCF, record: RECORD })
  chmodSync(program.path('record'), 0o755)
  return program
}

/** What the program makes in `out`, by name. */
function results(program: Program): Record<string, string> {
  const made: Record<string, string> = {}
  for (const name of readdirSync(program.path('out')).sort()) {
    // The time is the program's own.
    made[name] = readFileSync(program.path(`out/${name}`), 'latin1').replace(/; Date=.*/, '')
  }
  return made
}

const HEAD = `
import { command, main, waitOnFile, FILE_IN, FILE_OUT, FILE_INOUT } from 'millrace'
import { writeFileSync } from 'node:fs'
const record = command({ name: 'record', params: [FILE_IN, FILE_OUT] }, (a, b) => ['./record', a, b])
const later = command({ name: 'later', params: [FILE_IN, FILE_OUT] },
  (a, b) => ['sh', '-c', 'while ! [ -e go ]; do sleep 0.01; done; exec ./record "$@"', 'sh', a, b])
const change = command({ name: 'change', params: [FILE_INOUT] }, a => ['sh', '-c', 'echo "$1" >> "$1"', 'sh', a])
`

async function runTwice(program: Program, before: () => void = () => {}): Promise<void> {
  const runs = []
  for (let i = 0; i < 2; i++) {
    for (const name of ['out', 'x']) rmSync(program.path(name), { recursive: true, force: true })
    before()
    const { code, err } = await program.run('app.ts', [String(i)])
    assert.equal(code, 0, err)
    runs.push(results(program))
  }
  assert.deepEqual(runs[0], runs[1])
  for (const text of Object.values(runs[0] ?? {})) assert.doesNotMatch(text, /\.millrace-(?!new\/)/)
}

test(
  'samtools and bcftools, which keep their command line in headers, write the same in every run',
  { skip: !has('samtools') || !has('bcftools') },
  async () => {
    const program = newProgram(`${HEAD}
const sort = command({ name: 'sort', params: [FILE_IN, FILE_OUT] }, (a, b) => ['samtools', 'sort', '-o', b, a])
const view = command({ name: 'view', params: [FILE_IN, FILE_OUT] }, (a, b) => ['samtools', 'view', '-h', '-o', b, a])
const norm = command({ name: 'norm', params: [FILE_IN, FILE_OUT] }, (a, b) => ['bcftools', 'view', '-o', b, a])
main(() => {
  sort('in.sam', 'out/s.bam')
  view('out/s.bam', 'out/s.sam')
  norm('in.vcf', 'out/v.vcf')
})`)
    await runTwice(program)
    assert.match(
      program.read('out/v.vcf'),
      /bcftools_viewCommand=view -o .*\/out\/\.millrace-new\/v\.vcf\/v\.vcf/,
    )
    await program.leavesNothing()
  },
)

test('what a program sees of its files is the same, also while an older version is still read', async () => {
  // The second time, tasks that read older versions have to wait until those that come after them are done.
  const program = newProgram(`${HEAD}
const isHeld = process.argv[2] === '1'
main(async () => {
  if (!isHeld) writeFileSync('go', '')
  later('x', 'out/0')
  change('x')
  record('x', 'out/1')
  change('x')
  record('x', 'out/2')
  record('out/2', 'out/3')
  if (isHeld) { await waitOnFile('out/3'); writeFileSync('go', '') }
  await waitOnFile('x')
  record('x', 'out/4')
})`)
  await runTwice(program, () => {
    rmSync(program.path('go'), { force: true })
    writeFileSync(program.path('x'), '')
  })
  assert.equal(
    program.read('out/4').split('\n').at(-3),
    program.path('x'),
    'what was waited for has its own name',
  )
  await program.leavesNothing()
})

test('a second attempt writes to the same path, unless the first may still write there', async () => {
  const program = newProgram(`${HEAD}
const again = command({ name: 'again', params: [FILE_OUT], retries: 1 },
  out => ['sh', '-c', 'if [ -e once ]; then exec ./record "$1"; fi; touch once; echo half > "$1"; exit 3', 'sh', out])
main(() => { again('out/a') })`)
  await runTwice(program, () => rmSync(program.path('once'), { force: true }))
  const [path] = program.read('out/a').split('\n').slice(-2)
  assert.equal(path, program.path('out/.millrace-new/a/a'))
  await program.leavesNothing()
})

test('two runs in one folder do not disturb each other, and what a killed one left is removed', async () => {
  const program = newProgram(`${HEAD}
main(() => { later('in.sam', 'out/' + process.argv[2]) })`)
  const other = program.sibling()
  program.start('app.ts', ['a'])
  other.start('app.ts', ['b'])
  const staged = (name: string): boolean => existsSync(program.path(`out/.millrace-new/${name}`))
  await until(() => staged('a') && staged('b'), 'both are at work')
  // A run that ended long ago, on this host, without anything to clean up after it.
  symlinkSync(`1 0 ${thisProcess().host}`, program.path('out/.millrace-new/.run-dead'))
  mkdirSync(program.path('out/.millrace-new/c'))
  process.kill(other.coordinator, 'SIGKILL')
  await other.end()
  await until(
    () =>
      readdirSync(program.path('out/.millrace-new')).filter(name => name.startsWith('.run-')).length === 2,
    'the watchdog of the second',
  )
  assert(staged('a'), 'the watchdog leaves alone what is not of its run')
  writeFileSync(program.path('go'), '')
  const { code, err } = await program.end()
  assert.equal(code, 0, err)
  assert.equal(program.read('out/a').split('\n').at(-2), program.path('out/.millrace-new/a/a'))
  assert.deepEqual(
    readdirSync(program.path('out')),
    ['a'],
    'the last run to leave removes what dead ones left',
  )
  await program.leavesNothing()
})

test('the next run removes what a run and its watchdog left when both were killed', async () => {
  const program = newProgram(`${HEAD}
main(() => { record('in.sam', 'out/a') })`)
  mkdirSync(program.path('out/.millrace-new/a'), { recursive: true })
  mkdirSync(program.path('out/.millrace-new/z'))
  writeFileSync(program.path('out/.millrace-new/a/a'), 'half')
  symlinkSync(`1 0 ${thisProcess().host}`, program.path('out/.millrace-new/.run-dead'))
  const { code, err } = await program.run('app.ts')
  assert.equal(code, 0, err)
  assert.equal(program.read('out/a').split('\n').at(-2), program.path('out/.millrace-new/a/a'))
  assert.deepEqual(readdirSync(program.path('out')), ['a'])
  await program.leavesNothing()
})

test('what a run on another host has staged is left alone', async () => {
  const program = newProgram(`${HEAD}
main(() => { record('in.sam', 'out/a') })`)
  mkdirSync(program.path('out/.millrace-new/a'), { recursive: true })
  writeFileSync(program.path('out/.millrace-new/a/.millrace-claim'), '')
  symlinkSync('1 0 elsewhere', program.path('out/.millrace-new/.run-far'))
  const { code, err } = await program.run('app.ts')
  assert.equal(code, 0, err)
  assert.equal(program.read('out/a').split('\n').at(-2), program.path('out/.millrace-new/a.1/a'))
  assert.deepEqual(readdirSync(program.path('out/.millrace-new')).sort(), ['.run-far', 'a'])
  program.remove()
})

test('rules give programs the same paths in every run', { skip: !has('samtools') }, async () => {
  const folder = makeFolder({
    'a.sam': SAM,
    'flow.ts': `import { rule, sh, target } from 'millrace/flow'
rule('out/{s}.bam', ['{s}.sam'], ({ out, in: [sam] }) => sh\`samtools sort -o \${out} \${sam}\`)
rule(['out/{s}.one', 'out/{s}.two'], ['out/{s}.bam'],
  ({ out: [one, two], in: [bam] }) => sh\`echo \${bam} \${one} \${two} | tee \${one} > \${two}\`)
target('all', ['out/a.one'])
`,
  })
  const bytes = (): string[] =>
    ['bam', 'one', 'two'].map(end => readFileSync(join(folder, `out/a.${end}`), 'latin1'))
  await make(folder, ['all'])
  const first = bytes()
  assert.equal(first[1], 'out/a.bam out/.millrace-new/a.one/a.one out/.millrace-new/a.one/a.two\n')
  rmSync(join(folder, 'out'), { recursive: true })
  await make(folder, ['all'])
  assert.deepEqual(bytes(), first)
})
