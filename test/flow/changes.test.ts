import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { make, read } from './flows.ts'

const rules = (text: string): string =>
  `import { dir, keep, rule, sh, target, temp } from 'millrace/flow'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
${text}`

const write = (folder: string, path: string, text: string): void => writeFileSync(join(folder, path), text)

test('what is made of a file inside a directory follows it, also in a target that learns', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.mjs': rules(`
rule(dir('d'), 'source', ({ out, in: from }) => sh\`cp \${from} \${out}/a.txt; cp \${from} \${out}/b.txt\`)
rule('r/{n}.txt', 'd/{n}.txt', ({ out, in: from }) => ['cp', from, out])
target('all', async ({ need }) => {
  await need('r/a.txt')
  await need('r/b.txt')
})`),
  })
  await make(folder)
  write(folder, 'source', '2\n')
  await make(folder)
  assert.equal(read(folder, 'r/a.txt') + read(folder, 'r/b.txt'), '2\n2\n')
  assert.match((await make(folder)).stderr, /nothing to do/)
})

test('a temporary file that is gone is there for a task that turns out to need it', async () => {
  const flow = (command: string): string =>
    rules(`
rule('head', 'source', ({ out, in: from }) => sh\`head -n 1 \${from} > \${out}\`)
rule('other', 'other source', ({ out, in: from }) => ['cp', from, out])
rule(temp('t'), 'head', ({ out, in: from }) => sh\`cat \${from} > \${out}; date +%N >> \${out}\`)
rule('changed', 't', ({ out, in: from }) => sh\`${command} \${from} | head -n 1 > \${out}\`)
rule('joined', ['t', 'other'], ({ out, in: [t, other] }) => sh\`echo >> joined-ran; cat \${other} > \${out}\`)
rule('same', 't', ({ out, in: from }) => sh\`echo >> same-ran; wc -l < \${from} > \${out}\`)
target('all', ['changed', 'joined', 'same'])`)
  const folder = makeFolder({ source: '1\n', 'other source': 'a\n', 'flow.mjs': flow('cat') })
  await make(folder)
  // What is made of the source stays the same, so only other reasons count.
  write(folder, 'source', '1\n2\n')
  write(folder, 'other source', 'b\n')
  write(folder, 'flow.mjs', flow('cat -'))
  await make(folder)
  assert.equal(read(folder, 'joined'), 'b\n')
  assert(!existsSync(join(folder, 't')))
  // The temporary file differs each time that it is made; those who have read an earlier one are up to date.
  assert.match((await make(folder)).stderr, /nothing to do/)
  assert.deepEqual([read(folder, 'joined-ran'), read(folder, 'same-ran')], ['\n\n', '\n'])
})

test('a source that changes while it is read, and changes back, is not taken as read', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.mjs': rules(
      "rule('out', 'source', ({ out, in: from }) => sh`test -e once || echo 2 > source; touch once; cp ${from} ${out}`)",
    ),
  })
  const cache = ['--cache', join(folder, 'cache')]
  await make(folder, cache)
  assert.equal(read(folder, 'out'), '2\n')
  write(folder, 'source', '1\n')
  assert.match((await make(folder, [...cache, '--explain'])).stderr, /source has changed/)
  assert.equal(read(folder, 'out'), '1\n')
})

test('a source that is written again as it was while it is read is taken as read', async () => {
  const folder = makeFolder({
    source: '1\n',
    'inside/a': '1\n',
    'flow.mjs': rules(`
rule('file', 'source', ({ out }) => sh\`cp source \${out}; cat \${out} > source\`)
rule('folder', 'inside', ({ out }) => sh\`touch inside/b \${out}\`)
target('all', ['file', 'folder'])`),
  })
  await make(folder)
  const { stderr } = await make(folder, ['--explain'])
  assert.match(stderr, /folder: inside has changed/)
  assert.doesNotMatch(stderr, /file: /)
  assert.match((await make(folder)).stderr, /nothing to do/)
})

test('parameters that only functions ask for count, and which functions were run does not', async () => {
  const folder = makeFolder({
    'flow.mjs': rules(`
rule('a', [], async ({ out, params }) => writeFile(out, params['q']))
rule('b', [], async ({ out }) => writeFile(out, 'b'))
target('all', async ({ need }) => {
  await need('a')
  await need('b')
})`),
  })
  await make(folder, ['--', 'q=1'])
  const again = await make(folder, ['--', 'q=1'])
  assert.match(again.stderr, /nothing to do/)
  assert.doesNotMatch(again.stderr, /did not ask/)
  await make(folder, ['--', 'q=2'])
  assert.equal(read(folder, 'a'), '2')
})

