import assert from 'node:assert/strict'
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { make, read } from './flows.ts'

const rules = (text: string): string =>
  `import { dir, glob, keep, optional, protect, rule, sh, target, temp } from 'millrace/flow'\n${text}`

test('links are outputs and inputs by what they point to', async () => {
  const folder = makeFolder({
    source: '1\n',
    other: 'a\n',
    'flow.ts': rules(`
rule('link', 'source', ({ out }) => sh\`ln -s source \${out}\`)
rule('inner/link', 'source', ({ out }) => sh\`ln -s ../source \${out}\`)
rule('copy', ['link', 'inner/link', 'given'], ({ out, in: files }) => sh\`cat \${files} > \${out}\`)
rule('dangling', 'source', ({ out }) => sh\`ln -s nowhere \${out}\`)
target('all', ['copy'])`),
  })
  symlinkSync('other', join(folder, 'given'))
  await make(folder)
  assert.equal(readlinkSync(join(folder, 'inner/link')), '../source')
  assert.equal(read(folder, 'copy'), '1\n1\na\n')
  writeFileSync(join(folder, 'other'), 'b\n')
  assert.match((await make(folder, ['--explain'])).stderr, /copy: given has changed/)
  assert.equal(read(folder, 'copy'), '1\n1\nb\n')
  unlinkSync(join(folder, 'given'))
  symlinkSync('source', join(folder, 'given'))
  writeFileSync(join(folder, 'source'), '2\n')
  await make(folder)
  assert.equal(read(folder, 'copy'), '2\n2\n2\n')
  assert.match((await make(folder)).stderr, /nothing to do/)
  const dangling = await millrace(folder, ['make', 'dangling'])
  assert.match(dangling.stderr, /dangling is a link to .*nowhere, which does not exist/)
  assert(!lstatSync(join(folder, 'dangling'), { throwIfNoEntry: false }))
  await make(folder, ['--clean'])
  assert.equal(read(folder, 'source'), '2\n')
  assert(!lstatSync(join(folder, 'link'), { throwIfNoEntry: false }))
})

test('a link in the place of an output is replaced, and what it pointed to is left alone', async () => {
  const folder = makeFolder({
    source: 'new\n',
    precious: 'old\n',
    'flow.ts': rules("rule('out', 'source', ({ out, in: from }) => ['cp', from, out])"),
  })
  symlinkSync('precious', join(folder, 'out'))
  await make(folder)
  assert.equal(read(folder, 'precious'), 'old\n')
  assert.equal(read(folder, 'out'), 'new\n')
  assert(!lstatSync(join(folder, 'out')).isSymbolicLink())
})

test('edits within one second are noticed where times count in whole seconds', async () => {
  // The second command changes what it has read, and what the first has made a moment ago.
  const folder = makeFolder({
    'flow.ts': rules(`
rule('first', 'source', ({ out, in: from }) => sh\`cp \${from} \${out}; touch -d @$(date +%s) \${out}\`)
rule('second', ['first', 'source'], ({ out, in: [first, source] }) =>
  sh\`cat \${first} \${source} > \${out}
    test -e edited || for file in \${first} \${source}; do echo 2 > $file; touch -d @$(date +%s) $file; done
    touch edited\`)
target('all', ['second'])`),
  })
  const source = join(folder, 'source')
  writeFileSync(source, '1\n')
  const second = Math.floor(Date.now() / 1000)
  utimesSync(source, second, second)
  await make(folder)
  assert.equal(read(folder, 'second'), '1\n1\n')
  await make(folder)
  assert.equal(read(folder, 'second'), '2\n2\n')
  // Clocks that go wrong do not matter.
  for (const [text, time] of [['3', second + 1e6] as const, ['4', second - 1e6] as const]) {
    writeFileSync(source, `${text}\n`)
    utimesSync(source, time, time)
    await make(folder)
    assert.equal(read(folder, 'second'), `${text}\n${text}\n`)
  }
})

