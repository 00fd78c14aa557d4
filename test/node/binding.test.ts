import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { chooseLanes } from '../../src/core/schedule/choose-lanes.ts'
import { Gpus } from '../../src/core/schedule/gpus.ts'
import { Node } from '../../src/core/schedule/machine.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { findGpus } from '../../src/node/cpus/find-gpus.ts'
import { ownCpus } from '../../src/node/cpus/own-cpus.ts'
import { quota, readTopology, usableCpus } from '../../src/node/cpus/topology.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
mkdirSync(join(root, 'test', 'tmp'), { recursive: true })
const folder = mkdtempSync(join(root, 'test', 'tmp', 'bind-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

/** Two memory domains with two cores each, every core with two threads, numbered as Linux often does. */
for (let cpu = 0; cpu < 8; cpu++) {
  write(`system/cpu/cpu${cpu}/topology/thread_siblings_list`, `${cpu % 4},${(cpu % 4) + 4}\n`)
}
write('system/node/node0/cpulist', '0,2,4,6\n')
write('system/node/node1/cpulist', '1,3,5,7\n')

test('lanes are ordered by memory domain; a core counts once where hyper-threads do not count', () => {
  const system = join(folder, 'system')
  const all = [0, 1, 2, 3, 4, 5, 6, 7]
  assert.deepEqual(readTopology(true, all, system), {
    cpus: [0, 2, 4, 6, 1, 3, 5, 7],
    domains: [0, 0, 0, 0, 1, 1, 1, 1],
  })
  assert.deepEqual(readTopology(false, all, system), { cpus: [0, 2, 1, 3], domains: [0, 0, 1, 1] })
  assert.deepEqual(readTopology(false, [4, 5, 6], system), { cpus: [4, 6, 5], domains: [0, 0, 1] })
  assert.deepEqual(readTopology(true, [0, 2], system), { cpus: [0, 2], domains: null })
})

test('the limits of control groups and of Slurm are respected', () => {
  const files: Record<string, string> = {
    '/sys/fs/cgroup/a/cpu.max': 'max 100000',
    '/sys/fs/cgroup/cpu.max': '150000 100000',
    '/sys/fs/cgroup/cpu/b/cpu.cfs_quota_us': '300000',
    '/sys/fs/cgroup/cpu/b/cpu.cfs_period_us': '100000',
    '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1',
    '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000',
  }
  const file = (path: string): string | null => files[path] ?? null
  assert.equal(quota('0::/a\n', file), 2)
  assert.equal(quota('4:cpu,cpuacct:/b\n', file), 3)
  assert.equal(quota('4:cpu,cpuacct:/\n5:memory:/b\n', file), null)
  assert.equal(usableCpus(true, { SLURM_JOB_ID: '1', SLURM_CPUS_ON_NODE: '1' }), 1)
  assert.ok(usableCpus(true, {}) <= availableParallelism())
})

const nodeOf = (cpus: number, domains?: number[]): Node =>
  new Node(0, { name: 'n', cpus, memory: 0, tags: [], gpus: ['a', 'b'], ...(domains ? { domains } : {}) })

const fake = (name: string): Task => ({ name, charge: 0, lane: -1 }) as unknown as Task

test('the CPUs of a wide task are in one memory domain where they fit, the one with the least to spare', () => {
  const { lanes } = nodeOf(8, [0, 0, 0, 0, 0, 1, 1, 1])
  const domains = [0, 0, 0, 0, 0, 1, 1, 1]
  const chosen = (count: number, prefer = -1): number[] =>
    chooseLanes(lanes, domains, count, lanes[prefer] ?? null).map(({ index }) => index)
  assert.deepEqual(chosen(3), [5, 6, 7])
  assert.deepEqual(chosen(4), [0, 1, 2, 3])
  assert.deepEqual(chosen(6), [0, 1, 2, 3, 4, 5])
  assert.deepEqual(chosen(2, 3), [3, 0])
  assert.deepEqual(chosen(4, 6).sort(), [0, 5, 6, 7])
})

test('a wide task takes and gives back the lanes of its domain', () => {
  const node = nodeOf(4, [0, 0, 1, 1])
  const first = fake('first')
  const one = node.occupy(first, demandOf(1, 0, []), null)
  first.lane = one.index
  assert.equal(one.index, 0)
  const wide = fake('wide')
  wide.lane = node.occupy(wide, demandOf(2, 0, []), null).index
  assert.deepEqual(
    node.lanes.map(({ idle }) => idle),
    [false, true, false, false],
  )
  node.release(wide, demandOf(2, 0, []), 1)
  assert.equal(node.freeLanes, 3)
})

test('GPUs are handed out by id, whole or in shares that are packed', () => {
  const gpus = new Gpus(['0', '1', 'GPU-x'])
  const [half, third, whole, other] = ['half', 'third', 'whole', 'other'].map(fake) as [
    Task,
    Task,
    Task,
    Task,
  ]
  gpus.take(half, 0.5)
  gpus.take(third, 1 / 3)
  assert.deepEqual([gpus.of(half), gpus.of(third)], [['0'], ['0']])
  gpus.take(whole, 2)
  assert.deepEqual(gpus.of(whole), ['1', 'GPU-x'])
  assert.equal(gpus.fits(1), false)
  assert.equal(gpus.fits(0.5), false)
  assert.equal(gpus.fits(0.1), true)
  gpus.giveBack(whole)
  gpus.giveBack(whole)
  gpus.take(other, 0.5)
  assert.deepEqual(gpus.of(other), ['1'])
  for (const task of [half, third, other]) gpus.giveBack(task)
  assert.equal(gpus.fits(3), true)
})

test('GPUs are found by what a scheduler names, else by what the drivers show', () => {
  assert.deepEqual(findGpus({ CUDA_VISIBLE_DEVICES: '2,GPU-7' }, folder), ['2', 'GPU-7'])
  assert.deepEqual(findGpus({ CUDA_VISIBLE_DEVICES: '' }, folder), [])
  assert.deepEqual(findGpus({}, folder), [])
  write('amd/sys/class/kfd/kfd/topology/nodes/0/gpu_id', '0\n')
  write('amd/sys/class/kfd/kfd/topology/nodes/1/gpu_id', '51223\n')
  assert.deepEqual(findGpus({}, join(folder, 'amd')), ['0'])
  for (const name of ['nvidia0', 'nvidia1', 'nvidiactl']) write(`nvidia/dev/${name}`, '')
  assert.deepEqual(findGpus({}, join(folder, 'nvidia')), ['0', '1'])
})

const PROGRAM = `
import { task, command, main, waitOn, waitOnFile, granted, FILE_OUT } from 'millrace'
import { readFileSync } from 'node:fs'
const allowed = () => /Cpus_allowed_list:\\s*(\\S+)/.exec(readFileSync('/proc/thread-self/status', 'utf8'))[1]
export const one = task({ name: 'one' }, () => ({ ...granted(), allowed: allowed() }))
export const two = task({ name: 'two', cpus: 2, gpus: 1 }, () => ({ ...granted(), allowed: allowed() }))
export const told = command({ name: 'told', cpus: 1, gpus: 0.5, params: [FILE_OUT], stdout: 0 }, () =>
  ['sh', '-c', 'echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS; echo "$MILLRACE_CPUS_BOUND"; echo $CUDA_VISIBLE_DEVICES; grep Cpus_allowed_list /proc/self/status'])
export const untold = command({ name: 'untold', params: [FILE_OUT], stdout: 0 }, () => ['sh', '-c', 'echo "[$OMP_NUM_THREADS$MILLRACE_GPUS]"'])
main(async () => {
  const functions = [await waitOn(one()), await waitOn(two()), await waitOn(one())]
  told('told.txt'); untold('untold.txt')
  const commands = [readFileSync(await waitOnFile('told.txt'), 'utf8'), readFileSync(await waitOnFile('untold.txt'), 'utf8')]
  console.log(JSON.stringify({ functions, commands }))
})
`

interface Seen {
  functions: { cpus: number; bound: number[] | null; gpus: string[]; allowed: string }[]
  commands: string[]
}

function run(bind: string, cpus = '2'): Seen {
  const place = mkdtempSync(join(folder, 'run-'))
  writeFileSync(join(place, 'program.mjs'), PROGRAM)
  mkdirSync(join(place, 'node_modules'))
  symlinkSync(root, join(place, 'node_modules', 'millrace'))
  const env: NodeJS.ProcessEnv = { ...process.env, CUDA_VISIBLE_DEVICES: '4,6' }
  delete env['OMP_NUM_THREADS']
  const words = ['run', 'program.mjs', '--bind', bind, '--cpus', cpus, '--progress', 'none']
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [join(root, 'bin', 'millrace.js'), ...words],
    { cwd: place, env, encoding: 'utf8' },
  )
  assert.equal(status, 0, stderr)
  return JSON.parse(stdout) as Seen
}

const linux = process.platform === 'linux' ? false : 'needs Linux'

test('with --bind all, functions and commands run on the CPUs of their lanes only', { skip: linux }, () => {
  const { functions, commands } = run('all')
  const own = ownCpus()
  for (const { bound, allowed, cpus } of functions) {
    assert.equal(bound?.length, Math.min(cpus, own.length))
    const many = bound?.length === 2 && bound[1] === (bound[0] as number) + 1
    assert.equal(allowed, many ? bound?.join('-') : bound?.join(','))
  }
  assert.deepEqual(functions[1]?.gpus, ['4'])
  const [threads, bound, gpus, allowed] = (commands[0] ?? '').trim().split('\n')
  assert.equal(threads, '1 1')
  assert.equal(gpus, '4')
  assert.equal(allowed, `Cpus_allowed_list:\t${bound}`)
})

test('with --bind off nothing is bound, and who asks for nothing is told nothing', { skip: linux }, () => {
  const { functions, commands } = run('off')
  assert.deepEqual(
    functions.map(({ cpus, bound }) => [cpus, bound]),
    [
      [1, null],
      [2, null],
      [1, null],
    ],
  )
  assert.equal(commands[1], '[]\n')
  assert.equal((commands[0] ?? '').split('\n')[1], '')
})

test('the machine description names GPUs by number or by id', () => {
  const machine = join(folder, 'machine.yaml')
  writeFileSync(machine, 'nodes:\n  - name: n\n    cpus: 1\n    gpus: [GPU-1, GPU-2]\n')
  writeFileSync(
    join(folder, 'gpus.mjs'),
    `import { task, main, waitOn, granted } from 'millrace'
export const both = task({ gpus: 2 }, () => granted().gpus)
main(async () => console.log((await waitOn(both())).join(' ')))
`,
  )
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'bin', 'millrace.js'), 'run', 'gpus.mjs', '--machine', machine, '--progress', 'none'],
    { cwd: folder, encoding: 'utf8' },
  )
  assert.equal(stdout, 'GPU-1 GPU-2\n', stderr)
  assert.ok(readFileSync(machine))
})

