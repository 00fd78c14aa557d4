import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { waitOnFile } from 'millrace'
import { builtAddon } from '../../src/native/addon.ts'
import * as tasks from '../fixtures/file-tasks.ts'
import { rejection, temporaryFolder, thrown } from './embedded.ts'
import { Program } from './program.ts'

const folder = temporaryFolder()
const newFolder = (): string => mkdtempSync(join(folder, 'd'))
const contents = async (path: string): Promise<string> => readFileSync(await waitOnFile(path), 'utf8')
const modeOf = (path: string): number => statSync(path).mode & 0o7777
const isRoot = process.getuid?.() === 0

test('an output that is a FIFO or a device is refused at the call, and stays what it is', async () => {
  const base = newFolder()
  execFileSync('mkfifo', [join(base, 'fifo')])
  symlinkSync('fifo', join(base, 'link'))
  for (const path of [join(base, 'fifo'), join(base, 'link'), '/dev/null']) {
    for (const call of [tasks.write, tasks.append]) {
      const error = thrown(() => call(path, 'x')) as { code: string; message: string }
      assert.equal(error.code, 'MR_PATH')
      assert.match(error.message, /a (FIFO|device)/)
    }
  }
  assert(lstatSync(join(base, 'fifo')).isFIFO())
  assert(lstatSync('/dev/null').isCharacterDevice())
})

test('one that becomes a FIFO after the call is not replaced either', async () => {
  const base = newFolder()
  const path = join(base, 'late')
  const written = tasks.write(path, 'x')
  execFileSync('mkfifo', [path])
  const error = (await rejection(written)) as { code: string }
  assert.equal(error.code, 'MR_PATH')
  assert(lstatSync(path).isFIFO())
})

test('of a file with several names, only the one that is written changes', async () => {
  const base = newFolder()
  writeFileSync(join(base, 'one'), 'old')
  linkSync(join(base, 'one'), join(base, 'two'))
  tasks.append(join(base, 'one'), ' new')
  assert.equal(await contents(join(base, 'one')), 'old new')
  assert.equal(readFileSync(join(base, 'two'), 'utf8'), 'old')
})

test('a file that is overwritten keeps its mode, and its owner where we may', async () => {
  const path = join(newFolder(), 'secret')
  for (const mode of [0o600, 0o755, 0o640]) {
    writeFileSync(path, 'old')
    chmodSync(path, mode)
    if (isRoot) chownSync(path, 1234, 1234)
    tasks.write(path, 'new')
    assert.equal(await contents(path), 'new')
    assert.equal(modeOf(path), mode)
    if (isRoot) assert.equal(statSync(path).uid, 1234)
    tasks.append(path, 'er')
    assert.equal(await contents(path), 'newer')
    assert.equal(modeOf(path), mode)
  }
})

/** Extended attributes by Python: Node cannot tell of them. */
const python = (...lines: string[]): string =>
  execFileSync('python3', ['-c', ['import os, struct', ...lines].join('\n')], { encoding: 'utf8' })

/** One more user may read, and the group may not. */
const ACL = `struct.pack('<I' + 'HHI' * 5, 2, 1, 6, 2**32-1, 2, 4, 1234, 4, 0, 2**32-1, 16, 4, 2**32-1, 32, 0, 2**32-1)`

function hasAttributes(): boolean {
  try {
    const path = join(newFolder(), 'probe')
    writeFileSync(path, '')
    python(`os.setxattr('${path}', 'user.a', b'1')`)
    return builtAddon() !== null
  } catch {
    return false
  }
}

test(
  'a file that is overwritten keeps its extended attributes',
  { skip: !hasAttributes() },
  async context => {
    const path = join(newFolder(), 'marked')
    writeFileSync(path, 'old')
    chmodSync(path, 0o640)
    python(`os.setxattr('${path}', 'user.origin', b'tape 7')`)
    let hasList = true
    try {
      python(`os.setxattr('${path}', 'system.posix_acl_access', ${ACL})`)
    } catch {
      hasList = false
      context.diagnostic('no lists of who may do what here')
    }
    const told = (): string =>
      python(`print({name: os.getxattr('${path}', name) for name in sorted(os.listxattr('${path}'))})`)
    const [before, mode] = [told(), modeOf(path)]
    assert.match(before, /tape 7/)
    assert.equal(before.includes('posix_acl_access'), hasList)
    tasks.write(path, 'new')
    assert.equal(await contents(path), 'new')
    assert.deepEqual([told(), modeOf(path)], [before, mode])
    tasks.append(path, 'er')
    assert.equal(await contents(path), 'newer')
    assert.deepEqual([told(), modeOf(path)], [before, mode])
    tasks.markFile(path, 'disk 1')
    assert.equal(await contents(path), '')
    assert.match(told(), /disk 1/)
  },
)