test('functions that give a promise, or look into what they read, are done once', async () => {
  const folder = makeFolder({
    'flow.mjs': rules(`
rule('promised', [], ({ out }) => writeFile(out, 'x'))
rule('written', 'promised', ({ out, in: from }) => writeFileSync(out, readFileSync(from)))
rule('looked', 'promised', ({ out, in: from }) => sh\`echo \${readFileSync(from, 'utf8')} > \${out}\`)
target('all', ['written', 'looked'])`),
  })
  await make(folder, ['-n'])
  await make(folder)
  assert.deepEqual([read(folder, 'written'), read(folder, 'looked')], ['x', 'x\n'])
  assert.match((await make(folder)).stderr, /nothing to do/)
})

test('a target goes on without what cannot be made, and --keep-going makes the rest', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.mjs': rules(`
rule('middle', 'source', ({ out }) => ['cp', 'source', out])
rule('bad', ['middle', 'nowhere'], ({ out }) => ['cp', 'nowhere', out])
rule('good', 'middle', ({ out }) => ['cp', 'middle', out])
target('list', ['bad', 'good'])
target('careful', async ({ need }) => {
  await need('bad').catch(() => undefined)
  await need('bad').catch(error => writeFileSync('why', error.message))
  await need('good')
  writeFileSync('nowhere', 'found')
  await need('bad')
})`),
  })
  const kept = await millrace(folder, ['make', 'list', '--keep-going'])
  assert.equal(kept.code, 1)
  assert.match(kept.stderr, /nowhere, which bad is made of, does not exist/)
  assert.equal(read(folder, 'good'), '1\n')
  await make(folder, ['--force', 'good'])
  await make(folder, ['careful'])
  assert.match(read(folder, 'why'), /nowhere, which bad is made of/)
  assert.equal(read(folder, 'bad'), 'found')
})

test('with --keep-going, what cannot be planned does not have others planned twice', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.mjs': rules(`
rule('common', 'source', ({ out }) => sh\`echo >> common-ran; cp source \${out}\`)
rule('a', 'common', ({ out }) => ['touch', out])
rule('c', 'nowhere', ({ out }) => ['touch', out])
rule('d', 'common', ({ out }) => ['touch', out])`),
  })
  const { code, stderr } = await millrace(folder, ['make', '-k', 'a', 'c', 'd'])
  assert.equal(code, 1)
  assert.match(stderr, /nowhere, which c is made of/)
  assert(existsSync(join(folder, 'a')) && existsSync(join(folder, 'd')))
  assert.equal(read(folder, 'common-ran'), '\n')
})

test('a run that was overtaken by another one says so, and what that one did stays done', async () => {
  const folder = makeFolder({
    'flow.mjs': rules(`
import { spawnSync } from 'node:child_process'
rule('a', [], ({ out }) => ['touch', out])
rule('b', [], ({ out }) => sh\`echo >> b-ran; touch \${out}\`)
target('all', async ({ need }) => {
  spawnSync(process.execPath, [process.env['MILLRACE_BIN'], 'make', 'b'])
  await need('a')
})`),
  })
  const bin = new URL('../../bin/millrace.js', import.meta.url).pathname
  const overtaken = await millrace(folder, ['make'], { MILLRACE_BIN: bin })
  assert.equal(overtaken.code, 1)
  assert.match(overtaken.stderr, /another run has worked in this folder/)
  assert.match((await make(folder, ['b'])).stderr, /nothing to do/)
  assert.equal(readFileSync(join(folder, 'b-ran'), 'utf8'), '\n')
})

test('a list that several lists name is made once', async () => {
  const folder = makeFolder({
    'flow.mjs': rules(`
rule('f.txt', [], ({ out }) => ['touch', out])
target('c', ['f.txt'])
target('a', ['c'])
target('b', ['c'])
target('f.txt', ['f.txt'])
target('all', ['a', 'b'])`),
  })
  await make(folder, ['all'])
  assert.match((await make(folder, ['c', 'c', 'f.txt', 'f.txt'])).stderr, /nothing to do/)
})

test('what is to be kept is not replaced because a temporary file beside it is gone', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.mjs': rules(`
rule('a', 'source', ({ out, in: from }) => ['cp', from, out])
rule([temp('t'), keep('k')], ['a'], ({ out: [t, k], in: [a] }) => sh\`cp \${a} \${t}; cp \${a} \${k}\`)
rule('end', 't', ({ out, in: from }) => ['cp', from, out])
target('all', ['k', 'end'])`),
  })
  await make(folder)
  assert(!existsSync(join(folder, 't')))
  write(folder, 'source', '2\n')
  const { code, stderr } = await millrace(folder, ['make'])
  assert.equal(code, 1)
  assert.match(stderr, /MR_FLOW_KEPT/)
  assert.equal(read(folder, 'k'), '1\n')
})

test('pipes and devices are inputs whose content is not looked for', async () => {
  const folder = makeFolder({
    'flow.mjs': rules("rule('out', ['/dev/zero', 'pipe', 'inside'], ({ out }) => ['touch', out])"),
    'inside/a': '1\n',
  })
  for (const pipe of ['pipe', 'inside/pipe'])
    assert.equal(spawnSync('mkfifo', [join(folder, pipe)]).status, 0)
  await make(folder)
  assert.match((await make(folder)).stderr, /nothing to do/)
})
