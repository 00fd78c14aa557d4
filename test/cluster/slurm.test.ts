import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
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
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { endDaemons, freePort } from '../../bench/cluster/daemons.ts'
import { slurmConfiguration, slurmStates } from '../../bench/cluster/own-slurm.ts'
import { bin } from '../cli/folder.ts'
import { without } from '../node/mpi-program.ts'
import { RANKS_SAID, lastSaid, mpiVariables, rankArguments } from './mpi-program.ts'
import {
  EXPECTED,
  allKilled,
  arguments_,
  folder,
  forget,
  isAlive,
  sockets,
  start,
  until,
  workers,
} from './program.ts'

const daemons = ['munged', 'slurmctld', 'slurmd'].map(name => `/usr/sbin/${name}`)
const hasSlurm = [...daemons, '/usr/bin/salloc', '/usr/bin/srun'].every(path => existsSync(path))
const skip = !hasSlurm
  ? 'Slurm is not installed here'
  : process.getuid?.() === 0
    ? false
    : 'only root can start a Slurm of its own'

const root = join(import.meta.dirname, '..', '..')
const at = (...names: string[]): string => join(folder, 'slurm', ...names)
const environment = { SLURM_CONF: at('slurm.conf') }
const started: ChildProcess[] = []

/** Two more nodes see neither this repository nor the folder of a program. */
const canHide = skip === false && spawnSync('unshare', ['-m', 'true']).status === 0
const bare = join(folder, 'bare')
mkdirSync(bare)
const names = canHide ? ['n1', 'n2', 'n3', 'n4'] : ['n1', 'n2']

const daemon = (name: string, ...words: string[]): void => {
  started.push(spawn(`/usr/sbin/${name}`, words, { stdio: 'ignore' }))
}

/** A Slurm of two nodes on this machine: a controller, two slurmd with a name each, and a munged of its own. */
before(async () => {
  if (skip !== false) return
  for (const name of ['', 'state', ...names]) mkdirSync(at(name), { recursive: true })
  for (const path of [folder, at()]) chmodSync(path, 0o755)
  writeFileSync(at('key'), randomBytes(1024), { mode: 0o400 })
  const ports = await Promise.all(['', ...names].map(() => freePort()))
  const more = canHide ? ['PartitionName=bare Nodes=n3,n4 State=UP'] : []
  writeFileSync(at('slurm.conf'), slurmConfiguration('test', at, ports, names, 2, more))
  const files = [
    `--socket=${at('munge')}`,
    `--pid-file=${at('munged.pid')}`,
    `--log-file=${at('munged.log')}`,
  ]
  daemon(
    'munged',
    '--foreground',
    '--force',
    `--key-file=${at('key')}`,
    `--seed-file=${at('seed')}`,
    ...files,
  )
  await until(() => existsSync(at('munge')))
  daemon('slurmctld', '-D', '-i', '-f', at('slurm.conf'))
  const words = (name: string): string[] => ['-D', '-f', at('slurm.conf'), '-N', name]
  for (const name of ['n1', 'n2']) daemon('slurmd', ...words(name))
  const hide = [root, bare].map(path => `mount -t tmpfs none '${path}'`).join(' && ')
  for (const name of names.slice(2)) {
    const line = `cd / && ${hide} && exec /usr/sbin/slurmd ${words(name).join(' ')}`
    started.push(spawn('unshare', ['-m', 'sh', '-c', line], { stdio: 'ignore' }))
  }
  await until(() => slurmStates(environment) === names.map(() => 'idle').join(' '))
})

after(async () => {
  await endDaemons(started)
})

const inAllocation = (mode: string): string[] =>
  ['salloc', '-Q', '-N', '2', process.execPath].concat(arguments_('slurm', mode))

for (const mpi of ['openmpi', 'mpich']) {
  test(
    `in a Slurm allocation ranks of an MPI task are on two nodes, with ${mpi}`,
    { skip: skip !== false ? skip : without(mpi), timeout: 120_000 },
    async () => {
      rmSync(join(folder, 'died'), { force: true })
      const words = [
        'salloc',
        '-Q',
        '-N',
        '2',
        '--exclusive',
        process.execPath,
        ...rankArguments('slurm', 'all'),
      ]
      const { code, text, said } = await start(words, { ...environment, ...mpiVariables(mpi) }).ended
      assert.equal(code, 0, said)
      const { clashed: _, waits: __, ...rest } = lastSaid(text)
      assert.deepEqual(rest, { ...RANKS_SAID, library: mpi })
    },
  )
}

