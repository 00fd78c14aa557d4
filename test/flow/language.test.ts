import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { make, read } from './flows.ts'

const IMPORTS = `import { rule, sh, target, temp, keep, optional, dir, expand, glob, wildcards, param } from 'millrace/flow'
import { readFileSync, writeFileSync } from 'node:fs'
`
const flow = (text: string, files: Record<string, string> = {}): string =>
  makeFolder({ 'flow.ts': IMPORTS + text, ...files })

const mistakes: [string, string, string[], RegExp][] = [
  [
    'two rules for one file',
    `rule('{a}.out', [], () => ['true'])\nrule('x.{b}', [], () => ['true'])`,
    ['x.out'],
    /2 rules can make x\.out: \{a\}\.out \(flow\.ts:3:1\) and x\.\{b\} \(flow\.ts:4:1\).*MR_FLOW_AMBIGUOUS/s,
  ],
  [
    'a cycle',
    `rule('a', ['b'], () => ['true'])\nrule('b', ['c'], () => ['true'])\nrule('c', ['a'], () => ['true'])`,
    ['a'],
    /a is needed to make itself: a <- b <- c <- a \(rule at flow\.ts:3:1\).*MR_FLOW_CYCLE/s,
  ],
  [
    'a missing input',
    `rule('out', ['inptu.txt'], () => ['true'])`,
    [],
    /inptu\.txt, which out is made of, does not exist and no rule makes it; did you mean input\.txt\? \(rule at flow\.ts:3:1\)/,
  ],
  [
    'an unknown target',
    `target('mosaic', ['input.txt'])`,
    ['mosiac'],
    /did you mean mosaic\?.*MR_FLOW_MISSING/s,
  ],
  [
    'a target whose function fails',
    `target('bad', async () => {\n  throw new TypeError('not so')\n})`,
    ['bad'],
    /^millrace: the function of target bad \(flow\.ts:3:1\) failed: TypeError: not so\n +at .*flow\.ts:4:9\)?\n.*MR_FLOW_TARGET\]$/m,
  ],
  [
    'targets that need each other',
    `target('a', async ({ need }) => need('b'))\ntarget('b', async ({ need }) => need('a'))`,
    ['a'],
    /target b needs itself by way of a \(target at flow\.ts:4:1\).*MR_FLOW_CYCLE/s,
  ],
  [
    'a target that waits for ever',
    `target('a', () => new Promise(() => undefined))`,
    ['a'],
    /waits for something that never comes/,
  ],
  [
    'one input taken apart as a list',
    `rule('out', 'input.txt', ({ out, in: [text] }) => sh\`cp \${text} \${out}\`)`,
    [],
    /flow\.ts:3:1: 'input\.txt' is one file and no list, so 'in' is its path; write \{ in: name \}.*MR_FLOW_RULE/s,
  ],
  [
    'a workflow that ends the process',
    `rule('out', [], ({ out }) => sh\`date > \${out}\`)\nprocess.exit(0)`,
    [],
    /flow\.ts called process\.exit before all was made.*MR_FLOW_EXIT/s,
  ],
  [
    'a name that is not UTF-8',
    `writeFileSync(Buffer.from([0x62, 0xff]), '')\ntarget('all', glob('b*'))`,
    [],
    /a name in \. is not UTF-8: b\\xff.*MR_FLOW_NAME/s,
  ],
  [
    'a directory with a name in it that is not UTF-8',
    `rule(dir('made'), [], ({ out }) => sh\`touch \${out}/$(printf 'b\\377')\`)`,
    [],
    /a name in .* is not UTF-8: b\\xff.*MR_FLOW_NAME/s,
  ],
  [
    'an unknown option',
    `rule('a', [], { cpu: 2 } as never, () => ['true'])`,
    [],
    /flow\.ts:3:1: .*did you mean 'cpus'/,
  ],
  [
    'an unknown wildcard',
    `rule('{name}.o', ['{nam}.c'] as never, () => ['true'])`,
    [],
    /\{nam\} in '\{nam\}\.c' is not a wildcard.*\{name\}/,
  ],
  [
    'a command that makes nothing',
    `rule('a', [], () => ['true'])`,
    [],
    /did not write a \(rule at flow\.ts:3:1\)/,
  ],
  [
    'a parameter that is missing',
    `rule(param('name'), [], () => ['true'])`,
    [],
    /needs a parameter name.*make -- name=VALUE/s,
  ],
]
for (const [what, text, targets, expected] of mistakes) {
  test(`${what} is told with its place`, async () => {
    const { code, stderr } = await millrace(flow(text, { 'input.txt': '' }), ['make', ...targets])
    assert.notEqual(code, 0)
    assert.match(stderr, expected)
  })
}

