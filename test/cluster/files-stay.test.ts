import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { folder, start, until } from './program.ts'

/**
 * Files stay on the node that made them, where nodes have folders of their own. Tasks run on n1 and n2, or on n3 alone.
 * Nothing waits for what a task made before that is looked at: tasks say in a log what they have done.
 */
const root = join(import.meta.dirname, '..', '..')
const nodes = join(folder, 'nodes')
mkdirSync(nodes)
const machines = join(folder, 'files-stay.yaml')
writeFileSync(
  machines,
  `nodes:
  - { name: n, count: 2, cpus: 1, tags: [a] }
  - { name: far, cpus: 1, tags: [b] }
`,
)
const program = join(folder, 'files-stay.mjs')
writeFileSync(
  program,
  `
import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { task, command, main, waitOn, waitOnFile, removeFile, barrier, IN, FILE_IN, FILE_OUT, FILE_INOUT, DIR_IN, DIR_OUT } from ${JSON.stringify(pathToFileURL(join(root, 'dist', 'index.js')).href)}
const [mode, log] = process.argv.slice(2)
const a = { tags: ['a'] }
const b = { tags: ['b'] }
const SIZE = 300_000
const note = what => appendFileSync(log, what + ' ' + process.pid + '\\n')
const write = (what, value, path) => { writeFileSync(path, String(value).repeat(SIZE)); note(what) }
export const make = task({ name: 'make', params: [IN, FILE_OUT], ...a }, (value, path) => write('make', value, path))
export const scratch = task({ name: 'scratch', params: [IN, FILE_OUT], temporary: true, ...a }, (value, path) => write('scratch', value, path))
export const next = task({ name: 'next', params: [FILE_IN, FILE_OUT], ...a }, (from, to) => {
  write('next', (Number(readFileSync(from, 'latin1')[0]) + 1) % 10, to)
})
export const pass = task({ name: 'pass', params: [FILE_IN, FILE_OUT], temporary: true, ...a }, (from, to) => {
  write('pass', (Number(readFileSync(from, 'latin1')[0]) + 1) % 10, to)
})
export const nextFar = task({ name: 'nextFar', params: [FILE_IN, FILE_OUT], ...b }, (from, to) => {
  write('nextFar', (Number(readFileSync(from, 'latin1')[0]) + 1) % 10, to)
})
export const copy = command({ name: 'copy', params: [FILE_IN, FILE_OUT], stdout: 1, ...a }, from => ['sh', '-c', 'cat "$0"; echo "copy $$" >> "$1"', from, log])
export const digit = task({ name: 'digit', params: [FILE_IN], ...a }, path => readFileSync(path, 'latin1')[0])
export const digitFar = task({ name: 'digitFar', params: [FILE_IN], ...b }, path => {
  const text = readFileSync(path, 'latin1')
  note('far')
  return text[0] + text.length
})
export const change = task({ name: 'change', params: [FILE_INOUT], ...b }, path => appendFileSync(path, 'end'))
export const pack = task({ name: 'pack', params: [IN, DIR_OUT], ...a }, (n, path) => {
  for (let i = 0; i < n; i++) writeFileSync(join(path, 'f' + i), String(i).repeat(1000))
  note('pack')
})
export const list = task({ name: 'list', params: [DIR_IN], ...b }, path => readdirSync(path).sort().join())
const lines = () => existsSync(log) ? readFileSync(log, 'utf8').trim().split('\\n').map(line => line.split(' ')) : []
const times = what => lines().filter(([name]) => name === what).length
const pause = () => new Promise(resolve => setTimeout(resolve, 5))
const done = async (what, count = 1) => { while (times(what) < count) await pause(); for (let i = 0; i < 20; i++) await pause() }
const isAlive = pid => {
  try { return process.kill(pid, 0) } catch { return false }
}
/** Ends the node on which this was done last, and waits until it has. */
const kill = async what => {
  const pid = Number(lines().findLast(([name]) => name === what)[1])
  process.kill(pid, 'SIGKILL')
  while (isAlive(pid)) await pause()
}
const first = path => readFileSync(path, 'latin1')[0]
/** Bytes of all files here, also of those that are on their way. */
const bytesHere = (path = '.') =>
  readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
    const at = join(path, entry.name)
    return sum + (entry.isDirectory() ? bytesHere(at) : (statSync(at, { throwIfNoEntry: false })?.size ?? 0))
  }, 0)
const modes = {
  async read() {
    make(2, 'x')
    const far = await digitFar('x')
    const before = [existsSync('x'), bytesHere()]
    await waitOnFile('x')
    return [far, before, first('x'), await digit('x'), times('make')]
  },
  async awaited() {
    // Who waits for a task has its files, too.
    await make(3, 'x')
    const [one, two] = [first('x'), make(4, 'y')]
    nextFar('y', 'z')
    await barrier()
    return [one, first('y'), first('z')]
  },
  async ends() {
    make(5, 'x')
    mkdirSync('in')
    copy('x', 'in/copy')
  },
  async lost() {
    make(2, 'x')
    await done('make')
    await kill('make')
    return [await digitFar('x'), times('make')]
  },
  async asked() {
    make(2, 'x')
    copy('x', 'y')
    await done('copy')
    await kill('make')
    await waitOnFile('y')
    await waitOnFile('x')
    return [first('x'), first('y'), readFileSync('y').length]
  },
  async chain() {
    make(0, 'x0')
    for (let i = 0; i < 12; i++) next('x' + i, 'x' + (i + 1))
    await done('next', 12)
    await kill('next')
    return [await digitFar('x12'), first(await waitOnFile('x5'))]
  },
  async kept() {
    // What the node that dies had is also on another one.
    make(4, 'x')
    await digitFar('x')
    await kill('make')
    await waitOnFile('x')
    return [first('x'), times('make')]
  },
  async temporary() {
    scratch(1, 's1')
    nextFar('s1', 'x')
    scratch(5, 's2')
    nextFar('s2', 'y')
    await done('nextFar', 2)
    const before = bytesHere()
    await barrier()
    return [before, first('x'), first('y'), readdirSync('.').filter(name => name.startsWith('s'))]
  },
  async removed() {
    make(1, 'x')
    nextFar('x', 'y')
    await done('nextFar')
    await removeFile('x')
    await kill('nextFar')
    return [existsSync('x'), first(await waitOnFile('y')), times('nextFar')]
  },
  async replaced() {
    make(1, 'x')
    next('x', 'y')
    make(7, 'x')
    next('x', 'z')
    await done('next', 2)
    await kill('next')
    await barrier()
    return [first('x'), first('y'), first('z')]
  },
  async changed() {
    make(1, 'x')
    await done('make')
    change('x')
    await waitOnFile('x')
    return [readFileSync('x', 'latin1').slice(-5), times('make')]
  },
  async original() {
    // It cannot be made again of what is another file now.
    writeFileSync('in', '3'.repeat(10))
    next('in', 'x')
    await done('next')
    writeFileSync('in', '8'.repeat(11))
    await kill('next')
    return digitFar('x').catch(error => [error.cause?.code ?? error.code, times('next')])
  },
  async homeless() {
    // No node is left that could make it again.
    make(1, 'x')
    nextFar('x', 'y')
    await done('nextFar')
    await kill('nextFar')
    return waitOnFile('y').catch(error => [error.code, waitOnFile('x')]).then(async ([code, x]) => [code, first(await x)])
  },
  async crowded() {
    // 101 files of 300 kB: 50 in a chain, and 51 that are made of none.
    make(0, 'c0')
    for (let i = 0; i < 49; i++) next('c' + i, 'c' + (i + 1))
    for (let i = 0; i < 51; i++) make(i % 10, 'm' + i)
  },
  async brief() {
    // The same, of files that are not wanted at the end, but for the last one.
    scratch(0, 't0')
    for (let i = 0; i < 49; i++) pass('t' + i, 't' + (i + 1))
    next('t49', 'x')
    for (let i = 0; i < 51; i++) scratch(i % 10, 's' + i)
    next('s50', 'y')
  },
  async full() {
    for (let i = 0; i < 12; i++) make(i % 10, 'x' + i)
    await barrier()
  },
  async directory() {
    pack(4, 'd')
    const seen = await list('d')
    const before = existsSync('d/f1')
    await done('pack')
    await kill('pack')
    return [seen, before, (await waitOnFile('d')) && readdirSync('d').sort().join(), times('pack')]
  },
}
main(async () => {
  console.log(JSON.stringify((await modes[mode]()) ?? null))
})
`,
)