test(
  'in a Slurm allocation a program has the results of one machine',
  { skip, timeout: 120_000 },
  async () => {
    const { code, text, said } = await start(inAllocation('all'), environment).ended
    assert.equal(code, 0, said)
    const { pids, self, ...rest } = JSON.parse(text) as Record<string, unknown>
    assert.equal(pids, 2)
    assert.equal(self, false)
    assert.deepEqual(rest, EXPECTED)
    assert.equal(readFileSync(join(folder, 'ab'), 'utf8'), 'ab')
    assert.deepEqual(readdirSync(sockets), [])
  },
)

test('in a Slurm allocation a killed agent costs nothing but time', { skip, timeout: 120_000 }, async () => {
  forget()
  const run = start(inAllocation('kill'), environment)
  await until(() => workers().length === 2, run)
  const all = workers()
  process.kill(all[0] ?? 0, 'SIGKILL')
  allKilled()
  const { code, text, said } = await run.ended
  assert.equal(code, 0, said)
  assert.deepEqual(
    JSON.parse(text),
    Array.from({ length: 60 }, (_, i) => i),
  )
  await until(() => !all.some(isAlive))
  assert.deepEqual(readdirSync(sockets), [])
})

test('in a Slurm allocation a killed coordinator leaves nothing', { skip, timeout: 120_000 }, async () => {
  forget()
  const run = start(inAllocation('kill'), environment)
  await until(() => workers().length === 2, run)
  const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(run.pid)], { encoding: 'utf8' })
  process.kill(Number(children.trim()), 'SIGKILL')
  await run.ended
  await until(() => !workers().some(isAlive))
  await until(() => readdirSync(sockets).length === 0)
})

test(
  'nodes are asked for by sbatch while work waits, and nothing is left of them',
  { skip, timeout: 120_000 },
  async () => {
    forget()
    const words = [process.execPath, ...arguments_('0..2', 'all')]
    words.splice(words.indexOf('--nodes'), 0, '--slurm', 'partition=all,time=5m')
    const own = join(folder, 'own')
    mkdirSync(own)
    const { code, text, said } = await start(words, environment, own).ended
    assert.equal(code, 0, said)
    const { pids, self, ...rest } = JSON.parse(text) as Record<string, unknown>
    assert.ok(Number(pids) >= 1)
    assert.equal(self, false)
    assert.deepEqual(rest, EXPECTED)
    assert.deepEqual(readdirSync(sockets), [])
    const queue = (): string =>
      execFileSync('squeue', ['-h'], { encoding: 'utf8', env: { ...process.env, ...environment } })
    await until(() => queue() === '')
    const kept = join(own, '.millrace')
    assert.ok(!existsSync(kept) || readdirSync(kept).every(name => !name.startsWith('agents-')))
  },
)

/** A value that is on a node only comes before that is given back. */
test('a node that is given back sends what only it has', { skip, timeout: 120_000 }, async () => {
  forget()
  const program = join(folder, 'drain.mjs')
  writeFileSync(
    program,
    `
import { appendFileSync, readFileSync } from 'node:fs'
import { task, main, waitOn, barrier } from ${JSON.stringify(pathToFileURL(join(root, 'dist', 'index.js')).href)}
const log = process.argv[2]
export const make = task({ name: 'make' }, value => {
  appendFileSync(log, process.pid + '\\n')
  return new Float64Array(100_000).fill(value)
})
const pids = () => readFileSync(log, 'utf8').trim().split('\\n').map(Number)
const isAlive = pid => {
  try { return process.kill(pid, 0) } catch { return false }
}
main(async () => {
  const values = [make(2), make(3)]
  await barrier()
  while (pids().some(isAlive)) await new Promise(resolve => setTimeout(resolve, 20))
  const [two, three] = await waitOn(values)
  console.log(JSON.stringify([two[99_999], three[0], pids().length]))
})
`,
  )
  const words = [process.execPath, bin, 'run', program, '--slurm', 'partition=all,time=5m,idle=1s']
  const more = ['--nodes', '0..1', '--no-journal', '--progress', 'plain', '--', join(folder, 'drain-log')]
  const { code, text, said } = await start([...words, ...more], environment).ended
  assert.equal(code, 0, said)
  assert.match(text, /\[2,3,2\]/, said)
})

