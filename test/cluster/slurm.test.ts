import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { EXPECTED, arguments_, folder, isAlive, sockets, start, until, workers } from './program.ts'

const daemons = ['munged', 'slurmctld', 'slurmd'].map(name => `/usr/sbin/${name}`)
const hasSlurm = [...daemons, '/usr/bin/salloc', '/usr/bin/srun'].every(path => existsSync(path))
const skip = !hasSlurm
  ? 'Slurm is not installed here'
  : process.getuid?.() === 0
    ? false
    : 'only root can start a Slurm of its own'

const at = (...names: string[]): string => join(folder, 'slurm', ...names)
const environment = { SLURM_CONF: at('slurm.conf') }
const started: ChildProcess[] = []

const freePort = (): Promise<number> =>
  new Promise(resolve => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })

const daemon = (name: string, ...words: string[]): void => {
  started.push(spawn(`/usr/sbin/${name}`, words, { stdio: 'ignore' }))
}

/** A Slurm of two nodes on this machine: a controller, two slurmd with a name each, and a munged of its own. */
before(async () => {
  if (skip !== false) return
  for (const name of ['', 'state', 'n1', 'n2']) mkdirSync(at(name), { recursive: true })
  for (const path of [folder, at()]) chmodSync(path, 0o755)
  writeFileSync(at('key'), randomBytes(1024), { mode: 0o400 })
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const settings = {
    ClusterName: 'test',
    SlurmctldHost: `${hostname()}(127.0.0.1)`,
    SlurmctldPort: ports[0],
    SlurmUser: 'root',
    AuthType: 'auth/munge',
    AuthInfo: `socket=${at('munge')}`,
    CredType: 'cred/munge',
    StateSaveLocation: at('state'),
    SlurmdSpoolDir: at('%n'),
    SlurmctldPidFile: at('slurmctld.pid'),
    SlurmdPidFile: at('%n.pid'),
    SlurmctldLogFile: at('slurmctld.log'),
    SlurmdLogFile: at('%n.log'),
    ProctrackType: 'proctrack/linuxproc',
    TaskPlugin: 'task/none',
    MpiDefault: 'none',
    SelectType: 'select/cons_tres',
    SelectTypeParameters: 'CR_Core',
    SlurmdParameters: 'config_overrides',
    KillWait: 2,
  }
  const host = `NodeHostname=${hostname()} NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000`
  const lines = [
    ...Object.entries(settings).map(([name, value]) => `${name}=${value}`),
    `NodeName=n1 Port=${ports[1]} ${host}`,
    `NodeName=n2 Port=${ports[2]} ${host}`,
    'PartitionName=all Nodes=n1,n2 Default=YES State=UP',
  ]
  writeFileSync(at('slurm.conf'), `${lines.join('\n')}\n`)
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
  for (const name of ['n1', 'n2']) daemon('slurmd', '-D', '-f', at('slurm.conf'), '-N', name)
  await until(() => states() === 'idle idle')
})

after(async () => {
  const gone = started.map(child => new Promise(resolve => child.on('exit', resolve)))
  for (const child of started.toReversed()) child.kill()
  await Promise.all(gone)
})

function states(): string {
  const env = { ...process.env, ...environment }
  try {
    const text = execFileSync('sinfo', ['-h', '-N', '-o', '%T'], { encoding: 'utf8', env, stdio: 'pipe' })
    return text.trim().split('\n').join(' ')
  } catch {
    return ''
  }
}

const inAllocation = (mode: string): string[] =>
  ['salloc', '-Q', '-N', '2', process.execPath].concat(arguments_('slurm', mode))

test(
  'in a Slurm allocation a program has the results of one machine',
  { skip, timeout: 60_000 },
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

test('in a Slurm allocation a killed agent costs nothing but time', { skip, timeout: 60_000 }, async () => {
  rmSync(join(folder, 'log'), { force: true })
  const run = start(inAllocation('kill'), environment)
  await until(() => workers().length === 2)
  const all = workers()
  process.kill(all[0] ?? 0, 'SIGKILL')
  const { code, text, said } = await run.ended
  assert.equal(code, 0, said)
  assert.deepEqual(
    JSON.parse(text),
    Array.from({ length: 60 }, (_, i) => i),
  )
  await until(() => !all.some(isAlive))
  assert.deepEqual(readdirSync(sockets), [])
})

test('in a Slurm allocation a killed coordinator leaves nothing', { skip, timeout: 60_000 }, async () => {
  rmSync(join(folder, 'log'), { force: true })
  const run = start(inAllocation('kill'), environment)
  await until(() => workers().length === 2)
  const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(run.pid)], { encoding: 'utf8' })
  process.kill(Number(children.trim()), 'SIGKILL')
  await run.ended
  await until(() => !workers().some(isAlive))
  await until(() => readdirSync(sockets).length === 0)
})

test(
  'nodes are asked for by sbatch while work waits, and nothing is left of them',
  { skip, timeout: 90_000 },
  async () => {
    rmSync(join(folder, 'log'), { force: true })
    const words = [process.execPath, ...arguments_('0..2', 'all')]
    words.splice(words.indexOf('--nodes'), 0, '--slurm', 'partition=all,time=5m')
    const { code, text, said } = await start(words, environment).ended
    assert.equal(code, 0, said)
    const { pids, self, ...rest } = JSON.parse(text) as Record<string, unknown>
    assert.ok(Number(pids) >= 1)
    assert.equal(self, false)
    assert.deepEqual(rest, EXPECTED)
    assert.deepEqual(readdirSync(sockets), [])
    const queue = (): string =>
      execFileSync('squeue', ['-h'], { encoding: 'utf8', env: { ...process.env, ...environment } })
    await until(() => queue() === '')
    assert.ok(!existsSync('.millrace') || readdirSync('.millrace').every(name => !name.startsWith('agents-')))
  },
)

test(
  'a partition that does not exist is refused before anything is run',
  { skip, timeout: 60_000 },
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

test('in an allocation the nodes are found without being named', { skip, timeout: 90_000 }, async () => {
  const words = [process.execPath, ...arguments_('slurm', 'all')]
  words.splice(words.indexOf('--nodes'), 2)
  const { code, text, said } = await start(['salloc', '-N2', '-Q', ...words], environment).ended
  assert.equal(code, 0, said)
  const { pids, self, ...rest } = JSON.parse(text) as Record<string, unknown>
  assert.equal(pids, 2)
  assert.equal(self, false)
  assert.deepEqual(rest, EXPECTED)
})

test('outside of an allocation slurm is refused', { skip, timeout: 60_000 }, async () => {
  const words = [process.execPath, ...arguments_('slurm', 'all')]
  const { code, said } = await start(words, environment).ended
  assert.equal(code, 2)
  assert.match(said, /not inside a Slurm allocation[^]*MR_NODES/)
})
