import assert from 'node:assert/strict'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { CancelledError, cancel, group, openFile, removeFile, waitOn, waitOnFile } from 'millrace'
import * as tasks from '../fixtures/tasks.ts'
import { rejection, temporaryFolder, thrown } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'

const folder = temporaryFolder()

const newFolder = (): string => mkdtempSync(join(folder, 'd'))
const newFile = (text: string): string => {
  const path = join(newFolder(), 'file.txt')
  writeFileSync(path, text)
  return path
}
const contents = async (path: string): Promise<string> => readFileSync(await waitOnFile(path), 'utf8')
/** Everything in a folder but staging folders of this run, which exist until its end. */
const list = (path: string): string[] => readdirSync(path).filter(name => !name.startsWith('.millrace-'))

test('files make dependencies by path', async () => {
  const path = join(newFolder(), 'new', 'file.txt')
  tasks.writeText(path, 'one')
  tasks.appendText(path, ' two')
  const first = tasks.readText(path)
  tasks.appendText(path, ' three')
  assert.equal(await first, 'one two')
  assert.equal(await contents(path), 'one two three')
})

test('a path is the same file however it is written', async () => {
  const path = newFile('a')
  tasks.appendText(join(path, '..', '.', 'file.txt'), 'b')
  assert.equal(await tasks.readText(path), 'ab')
})

test('a file is the same by way of links, and links stay what they are', async () => {
  const base = newFolder()
  mkdirSync(join(base, 'there'))
  symlinkSync('there', join(base, 'here'))
  tasks.writeText(join(base, 'there', 'new'), 'one')
  tasks.appendText(join(base, 'here', 'new'), ' two')
  assert.equal(await tasks.readText(join(base, 'there', 'new')), 'one two')
  symlinkSync('there/new', join(base, 'link'))
  await waitOnFile(join(base, 'there', 'new'))
  tasks.appendText(join(base, 'link'), ' three')
  assert.equal(await contents(join(base, 'here', 'new')), 'one two three')
  assert(lstatSync(join(base, 'link')).isSymbolicLink())
  assert.equal(await tasks.pathOf(join(base, 'link')), join(base, 'link'))
  await removeFile(join(base, 'link'))
  assert.deepEqual(list(base).sort(), ['here', 'there'])
  assert.equal(readFileSync(join(base, 'there', 'new'), 'utf8'), 'one two three')
})

test('a reader of an older version is not disturbed by a writer', async () => {
  const path = newFile('old')
  const one = newGate()
  const before = tasks.readTextAfter(path, one)
  await reached(one)
  tasks.writeText(path, 'new')
  assert.equal(await tasks.readText(path), 'new')
  assert.equal(readFileSync(path, 'utf8'), 'old')
  open(one)
  assert.equal(await before, 'old')
  assert.equal(await contents(path), 'new')
})

test('a reader of an older version is not disturbed by a second writer, which reads what the first wrote', async () => {
  const path = join(newFolder(), 'file.txt')
  const gate = newGate()
  tasks.writeText(path, 'old')
  await waitOnFile(path)
  const first = tasks.readTextAfter(path, gate)
  await reached(gate)
  tasks.writeText(path, 'new')
  await tasks.appendText(path, ' and more')
  open(gate)
  assert.equal(await first, 'old')
  assert.equal(await contents(path), 'new and more')
})

test('a file that is waited for while others still read it is in place, and they go on', async () => {
  const path = newFile('0')
  const one = newGate()
  const before = tasks.readTextAfter(path, one)
  await reached(one)
  tasks.appendText(path, '1')
  const after = tasks.readTextAfter(path, one)
  await reached(one, 2)
  const waiting = contents(path)
  open(one)
  assert.deepEqual([await before, await after, await waiting], ['0', '01', '01'])
})

test('openFile waits and opens', async () => {
  const path = join(newFolder(), 'file.txt')
  tasks.writeText(path, 'opened')
  const file = await openFile(path)
  assert.equal(await file.readFile('utf8'), 'opened')
  await file.close()
})

test('a file that is opened to write is not changed under those who read it', async () => {
  const path = join(newFolder(), 'file.txt')
  const gate = newGate()
  tasks.writeText(path, 'old')
  const before = tasks.readTextAfter(path, gate)
  await reached(gate)
  const opening = openFile(path, 'w')
  open(gate)
  const file = await opening
  await file.writeFile('new')
  await file.close()
  assert.deepEqual([await before, await tasks.readText(path)], ['old', 'new'])
})