test('temporary files go after their last reader, and come back only when they are needed', async () => {
  const text = `rule(temp('mid'), ['in'], ({ out, in: [a] }) => sh\`cat \${a} > \${out}; echo mid >> ran\`)
rule('one', ['mid'], ({ out, in: [a] }) => sh\`cat \${a} > \${out}; echo one >> ran\`)
rule('two', ['mid'], ({ out, in: [a] }) => sh\`cat \${a} > \${out}; echo two >> ran\`)
target('all', ['one', 'two'])`
  const folder = flow(text, { in: 'x' })
  await make(folder)
  assert.equal(existsSync(join(folder, 'mid')), false)
  assert.match((await make(folder)).stderr, /nothing to do/)
  rmSync(join(folder, 'two'))
  writeFileSync(join(folder, 'ran'), '')
  await make(folder)
  assert.equal(read(folder, 'ran'), 'mid\ntwo\n')
  assert.equal(existsSync(join(folder, 'mid')), false)
  await make(folder, ['mid'])
  assert.equal(read(folder, 'mid'), 'x')
})

test('of several outputs, temporary ones go each after its own readers, and the others are not made again for them', async () => {
  const text = `rule([temp('a'), temp('b'), 'rest'], [], ({ out }) => sh\`echo made >> ran; touch \${out}\`)
rule('of-a', ['a'], ({ out, in: [a] }) => sh\`cp \${a} \${out}\`)
rule('of-b', ['b'], ({ out, in: [b] }) => sh\`cp \${b} \${out}\`)
target('steps', async ({ need }) => {
  await need('of-a')
  await need('rest')
  await need('of-b')
})`
  const folder = flow(text)
  await make(folder)
  for (const name of ['a', 'b']) assert.equal(existsSync(join(folder, name)), false, name)
  await make(folder)
  await make(folder, ['rest'])
  assert.equal(read(folder, 'ran'), 'made\n')
})

test('kept files are not overwritten, optional ones may be missing, directories are made as a whole', async () => {
  const text = `const size = param('size', 1)
rule(keep('precious'), [], ({ out }) => sh\`echo \${size} > \${out}\`)
rule({ main: 'main', extra: optional('extra') }, { a: optional('nowhere') }, ({ out, in: { a } }) => sh\`echo \${a ?? 'none'} > \${out.main}\`)
rule(dir('parts'), [], ({ out }) => sh\`for i in 1 2; do echo $i > \${out}/$i; done\`)
rule('joined', ['parts/1', dir('parts')], ({ out, in: [one, all] }) => sh\`cat \${one} \${all}/2 > \${out}\`)
target('all', ['precious', 'main', 'joined'])`
  const folder = flow(text)
  await make(folder)
  assert.equal(read(folder, 'main'), 'none\n')
  assert.equal(read(folder, 'joined'), '1\n2\n')
  assert.match((await make(folder)).stderr, /nothing to do/)
  const refused = await millrace(folder, ['make', '--', 'size=2'])
  assert.match(
    refused.stderr,
    /precious is to be kept, but is out of date: the command has changed.*MR_FLOW_KEPT/s,
  )
  await make(folder, ['--force', '--', 'size=2'])
  assert.equal(read(folder, 'precious'), '2\n')
  await make(folder, ['--clean'])
  assert.deepEqual(
    ['precious', 'main', 'joined', 'parts'].map(name => existsSync(join(folder, name))),
    [true, false, false, false],
  )
})