const SHARES = `
import { FILE_OUT, command, granted, main, task, waitOn, waitOnFile } from 'millrace'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
// Each waits for all the others: they end only if they run at the same time.
const meet = (i, n) => {
  writeFileSync('half-' + i, '')
  const end = Date.now() + 30000
  while (readdirSync('.').filter(name => name.startsWith('half-')).length < n) if (Date.now() > end) throw new Error('alone')
}
export const half = task({ name: 'half', cpus: 0.5 }, (i, n) => { meet(i, n); return granted().cpus })
export const third = command({ name: 'third', cpus: '0.34', params: [FILE_OUT], stdout: 0 }, () => ['sh', '-c', 'echo $OMP_NUM_THREADS'])
export const whole = task({ name: 'whole' }, i => i)
export const caller = task({ name: 'caller', cpus: 0.5 }, async i => (await waitOn(whole(i))) + (await waitOn(whole(1))))
export const wide = task({ name: 'wide', cpus: 2 }, () => granted().cpus)
main(async () => {
  const halves = await waitOn([0, 1, 2, 3].map(i => half(i, 4)))
  third('a.txt'); third('b.txt'); third('c.txt')
  const threads = readFileSync(await waitOnFile('c.txt'), 'utf8').trim()
  const all = []
  for (let i = 0; i < 40; i++) all.push(i % 4 === 0 ? caller(i) : i % 7 === 0 ? wide() : whole(i))
  console.log(JSON.stringify([halves, threads, (await waitOn(all)).reduce((a, b) => a + b, 0)]))
})
`

test('tasks with a share of a CPU run beside each other', { timeout: 60_000 }, () => {
  const place = mkdtempSync(join(folder, 'shares-'))
  mkdirSync(join(place, 'node_modules'))
  symlinkSync(root, join(place, 'node_modules', 'millrace'))
  writeFileSync(join(place, 'shares.mjs'), SHARES)
  const words = [join(root, 'bin', 'millrace.js'), 'run', 'shares.mjs', '--cpus', '2', '--progress', 'none']
  const { stdout, stderr } = spawnSync(process.execPath, words, {
    cwd: place,
    encoding: 'utf8',
    timeout: 50_000,
  })
  assert.equal(stdout, '[[0.5,0.5,0.5,0.5],"1",721]\n', stderr)
})