test('a failed FILE_INOUT leaves the original, and what earlier tasks made of it', async () => {
  const path = newFile('original')
  const error = await rejection(tasks.appendThenFail(path, '!'))
  assert.equal(error.cause.message, 'failed after appending')
  assert.equal(readFileSync(path, 'utf8'), 'original')
  await rejection(waitOnFile(path))
  assert.equal(await contents(path), 'original')
  tasks.appendText(path, ' 1')
  tasks.appendThenFail(path, '!')
  await rejection(waitOnFile(path))
  assert.equal(await contents(path), 'original 1')
  tasks.appendText(path, ' 2')
  assert.equal(await contents(path), 'original 1 2')
})

test('a cancelled FILE_INOUT leaves the original', async () => {
  const path = newFile('original')
  const one = newGate()
  await group('c', async () => {
    tasks.appendTextAfter(path, '!', one)
    await reached(one)
    await cancel('c')
  })
  assert.equal(readFileSync(path, 'utf8'), 'original')
  assert((await rejection(waitOnFile(path))) instanceof CancelledError)
  assert.equal(await contents(path), 'original')
})

test('a cancelled FILE_INOUT whose failures are ignored leaves what earlier tasks made of it', async () => {
  const path = newFile('original')
  const one = newGate()
  await group('d', async () => {
    tasks.appendText(path, ' 1')
    tasks.appendIgnoredAfter(path, '!', one)
    await reached(one)
    await cancel('d')
  })
  await rejection(waitOnFile(path))
  assert.equal(await contents(path), 'original 1')
})

test('a failed FILE_OUT leaves no half file, and not even an older one is lost', async () => {
  const path = join(newFolder(), 'file.txt')
  await rejection(tasks.writeThenFail(path))
  assert.equal(existsSync(path), false)
  const old = newFile('older')
  await rejection(tasks.writeThenFail(old))
  assert.equal(readFileSync(old, 'utf8'), 'older')
  assert.deepEqual(list(join(old, '..')), ['file.txt'])
})

test('a task sees nothing of a FILE_OUT that is being written', async () => {
  const path = newFile('old')
  const one = newGate()
  tasks.writeTextAfter(path, 'new', one)
  await reached(one)
  assert.equal(readFileSync(path, 'utf8'), 'old')
  open(one)
  assert.equal(await contents(path), 'new')
})

test('an ignored failure keeps what was written to a file, or gives the default', async () => {
  const path = newFile('a')
  tasks.appendIgnored(path, 'b')
  assert.equal(await contents(path), 'ab')
  const out = join(newFolder(), 'file.txt')
  tasks.defaultFile(out)
  assert.equal(await contents(out), 'by default\n')
})

test('a task that does not write its output fails and says so', async () => {
  const path = join(newFolder(), 'file.txt')
  const error = await rejection(tasks.writesNothing(path))
  assert.equal(error.code, 'MR_OUTPUT_MISSING')
  assert.match(error.message, new RegExp(`writesNothing#\\d+ ended without writing ${path}`))
})

test('a task that does not write one of its outputs leaves the others as they were', async () => {
  const path = newFile('older')
  const error = await rejection(tasks.writesOneOfTwo(path, join(newFolder(), 'missing.txt')))
  assert.equal(error.code, 'MR_OUTPUT_MISSING')
  assert.equal(readFileSync(path, 'utf8'), 'older')
})

test('an input that does not exist fails the task and says so', async () => {
  for (const read of [tasks.readText, (path: string) => tasks.appendText(path, 'x')]) {
    const path = join(newFolder(), 'missing.txt')
    const error = await rejection(read(path))
    assert.equal(error.code, 'MR_INPUT_MISSING')
    assert.match(error.message, new RegExp(`${path} does not exist`))
  }
})

test('FILE_COMMUTATIVE tasks all append', async () => {
  const path = newFile('')
  for (const letter of 'abcdefgh') tasks.appendCommutative(path, letter)
  assert.equal([...(await tasks.readText(path))].sort().join(''), 'abcdefgh')
  assert.equal([...(await contents(path))].sort().join(''), 'abcdefgh')
})

test('a FILE_COMMUTATIVE task that fails leaves what was before its team', async () => {
  const path = newFile('original')
  await tasks.appendCommutative(path, 'x')
  tasks.failCommutative(path)
  await rejection(waitOnFile(path))
  assert.equal(await contents(path), 'original')
})

test('FILE_CONCURRENT tasks write one file together', async () => {
  const path = newFile('')
  for (const letter of 'abcdefgh') tasks.appendConcurrent(path, letter)
  assert.equal([...(await tasks.readText(path))].sort().join(''), 'abcdefgh')
  assert.equal([...(await contents(path))].sort().join(''), 'abcdefgh')
})