test('a link that leads nowhere stays a link, and what it names is made', async () => {
  const base = newFolder()
  symlinkSync('there', join(base, 'link'))
  tasks.write(join(base, 'link'), 'text')
  assert.equal(await contents(join(base, 'there')), 'text')
  assert.equal(readlinkSync(join(base, 'link')), 'there')
  symlinkSync('loop', join(base, 'loop'))
  assert.equal((thrown(() => tasks.write(join(base, 'loop'), 'x')) as { code: string }).code, 'MR_PATH')
})

test('names that are too long, and paths through a file, are errors with a code', async () => {
  const base = newFolder()
  const long = thrown(() => tasks.write(join(base, 'x'.repeat(300)), 'x')) as {
    code: string
    message: string
  }
  assert.equal(long.code, 'MR_PATH')
  writeFileSync(join(base, 'file'), '')
  const through = (await rejection(tasks.write(join(base, 'file', 'inner'), 'x'))) as {
    code: string
    message: string
  }
  assert.equal(through.code, 'MR_PATH')
  assert.doesNotMatch(through.message, /millrace-new/)
  const longest = join(base, 'y'.repeat(255))
  tasks.write(longest, 'x')
  assert.equal(await contents(longest), 'x')
})

test('what a called task writes beside an output comes with it', async () => {
  const path = join(newFolder(), 'out')
  assert.equal(await tasks.writeIndexed(path, 'text'), 'index of text')
  assert.equal(await contents(path), 'text')
  assert.equal(readFileSync(`${path}.idx`, 'utf8'), 'index of text')
})

test('no message has a path of ours', async () => {
  const path = join(newFolder(), 'out')
  const error = await rejection(tasks.readsMissing(path))
  assert.match(String(error), /out\.none/)
  assert.doesNotMatch(String(error), /millrace-new/)
})

test('a file that is left out is null', async () => {
  const base = newFolder()
  const [from, to] = [join(base, 'from'), join(base, 'to')]
  writeFileSync(from, 'some')
  assert.equal(await tasks.optional(null, null, '!'), 'nothing!')
  assert.equal(await tasks.optional(from, to, '!'), 'some!')
  assert.equal(await contents(to), 'some!')
  await tasks.optional(null, to, '?')
  assert.equal(await contents(to), 'nothing?')
  tasks.catOrNot(null, to)
  assert.equal(await contents(to), 'nothing\n')
  assert.equal(await tasks.catOrNot(from, null), 0)
})

test('lists of files of any length are read and written', async () => {
  const base = newFolder()
  const paths = Array.from({ length: 40 }, (_, i) => join(base, String(i)))
  const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP'.slice(0, 40)
  tasks.split(letters, paths)
  tasks.mark(paths.slice(1, 3), '+')
  assert.equal(await tasks.join(paths.slice(0, 4)), 'a b+ c+ d')
  assert.equal(await tasks.join([]), '')
  assert.equal(await tasks.join([paths[0] as string, null, paths[0] as string]), 'a - a')
  const to = join(base, 'all')
  tasks.cat(paths, to)
  assert.equal(await contents(to), 'ab+c+' + letters.slice(3))
  await waitOnFile(paths[1] as string)
  assert.equal(readFileSync(paths[1] as string, 'utf8'), 'b+')
  assert.match(String(thrown(() => tasks.join('x' as never))), /list of paths/)
  await waitOnFile(paths[2] as string)
  assert.equal(readdirSync(base).length, 41)
})

test('journals are for their owner only, and have no arguments of secret commands', async () => {
  for (const isSecret of [false, true]) {
    const program = new Program({
      'app.ts': `import { command, main, IN } from 'millrace'
const login = command({ name: 'login', params: [IN], secret: ${isSecret} }, (word: string) => ['sh', '-c', 'exit 3', word])
main(() => { login('hunter2') })`,
    })
    const { code, err } = await program.run('app.ts', [], { MILLRACE_PROGRESS: 'plain' })
    assert.equal(code, 1, err)
    const [name = ''] = readdirSync(program.path('.millrace/runs'))
    const journal = program.path(`.millrace/runs/${name}/journal`)
    const texts = [err, readFileSync(journal, 'latin1')]
    assert.equal(
      texts.some(text => text.includes('hunter2')),
      !isSecret,
      err,
    )
    assert.deepEqual([modeOf(program.path(`.millrace/runs/${name}`)), modeOf(journal)], [0o700, 0o600])
    program.remove()
  }
})