test('a target may add rules as it learns, and a dry run says where it cannot know more', async () => {
  const text = `rule('list', ['in'], ({ out, in: [a] }) => sh\`sort \${a} > \${out}\`)
target('all', async ({ need }) => {
  await need('list')
  const names = readFileSync('list', 'utf8').trim().split('\\n')
  for (const name of names) rule('made/' + name, ['list'], { log: 'logs/' + name }, ({ out }) => sh\`echo \${name} | tee \${out}; echo $HOW >&2\`)
  await need(names.map(name => 'made/' + name))
})`
  const folder = flow(text, { in: 'b\na b\n' })
  const dry = await millrace(folder, ['make', '-n'])
  assert.match(dry.stdout, /sort in > list\n(.*\n)*# what target all needs after that/)
  await make(folder)
  assert.equal(read(folder, 'made/a b'), 'a b\n')
  assert.equal(read(folder, 'logs/b'), 'b\n\n')
  assert.match((await make(folder)).stderr, /nothing to do/)
})

test('outputs come from the cache in another folder, without running anything', async () => {
  const text = `rule('out', ['in'], ({ out, in: [a] }) => sh\`cat \${a} > \${out}; echo ran >> ran\`)`
  const first = flow(text, { in: 'x' })
  const second = flow(text, { in: 'x' })
  const cache = join(first, 'cache')
  await make(first, ['--cache', cache])
  await make(second, ['--cache', cache])
  assert.equal(read(second, 'out'), 'x')
  assert.equal(existsSync(join(second, 'ran')), false)
  writeFileSync(join(second, 'in'), 'y')
  await make(second, ['--cache', cache])
  assert.equal(read(second, 'out'), 'y')
  assert.equal(existsSync(join(second, 'ran')), true)
})

test('what comes from the cache is as it was made, links too, and what is damaged there is made and kept anew', async () => {
  const text = `rule([dir('parts'), 'link', 'out'], [], ({ out: [parts, link, out] }) =>
  sh\`echo ran >> ran; mkdir \${parts}/in; echo 1 > \${parts}/in/a; ln -s a \${parts}/in/l; ln -s out \${link}; echo 2 > \${out}\`)`
  const cache = join(flow(text), 'cache')
  const check = async (runs: number): Promise<void> => {
    const folder = flow(text)
    await make(folder, ['--cache', cache])
    assert.equal(existsSync(join(folder, 'ran')), runs === 1)
    assert.equal(readlinkSync(join(folder, 'parts/in/l')), 'a')
    assert.equal(readlinkSync(join(folder, 'link')), 'out')
    assert.equal(read(folder, 'parts/in/l') + read(folder, 'link'), '1\n2\n')
  }
  await check(1)
  await check(0)
  const objects = readdirSync(join(cache, 'objects'), { recursive: true, encoding: 'utf8' })
  for (const name of objects.filter(path => path.includes('/'))) {
    writeFileSync(join(cache, 'objects', name), 'x\n')
    await check(1)
    await check(0)
  }
  const [segment = ''] = readdirSync(join(cache, 'segments')).filter(name => name.endsWith('.data'))
  writeFileSync(join(cache, 'segments', segment), 'x\n')
  await check(0)
  for (const name of readdirSync(join(cache, 'segments')))
    if (name.endsWith('.data')) writeFileSync(join(cache, 'segments', name), 'x\n')
  await check(1)
  await check(0)
})

test('a cache is a store of results: shared with programs, bounded, read-only with :ro, refused when it is of another kind', async () => {
  const text = `rule('out', ['in'], ({ out, in: [a] }) => sh\`cat \${a} > \${out}; echo ran >> ran\`)`
  const cache = join(flow(text), 'cache')
  const ran = async (input: string, ...options: string[]): Promise<boolean> => {
    const folder = flow(text, { in: input })
    await make(folder, options)
    assert.equal(read(folder, 'out'), input)
    return existsSync(join(folder, 'ran'))
  }
  assert.equal(await ran('x', '--cache', cache), true)
  const program = flow(text, {
    'app.mjs': `import { task, main, waitOn } from 'millrace'
      export const double = task({}, x => 2 * x)
      main(async () => console.log(await waitOn(double(2))))`,
  })
  const run = ['run', 'app.mjs', '--cache', cache, '--checkpoint', 'all', '--progress', 'plain']
  assert.equal((await millrace(program, run)).stdout, '4\n')
  assert.match((await millrace(program, run)).stderr, /1 kept from before/)
  const files = (): string[] => readdirSync(cache, { recursive: true, encoding: 'utf8' }).sort()
  const before = files()
  assert.equal(await ran('x', '--cache', `${cache}:ro`), false)
  assert.equal(await ran('y', '--cache', `${cache}:ro`), true)
  assert.deepEqual(files(), before)
  const big = 'b'.repeat(200_000)
  assert.equal(await ran(big, '--cache', cache, '--keep', '100KB'), true)
  assert.equal(await ran(big, '--cache', cache), true, 'it was too large to stay')
  const old = flow(text, { in: 'x', 'old/ab/made.json': '[]' })
  const refused = await millrace(old, ['make', '--cache', 'old'])
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /MR_STORE_VERSION/)
  assert.equal(existsSync(join(old, 'out')), false)
})