test('a change that leaves size, time and inode as they were is noticed, another name or mode is not one', async () => {
  const folder = makeFolder({
    source: 'one\n',
    'flow.ts': rules(
      "rule('out', 'source', ({ out, in: from }) => sh`cat ${from} >> ran; cp ${from} ${out}`)",
    ),
  })
  const old = new Date('2020-02-02')
  const change = (path: string, text: string): void => {
    writeFileSync(join(folder, path), text)
    utimesSync(join(folder, path), old, old)
  }
  change('source', 'one\n')
  await make(folder)
  change('source', 'two\n')
  assert.match((await make(folder, ['--explain'])).stderr, /out: source has changed/)
  const made = statSync(join(folder, 'out')).mtime
  writeFileSync(join(folder, 'out'), 'mad\n')
  utimesSync(join(folder, 'out'), made, made)
  assert.match((await make(folder, ['--explain'])).stderr, /out: out is not what was made/)
  assert.equal(read(folder, 'out'), 'two\n')
  chmodSync(join(folder, 'source'), 0o600)
  linkSync(join(folder, 'out'), join(folder, 'another name'))
  assert.match((await make(folder)).stderr, /nothing to do/)
  assert.equal(read(folder, 'ran'), 'one\ntwo\ntwo\n')
})

test('a file that is made again keeps its mode', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.ts': rules("rule('out', 'source', ({ out, in: from }) => ['cp', from, out])"),
  })
  await make(folder, ['out'])
  chmodSync(join(folder, 'out'), 0o600)
  writeFileSync(join(folder, 'source'), '2\n')
  await make(folder, ['out', '--force'])
  assert.equal(read(folder, 'out'), '2\n')
  assert.equal(statSync(join(folder, 'out')).mode & 0o777, 0o600)
})

test('what is protected cannot be written to, and is made again or deleted only by force', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.ts': rules(`
rule('middle', 'source', ({ out, in: from }) => ['cp', from, out])
rule(protect('out'), 'middle', ({ out, in: from }) => ['cp', from, out])
rule(protect(dir('folder')), 'source', ({ out, in: from }) => sh\`mkdir -p \${out}/inner; cp \${from} \${out}/inner/a\`)
target('all', ['out', 'folder'])`),
  })
  const modeOf = (path: string): number => statSync(join(folder, path)).mode & 0o222
  await make(folder)
  assert.deepEqual([modeOf('out'), modeOf('folder/inner/a')], [0, 0])
  assert.match((await make(folder)).stderr, /nothing to do/)
  // That it is out of date is known only when what it is made of has been made again.
  writeFileSync(join(folder, 'source'), '2\n')
  const refused = await millrace(folder, ['make', 'out'])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /out is to be kept, but is out of date.*\n?.*MR_FLOW_KEPT/)
  assert.equal(read(folder, 'out'), '1\n')
  await make(folder, ['--force'])
  assert.deepEqual([read(folder, 'out'), read(folder, 'folder/inner/a'), modeOf('out')], ['2\n', '2\n', 0])
  assert.match((await make(folder, ['--clean'])).stderr, /out stays: it is marked protect\(\)/)
  assert.equal(read(folder, 'out'), '2\n')
  await make(folder, ['--clean', '--force'])
  assert.ok(!existsSync(join(folder, 'out')) && !existsSync(join(folder, 'folder')))
})

const shared = statSync('/dev/shm', { throwIfNoEntry: false })
const isOther = shared !== undefined && shared.dev !== statSync(tmpdir()).dev

test(
  'outputs of one task on two file systems are both whole, and resumed',
  { skip: !isOther && 'needs /dev/shm' },
  async t => {
    const far = mkdtempSync('/dev/shm/millrace-test-')
    t.after(() => rmSync(far, { recursive: true, force: true }))
    const folder = makeFolder({
      source: '1\n',
      'flow.ts': rules(`
rule(['far/a', 'near'], 'source', ({ out: [a, b], in: from }) => sh\`cp \${from} \${a}; cp \${from} \${b}\`)
rule('far/sum', ['far/a', 'near'], ({ out, in: both }) => sh\`cat \${both} > \${out}\`)
target('all', ['far/sum'])`),
    })
    symlinkSync(far, join(folder, 'far'))
    await make(folder)
    assert.equal(readFileSync(join(far, 'sum'), 'utf8'), '1\n1\n')
    assert.deepEqual(readdirSync(far).sort(), ['a', 'sum'])
    assert.match((await make(folder)).stderr, /nothing to do/)
  },
)

