import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { CancelledError, TaskError, cancel, group, waitOnFile } from 'millrace'
import * as commands from '../fixtures/commands.ts'
import * as tasks from '../fixtures/tasks.ts'
import { rejection, temporaryFolder, until } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'
import { isAlive } from '../processes.ts'

const folder = temporaryFolder()
const newFolder = (): string => mkdtempSync(join(folder, 'd'))
const newFile = (text: string): string => {
  const path = join(newFolder(), 'file.txt')
  writeFileSync(path, text)
  return path
}
const contents = async (path: string): Promise<string> => readFileSync(await waitOnFile(path), 'utf8')
const pidIn = (path: string): number => {
  const pid = existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0
  return pid
}
const gone = (path: string): Promise<void> =>
  until(
    () => !isAlive(pidIn(`${path}.leader`)) && !isAlive(pidIn(`${path}.child`)),
    'the end of its processes',
  )

test('a command reads and writes files and gives its exit code', async () => {
  const to = join(newFolder(), 'sorted.txt')
  assert.equal(await commands.sort(newFile('b\na\n'), to), 0)
  assert.equal(await contents(to), 'a\nb\n')
})

test('standard input and output are file parameters', async () => {
  const to = join(newFolder(), 'out.txt')
  commands.upper(newFile('loud'), to)
  assert.equal(await tasks.readText(to), 'LOUD')
})

test('standard error is a file parameter, or shares one with standard output', async () => {
  const to = join(newFolder(), 'err.txt')
  commands.complain(to, 'alas')
  assert.equal(await contents(to), 'alas\n')
  const both = join(newFolder(), 'both.txt')
  commands.bothStreams(both)
  assert.equal(await contents(both), 'out\nerror\n')
})

test('working directory and environment are set', async () => {
  const to = join(newFolder(), 'out.txt')
  const elsewhere = realpathSync(newFolder())
  commands.where(to, elsewhere)
  assert.deepEqual((await contents(to)).trim().split(/\s+/), [elsewhere, 'blue', '1'])
})

test('words are passed as they are, without a shell', async () => {
  const to = join(newFolder(), 'out.txt')
  commands.words(to, ['a b', '$HOME', "it's", '', '*', '\n'])
  assert.equal(await contents(to), "[a b][$HOME][it's][][*][\n]")
})

test('futures and values from tasks are arguments of commands', async () => {
  const to = join(newFolder(), 'out.txt')
  commands.countBytes(to, tasks.makeArray(10_000, 4))
  assert.equal(await contents(to), '10000 4\n')
})

test('a command may read an array that a running task was lent', async () => {
  const to = join(newFolder(), 'out.txt')
  const one = newGate()
  const array = tasks.makeArray(10_000, 4)
  const sum = tasks.totalAfter(array, one)
  await reached(one)
  commands.countBytes(to, array)
  setTimeout(() => open(one), 20)
  assert.equal(await contents(to), '10000 4\n')
  assert.equal(await sum, 40_000)
})

test('an exit code that does not count as success fails the task', async () => {
  const path = newFile('original\n')
  const error = await rejection(commands.appendAndFail(path))
  assert(error instanceof TaskError)
  assert.equal(error.code, 'MR_EXIT_CODE')
  assert.equal(error.exitCode, 3)
  assert.equal(error.signal, null)
  assert.match(error.message, /appendAndFail#\d+ failed: sh ended with exit code 3/)
  assert.equal(readFileSync(path, 'utf8'), 'original\n')
})

test('exitCodes says what counts as success', async () => {
  assert.equal(await commands.exit(1), 1)
  assert.equal((await rejection(commands.exit(2))).exitCode, 2)
  assert.equal(await commands.exitEven(4), 4)
  assert.equal((await rejection(commands.exitEven(5))).exitCode, 5)
})

test('a command that is ended by a signal fails and names it', async () => {
  const error = await rejection(commands.killed())
  assert.equal(error.signal, 'SIGSEGV')
  assert.equal(error.exitCode, null)
})

test('the error of a command that is killed does not say to read its output', async () => {
  const error = await rejection(commands.murdered())
  assert.equal(error.signal, 'SIGKILL')
  assert.match(error.message, /A user, a program, or the system \(for lack of memory\) killed it/)
})

test('a command that the system kills for lack of memory says so', async t => {
  if (process.env['MILLRACE_SPAWNER'] === 'off') return t.skip('Node does not hear of it')
  const group = `/sys/fs/cgroup/memory/millrace-test-${process.pid}`
  try {
    mkdirSync(group)
    writeFileSync(`${group}/memory.limit_in_bytes`, '20000000')
  } catch (error) {
    return t.skip(`no control group of memory can be made: ${String(error)}`)
  }
  try {
    for (const isShell of [false, true]) {
      const error = await rejection(commands.starved(group, isShell))
      assert.match(error.shortMessage, /when the system was out of memory; it held \d+ MB/)
      assert.match(error.hint, /Say how much it needs/)
    }
  } finally {
    rmdirSync(group)
  }
})

test('a program or a folder that does not exist is said to be so', async () => {
  const program = await rejection(commands.missing())
  assert.equal(program.code, 'MR_SPAWN')
  assert.match(program.message, /millrace-no-such-program could not be started/)
  const cwd = await rejection(commands.nowhere())
  assert.equal(cwd.code, 'MR_SPAWN')
  assert.match(cwd.message, /\/no\/such\/folder/)
})

test('missing outputs and inputs are said to be so', async () => {
  assert.equal((await rejection(commands.makesNothing(join(newFolder(), 'x')))).code, 'MR_OUTPUT_MISSING')
  assert.equal(
    (await rejection(commands.sort(join(folder, 'missing'), join(folder, 'y')))).code,
    'MR_INPUT_MISSING',
  )
})

test('a function that gives no list of words is refused', async () => {
  assert.equal((await rejection(commands.noWords())).code, 'MR_OPTION')
})

test('each attempt of a retried command sees the original file', async () => {
  const path = newFile('a\n')
  await commands.retriedCommand(path, join(newFolder(), 'counter'))
  assert.equal(await contents(path), 'a\n+\n')
})

test('an ignored command keeps what it wrote and gives its default', async () => {
  const path = newFile('a')
  assert.equal(await commands.ignoredCommand(path), -1)
  assert.equal(await contents(path), 'ab')
})

test('a time-out kills the command with children that ignore SIGTERM', async () => {
  const path = join(newFolder(), 'pid')
  const error = await rejection(commands.neverEnds(path))
  assert.equal(error.code, 'MR_TIMEOUT')
  assert.equal(error.timedOut, true)
  await gone(path)
})

test('cancel kills the command with children that ignore SIGTERM', async () => {
  const path = join(newFolder(), 'pid')
  let running: PromiseLike<unknown> = Promise.resolve()
  await group('commands', async () => {
    running = commands.waits(path)
    await until(() => pidIn(`${path}.child`) > 0, 'the child')
    await cancel('commands')
  })
  assert((await rejection(running)) instanceof CancelledError)
  await gone(path)
})

test('children that a command leaves behind end with it', async () => {
  const path = join(newFolder(), 'pid')
  await commands.leavesChild(path)
  await gone(path)
})

test('many commands at once go through', async () => {
  const path = newFolder()
  const paths = Array.from({ length: 40 }, (_, i) => join(path, `${i}.txt`))
  for (const [i, to] of paths.entries()) commands.words(to, [String(i)])
  for (const [i, to] of paths.entries()) assert.equal(await contents(to), `[${i}]`)
})