test('after a failure --keep-going does what does not need it', async () => {
  const text = `rule('bad', [], () => sh\`exit 3\`)
rule('after', ['bad'], ({ out }) => ['touch', out])
rule('good', [], ({ out }) => sh\`sleep 0.1; touch \${out}\`)
rule('more', ['good'], ({ out }) => ['touch', out])
target('all', ['after', 'more'])`
  const folder = flow(text)
  const { code } = await millrace(folder, ['make', '-k'])
  assert.equal(code, 1)
  assert.deepEqual([existsSync(join(folder, 'more')), existsSync(join(folder, 'after'))], [true, false])
})

test('--touch takes what is there, and --graph draws it', async () => {
  const folder = flow(`rule('b', ['a'], ({ out }) => sh\`echo made > \${out}\`)`, { a: '1', b: 'by hand' })
  await make(folder, ['--touch'])
  assert.match((await make(folder, ['--graph', 'g.dot'])).stderr, /nothing to do/)
  assert.equal(read(folder, 'b'), 'by hand')
  assert.match(readFileSync(join(folder, 'g.dot'), 'utf8'), /f\d+ -> t0/)
})

test(
  'a folder that cannot be written, and a full disk, are clear errors',
  { skip: process.getuid?.() !== 0 && 'needs root' },
  async t => {
    const { spawnSync } = await import('node:child_process')
    const folder = flow(`rule('small/out', [], ({ out }) => sh\`head -c 4000000 /dev/zero > \${out}\`)
rule('fits', [], ({ out }) => ['touch', out])`)
    mkdirSync(join(folder, 'small'))
    const mounted =
      spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', join(folder, 'small')]).status === 0
    if (!mounted) return t.skip('tmpfs cannot be mounted')
    try {
      const full = await millrace(folder, ['make', 'small/out'])
      assert.equal(full.code, 1)
      assert.match(full.stderr, /No space left on device/)
      assert.equal(existsSync(join(folder, 'small/out')), false)
      const inside = join(folder, 'small')
      writeFileSync(
        join(inside, 'flow.ts'),
        `${IMPORTS}rule('big', [], ({ out }) => sh\`head -c 4000000 /dev/zero > \${out}\`)`,
      )
      const fullLog = await millrace(inside, ['make'])
      assert.match(fullLog.stderr, /exit code 1; there is no room left on the disk of .*MR_EXIT_CODE/)
      assert.doesNotMatch(fullLog.stderr, /at .*chunk-/)
      rmSync(join(inside, '.millrace'), { recursive: true })
      await make(folder, ['fits'])
      spawnSync('mount', ['-o', 'remount,ro', join(folder, 'small')])
      const readOnly = await millrace(folder, ['make', 'small/out'])
      assert.equal(readOnly.code, 1)
      assert.match(readOnly.stderr, /read-only file system.*MR_OUTPUT_FOLDER/s)
      const readOnlyState = await millrace(inside, ['make'])
      assert.match(readOnlyState.stderr, /flow cannot be made: EROFS: read-only.*MR_FLOW_STATE/s)
    } finally {
      spawnSync('umount', [join(folder, 'small')])
    }
  },
)