/** Starts a run of the mode in a folder of its own. `before`: words before the command. */
function runOf(mode: string, file = machines, before: readonly string[] = []) {
  const at = mkdtempSync(join(folder, `${mode}-`))
  const words = [process.execPath, join(root, 'bin', 'millrace.js'), 'run', program, '--nodes', file]
  const log = join(folder, `files-stay-${mode}`)
  const variables = { MILLRACE_NODE_FOLDER: nodes, XDG_CACHE_HOME: join(folder, 'cache') }
  const all = [...before, ...words, '--no-journal', '--progress', 'none', '--', mode, log]
  return { at, ended: start(all, variables, at).ended }
}

async function run(mode: string, file = machines): Promise<{ seen: unknown; at: string }> {
  const { at, ended } = runOf(mode, file)
  const { code, text, said } = await ended
  assert.equal(code, 0, said)
  // Nothing is left on nodes, nor where tasks write here.
  await until(() => readdirSync(nodes).length === 0)
  assert.deepEqual(
    readdirSync(at).filter(name => name.startsWith('.millrace-') || name.includes('.part')),
    [],
  )
  return { seen: JSON.parse(text), at }
}

const skip = process.platform === 'linux' ? false : 'agents of this machine reach each other on Linux only'
const options = { skip, timeout: 120_000 }
const file = (at: string, name: string): string => readFileSync(join(at, name), 'latin1')