test('directories are made, read and added to as a whole', async () => {
  const path = join(newFolder(), 'out')
  tasks.makeFolder(path, ['a', 'b'])
  assert.deepEqual(await tasks.listFolder(path), ['a', 'b'])
  tasks.addToFolder(path, 'c')
  assert.deepEqual(await tasks.listFolder(path), ['a', 'b', 'c'])
  await waitOnFile(path)
  assert.deepEqual(list(path), ['a', 'b', 'c'])
  tasks.makeFolder(path, ['z'])
  await waitOnFile(path)
  assert.deepEqual(list(path), ['z'])
  await rejection(tasks.failFolder(path))
  assert.deepEqual(list(path), ['z'])
})

test('a file inside a directory that a task makes can be read', async () => {
  const path = join(newFolder(), 'out')
  tasks.makeFolder(path, ['a', 'b'])
  assert.equal(await tasks.readText(join(path, 'b')), 'b')
  await waitOnFile(join(path, 'a'))
  assert.equal(readFileSync(join(path, 'a'), 'utf8'), 'a')
  const error = thrown(() => tasks.writeText(join(path, 'a'), 'x'))
  assert.equal(error.code, 'MR_ALIAS')
})

test('a directory that is read waits for the files that tasks write in it', async () => {
  const path = newFolder()
  const one = newGate()
  tasks.writeTextAfter(join(path, 'late'), 'text', one)
  const names = tasks.listFolder(path)
  setTimeout(() => open(one), 20)
  assert.deepEqual(
    (await names).filter(name => !name.startsWith('.')),
    ['late'],
  )
})

test('a task that lists a directory does not see staging folders', async () => {
  const path = newFolder()
  tasks.writeText(join(path, 'a'), 'a')
  await waitOnFile(join(path, 'a'))
  assert.deepEqual(await tasks.listFolder(path), ['a'])
})

test('removeFile deletes after the readers have ended', async () => {
  const path = newFile('text')
  const one = newGate()
  const text = tasks.readTextAfter(path, one)
  await reached(one)
  const removing = removeFile(path)
  assert.equal(existsSync(path), true)
  open(one)
  await removing
  assert.equal(await text, 'text')
  assert.equal(existsSync(path), false)
  const error = await Promise.resolve()
    .then(() => tasks.readText(path))
    .then(
      () => null,
      (caught: { code: string }) => caught.code,
    )
  assert.equal(error, 'MR_REMOVED')
  tasks.writeText(path, 'again')
  assert.equal(await contents(path), 'again')
})

test('a file that is written again right after removeFile is there', async () => {
  for (let i = 0; i < 20; i++) {
    const path = newFile('old')
    const one = newGate()
    const old = i % 2 === 0 ? tasks.readTextAfter(path, one) : null
    if (old) await reached(one)
    const removing = removeFile(path)
    tasks.writeText(path, 'new')
    const text = tasks.readText(path)
    if (i % 4 === 0) await text
    open(one)
    await removing
    assert.equal(await contents(path), 'new')
    assert.equal(await text, 'new')
    if (old) assert.equal(await old, 'old')
  }
})

test('a file that is written while an older one is read can be removed', async () => {
  const path = newFile('old')
  const one = newGate()
  const old = tasks.readTextAfter(path, one)
  await reached(one)
  tasks.writeText(path, 'new')
  const removing = removeFile(path)
  open(one)
  await removing
  assert.equal(await old, 'old')
  assert.equal(existsSync(path), false)
})

test('permissions and names with spaces, quotes and unicode survive', async () => {
  const path = join(newFolder(), `it's "ümlaut" \\ file.txt`)
  writeFileSync(path, 'a', { mode: 0o750 })
  tasks.appendText(path, 'b')
  assert.equal(await contents(path), 'ab')
  assert.equal(statSync(path).mode & 0o777, 0o750)
})

test('many writers and readers of a few files end as in sequence', async () => {
  const path = newFolder()
  mkdirSync(join(path, 'x'))
  const files = ['x/a', 'x/b', 'c'].map(name => join(path, name))
  const expected = new Map(files.map(name => [name, 'start']))
  const reads: [PromiseLike<string>, string][] = []
  for (const name of files) tasks.writeText(name, 'start')
  let seed = 7
  for (let i = 0; i < 120; i++) {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    const name = files[(seed >> 8) % files.length] as string
    const what = (seed >> 16) % 4
    if (what === 0) {
      tasks.writeText(name, `w${i}`)
      expected.set(name, `w${i}`)
    } else if (what === 1) {
      tasks.appendText(name, `+${i}`)
      expected.set(name, `${expected.get(name)}+${i}`)
    } else if (what === 2) reads.push([tasks.readText(name), expected.get(name) as string])
    else if (i % 3 === 0) assert.equal(await contents(name), expected.get(name))
  }
  for (const [read, text] of reads) assert.equal(await read, text)
  for (const name of files) assert.equal(await contents(name), expected.get(name))
  await waitOn(reads.map(([read]) => read))
})