test(
  'a partition that does not exist is refused before anything is run',
  { skip, timeout: 120_000 },
  async () => {
    const words = [process.execPath, ...arguments_('0..2', 'all')]
    words.splice(words.indexOf('--nodes'), 0, '--slurm', 'partition=nowhere')
    const { code, said } = await start(words, environment).ended
    assert.equal(code, 2)
    assert.match(said, /Slurm refused: invalid partition specified: nowhere/)
    assert.match(said, /MR_SLURM/)
    assert.deepEqual(readdirSync(sockets), [])
  },
)

test('in an allocation the nodes are found without being named', { skip, timeout: 120_000 }, async () => {
  const words = [process.execPath, ...arguments_('slurm', 'all')]
  words.splice(words.indexOf('--nodes'), 2)
  const { code, text, said } = await start(['salloc', '-N2', '-Q', ...words], environment).ended
  assert.equal(code, 0, said)
  const { pids, self, ...rest } = JSON.parse(text) as Record<string, unknown>
  assert.equal(pids, 2)
  assert.equal(self, false)
  assert.deepEqual(rest, EXPECTED)
})

test('outside of an allocation slurm is refused', { skip, timeout: 120_000 }, async () => {
  const words = [process.execPath, ...arguments_('slurm', 'all')]
  const { code, said } = await start(words, environment).ended
  assert.equal(code, 2)
  assert.match(said, /not inside a Slurm allocation[^]*MR_NODES/)
})

/** A program of TypeScript with files, in the folder that the bare nodes do not see. */
const writeBare = (): string => {
  writeFileSync(
    join(bare, 'app.ts'),
    `
import { readFileSync, writeFileSync } from 'node:fs'
import { task, command, main, barrier, FILE_IN, FILE_OUT } from 'millrace'
import { word } from './word.js'
export const write = task({ name: 'write', params: [FILE_IN, FILE_OUT] }, (from: string, to: string) => {
  writeFileSync(to, readFileSync(from, 'utf8') + word + ' ' + process.env.SLURMD_NODENAME + ' ' + import.meta.url)
})
export const copy = command({ name: 'copy', params: [FILE_IN, FILE_OUT], stdout: 1 }, from => ['cat', String(from)])
main(async () => {
  writeFileSync('given', 'given ')
  for (let i = 0; i < 4; i++) { write('given', 'out/w' + i); copy('out/w' + i, 'c' + i) }
  await barrier()
  console.log(JSON.stringify([0, 1, 2, 3].map(i => readFileSync('c' + i, 'utf8'))))
})
`,
  )
  mkdirSync(join(bare, 'node_modules'), { recursive: true })
  rmSync(join(bare, 'node_modules', 'millrace'), { force: true })
  symlinkSync(root, join(bare, 'node_modules', 'millrace'))
  writeFileSync(join(bare, 'word.ts'), "export const word = 'word'")
  return join(bare, 'app.ts')
}

const onBare = { skip: skip || (canHide ? false : 'mounts cannot be made here'), timeout: 120_000 }
for (const [how, before, after] of [
  ['of an allocation', ['salloc', '-Q', '-N2', '-pbare'], ['--nodes', 'slurm']],
  ['by sbatch', [], ['--slurm', 'partition=bare,time=5m', '--nodes', '1..2']],
  ['by sbatch, two in a job', [], ['--slurm', 'partition=bare,time=5m,block=2', '--nodes', '2']],
] as const) {
  test(
    `nodes ${how} that have nothing but Node get the package, the program and its files`,
    onBare,
    async () => {
      const program = writeBare()
      const cache = join(folder, `cache ${how}`)
      const words = [...before, process.execPath, bin, 'run', program, '--progress', 'plain', ...after]
      for (const isSent of [true, false]) {
        const packages = join(cache, 'millrace', 'packages')
        assert.equal(existsSync(packages), !isSent)
        const own = { ...environment, XDG_CACHE_HOME: cache }
        const { code, text, said } = await start(words, own, bare).ended
        assert.equal(code, 0, said)
        const seen = JSON.parse(text) as string[]
        assert.equal(seen.length, 4)
        for (const one of seen) assert.match(one, /^given word n[34] file:.*\/programs\/[^/]*\/.*\/app\.ts$/)
        assert.equal(readdirSync(packages).length, 1)
        assert.equal(readFileSync(join(bare, 'out', 'w3'), 'utf8'), seen[3])
      }
      assert.deepEqual(
        readdirSync(join(bare, '.millrace')).filter(name => name.startsWith('agents-')),
        [],
      )
    },
  )
}