test(
  'a file stays on its node, is read on another one, and comes when it is asked for',
  options,
  async () => {
    assert.deepEqual((await run('read')).seen, ['2300000', [false, 0], '2', '2', 1])
  },
)

test('who waits for a task, or for all, finds its files', options, async () => {
  assert.deepEqual((await run('awaited')).seen, ['3', '4', '5'])
})

test('files come to their paths at the end of the run', options, async () => {
  const { at } = await run('ends')
  assert.equal(file(at, 'x'), '5'.repeat(300_000))
  assert.equal(file(at, 'in/copy'), file(at, 'x'))
})

test('a file that was only on a node that dies is made again for a task', options, async () => {
  assert.deepEqual((await run('lost')).seen, ['2300000', 2])
})

test('it is made again for the program, with what it was made of', options, async () => {
  assert.deepEqual((await run('asked')).seen, ['2', '2', 300_000])
})

test('a chain of files is made again', options, async () => {
  assert.deepEqual((await run('chain')).seen, ['2300000', '5'])
})

test('a file that another node has read outlives its node', options, async () => {
  assert.deepEqual((await run('kept')).seen, ['4', 1])
})

test('temporary files never come', options, async () => {
  assert.deepEqual((await run('temporary')).seen, [0, '2', '6', []])
})

test('what was made of a file comes before that is removed', options, async () => {
  assert.deepEqual((await run('removed')).seen, [false, '2', 1])
})

test('files that are written anew leave those that were made of them', options, async () => {
  assert.deepEqual((await run('replaced')).seen, ['7', '2', '8'])
})

test('a file that is on another node is changed', options, async () => {
  assert.deepEqual((await run('changed')).seen, ['11end', 1])
})

test('a file that was made of what the program has changed since is not made again', options, async () => {
  assert.deepEqual((await run('original')).seen, ['MR_DATA_LOST', 1])
})

test('a file that no node can make again is told as cancelled', options, async () => {
  assert.deepEqual((await run('homeless')).seen, ['MR_CANCELLED', '1'])
})

test('directories stay, too', options, async () => {
  assert.deepEqual((await run('directory')).seen, ['f0,f1,f2,f3', false, 'f0,f1,f2,f3', 1])
})

const mount = ['unshare', '-m', 'sh', '-c'] as const
const canMount = spawnSync(mount[0], [...mount.slice(1), `mount -t tmpfs none '${nodes}'`]).status === 0
const mounting = {
  ...options,
  skip: skip || (canMount ? false : 'disks of their own need the right to mount'),
}

/** Two nodes, each with a disk for 20 files of 300 kB, in a mount namespace of its own: the disk goes with the node. */
function smallDisks(): string {
  const script = join(folder, 'small-disk.sh')
  writeFileSync(script, `mount -t tmpfs -o size=6m none '${nodes}' && exec "$@"`)
  const file = join(folder, 'small-disks.yaml')
  const launch = `unshare -m sh ${script} {agent}`
  writeFileSync(file, `nodes:\n  - { name: n, count: 2, cpus: 1, tags: [a], launch: '${launch}' }\n`)
  return file
}

test('tasks make 5 times as much as the disk of a node holds', mounting, async () => {
  const { at } = await run('crowded', smallDisks())
  for (let i = 0; i < 50; i++) assert.ok(file(at, `c${i}`) === String(i % 10).repeat(300_000), `c${i}`)
  for (let i = 0; i < 51; i++) assert.ok(file(at, `m${i}`) === String(i % 10).repeat(300_000), `m${i}`)
})

test('so do those whose files are temporary', mounting, async () => {
  const { at } = await run('brief', smallDisks())
  assert.ok(file(at, 'x') === '0'.repeat(300_000))
  assert.ok(file(at, 'y') === '1'.repeat(300_000))
  assert.deepEqual(
    readdirSync(at).filter(name => name !== '.millrace'),
    ['x', 'y'],
  )
})

test(
  'results that do not fit where they are to come to are named, and nothing half is left',
  mounting,
  async () => {
    const copy = join(folder, 'full-copy')
    const script = `mount -t tmpfs -o size=2m none "$PWD" && cd "$PWD" && { "$@"; code=$?; cp -a . '${copy}'; exit $code; }`
    const { at, ended } = runOf('full', machines, [...mount, script, 'sh'])
    const { code, said } = await ended
    assert.equal(code, 1, said)
    assert.ok(said.includes(`${at}/x`), said)
    assert.match(said, /\/x\d+ could not be brought from node [\w-]+: ENOSPC/)
    const left = readdirSync(copy)
    // How many fit depends on how many came at one time.
    assert.ok(said.includes(`; ${12 - left.length} results in all did not come`), said)
    assert.ok(left.length <= 6, left.join())
    for (const name of left) {
      assert.match(name, /^x\d+$/)
      assert.ok(file(copy, name) === (name.at(-1) as string).repeat(300_000), name)
    }
  },
)