test('--clean deletes neither what was only taken as right nor what was there besides', async () => {
  const folder = makeFolder({
    source: '1\n',
    taken: 'mine\n',
    'made/besides': 'mine too\n',
    'flow.ts': rules(`
rule('taken', 'source', ({ out, in: from }) => ['cp', from, out])
rule('made/{name}', 'source', ({ out, in: from }) => ['cp', from, out])`),
  })
  await make(folder, ['taken', '--touch'])
  await make(folder, ['made/a'])
  const { stderr } = await make(folder, ['--clean'])
  assert.match(stderr, /taken stays: it was not made, but taken with --touch/)
  assert.equal(read(folder, 'taken'), 'mine\n')
  assert.equal(read(folder, 'made/besides'), 'mine too\n')
  assert(!existsSync(join(folder, 'made/a')))
  assert.match((await make(folder, ['taken'])).stderr, /nothing to do/)
  await make(folder, ['taken', '--force'])
  await make(folder, ['--clean'])
  assert(!existsSync(join(folder, 'taken')))
})

test('a failure says that the file which is there is of an earlier run, and so does the next plan', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.ts': rules("rule('out', 'source', ({ out, in: from }) => sh`grep 1 ${from} > ${out}`)"),
  })
  await make(folder, ['out'])
  writeFileSync(join(folder, 'source'), '2\n')
  const failed = await millrace(folder, ['make', 'out'])
  assert.equal(failed.code, 1)
  assert.match(failed.stderr, /warning out is of an earlier run/)
  assert.equal(read(folder, 'out'), '1\n')
  const { stdout } = await make(folder, ['out', '-n', '--explain'])
  assert.match(stdout, /# out: source has changed; what is there is of an earlier run/)
})

test('--clean -n lists what would go; --clean also removes the folders that are empty then', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.ts': rules(`
rule(temp('parts/deep/a'), 'source', ({ out, in: from }) => ['cp', from, out])
rule('made/b', 'parts/deep/a', ({ out, in: from }) => ['cp', from, out])
target('all', ['made/b'])`),
  })
  await make(folder)
  assert(!existsSync(join(folder, 'parts/deep/a')))
  const preview = await make(folder, ['--clean', '-n'])
  assert.equal(preview.stdout, 'made/b\n')
  assert.match(preview.stderr, /1 file would be deleted/)
  assert.equal(read(folder, 'made/b'), '1\n')
  await make(folder, ['--clean'])
  for (const name of ['made', 'parts']) assert(!existsSync(join(folder, name)), name)
})

test('a function that gives no command, and a parameter in the wrong place, are told', async () => {
  const folder = makeFolder({ 'flow.ts': rules("rule('out', [], () => [] as never)") })
  const wrong = await millrace(folder, ['make'])
  assert.match(
    wrong.stderr,
    /the function of rule out \(flow\.ts:2:1\) gave a list of 0, which is not a command/,
  )
  const parameter = await millrace(folder, ['make', 'quality=3'])
  assert.match(parameter.stderr, /write it after --, as in: millrace make -- quality=3/)
})

test('rules of one name are one line, each with its own environment', async () => {
  const folder = makeFolder({
    'flow.ts': rules(
      "for (const i of [1, 2, 3])\n  rule(`o${i}`, [], { name: 'number', env: { N: `v${i}` } }, ({ out }) => sh`echo $N > ${out}`)",
    ),
  })
  const { stderr } = await make(folder)
  assert.match(stderr, /slowest +number: .* in 3 tasks/)
  assert.equal(read(folder, 'o1') + read(folder, 'o3'), 'v1\nv3\n')
})

test('a large file whose time was set back after a change is noticed, and one that was left alone is not', async () => {
  const folder = makeFolder({
    'flow.ts': rules(`
rule('copy', 'large', ({ out, in: large }) => sh\`echo run >> runs; cp \${large} \${out}\`)
rule('end', 'copy', ({ out, in: copy }) => sh\`echo end >> runs; tail -c 1 \${copy} > \${out}\`)
target('all', ['end'])`),
  })
  const large = join(folder, 'large')
  writeFileSync(large, '1')
  truncateSync(large, 33 * 2 ** 20)
  await make(folder)
  await make(folder)
  assert.equal(read(folder, 'runs'), 'run\nend\n')
  for (const [name, expected] of [
    ['large', 'run\nend\nrun\nend\n'],
    ['copy', 'run\nend\nrun\nend\nrun\nend\n'],
  ] as const) {
    const path = join(folder, name)
    const { atime, mtime } = statSync(path)
    const file = openSync(path, 'r+')
    writeSync(file, name[0] ?? '', 33 * 2 ** 20 - 1)
    closeSync(file)
    utimesSync(path, atime, mtime)
    await make(folder)
    await make(folder)
    assert.equal(read(folder, 'runs'), expected)
    // What was changed by hand is made again from what it is made of.
    assert.equal(read(folder, 'end'), 'l')
  }
})