test('a folder in the place of a file is left alone, and is a clear error', async () => {
  const folder = flow(`rule('out', [], ({ out }) => ['touch', out])`, { 'out/mine': 'precious' })
  const { code, stderr } = await millrace(folder, ['make'])
  assert.equal(code, 1)
  assert.match(stderr, /out cannot be written: a folder has that name.*MR_OUTPUT_FOLDER/s)
  assert.equal(read(folder, 'out/mine'), 'precious')
})

test('a failed rule says how to make it again, with file and parameters', async () => {
  const folder = makeFolder({
    'other.ts': `${IMPORTS}param('size', 1)\nrule('a b', [], async () => { throw new Error('broken') })`,
  })
  const { code, stderr } = await millrace(folder, ['make', 'a b', '--file', 'other.ts', '--', 'size=3'])
  assert.equal(code, 1)
  assert.match(stderr, /rerun +millrace make 'a b' --file other\.ts -- size=3\n/)
})

test('a mistyped parameter makes nothing, and one that a function asks for later is taken', async () => {
  const folder = flow(`const lines = param('lines', 10)
rule('out', [], ({ out }) => sh\`echo \${lines} \${param('line2', 'no')} > \${out}\`)`)
  const { code, stderr } = await millrace(folder, ['make', '--', 'linse=3'])
  assert.equal(code, 2)
  assert.match(stderr, /no parameter linse; did you mean lines\?.*It asks for lines\..*MR_FLOW_PARAM/s)
  assert.equal(existsSync(join(folder, 'out')), false)
  await make(folder, ['--', 'line2=yes'])
  assert.equal(read(folder, 'out'), '10 yes\n')
})

test('a cache that cannot be a folder is told before anything is run', async () => {
  const folder = flow(`rule('out', [], ({ out }) => ['touch', out])`, { cache: 'a file' })
  const { code, stderr } = await millrace(folder, ['make', '--cache', 'cache'])
  assert.equal(code, 2)
  assert.match(stderr, /--cache .*cache cannot be used: it is not a folder.*MR_OPTION/s)
  assert.equal(existsSync(join(folder, 'out')), false)
})

for (const [what, rule, message] of [
  [
    'several parameters',
    `rule('{s}.out', '{s}.in', ((out: string, from: string) => ['cp', from, out]) as never)`,
    /has 2 parameters, and gets one object: \(\{ out, in: \[first\], wildcards, params \}\)/,
  ],
  [
    'a wildcard by its own name',
    `rule('{s}.out', '{s}.in', (({ s, out }: Record<string, string>) => ['cp', s + '.in', out]) as never)`,
    /rule \{s\}\.out asks for 's'; 's' is a wildcard: write \(\{ wildcards \}\) => … wildcards\.s/,
  ],
  [
    'a name that there is not',
    `rule('{s}.out', '{s}.in', (({ input, out }: Record<string, string>) => ['cp', input, out]) as never)`,
    /asks for 'input'; it gets one object with out, in, wildcards, params, signal/,
  ],
] as const) {
  test(`the function of a rule with ${what} gets an error that says what there is`, async () => {
    const folder = makeFolder({ 'a.in': '1\n', 'flow.ts': `import { rule } from 'millrace/flow'\n${rule}\n` })
    const { code, stderr } = await millrace(folder, ['make', 'a.out'])
    assert.notEqual(code, 0)
    assert.match(stderr, message)
  })
}
