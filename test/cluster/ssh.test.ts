import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { freePort } from '../../bench/cluster/daemons.ts'
import { sshVariables, sshdConfiguration } from '../../bench/cluster/own-ssh.ts'
import { bin, makeFolder } from '../cli/folder.ts'
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
  sshSockets,
  start,
  until,
  workers,
} from './program.ts'

const SSHD = '/usr/sbin/sshd'
const hasSsh = existsSync(SSHD) && existsSync('/usr/bin/ssh')
// sshd needs this folder where it starts as root, and only root can make it.
const hasFolder = process.getuid?.() !== 0 || existsSync('/run/sshd') || canMake('/run/sshd')
const skip = hasSsh && hasFolder ? false : 'sshd is not installed here'
const node = process.execPath

function canMake(path: string): boolean {
  try {
    return hasSsh && mkdirSync(path, { recursive: true }) !== undefined
  } catch {
    return false
  }
}

let environment: NodeJS.ProcessEnv = {}
const servers: ReturnType<typeof spawn>[] = []
const at = (name: string): string => join(folder, name)

before(async () => {
  if (skip !== false) return
  for (const name of ['host', 'key']) {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)])
  }
  environment = await startServer([])
})

/** Gives the variables with which ssh reaches it. */
async function startServer(more: readonly string[]): Promise<NodeJS.ProcessEnv> {
  const port = await freePort()
  const file = at(`sshd${port}.conf`)
  writeFileSync(file, sshdConfiguration(at, port, more))
  const server = spawn(SSHD, ['-D', '-e', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] })
  servers.push(server)
  let said = ''
  server.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await until(() => said.includes('Server listening') || server.exitCode !== null)
  assert.equal(server.exitCode, null, said)
  return sshVariables(at, port)
}

after(() => {
  for (const server of servers) server.kill()
})

/** The ssh that the run has started for a node, by the name of its socket there. */
function sshOf(run: number, index: number): number {
  const list = execFileSync('ps', ['-eo', 'pid,ppid,args'], { encoding: 'utf8' })
  const lines = list.split('\n').map(line => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [])
  const found = lines.find(
    ([, , parent, words = '']) =>
      Number(parent) === run && words.startsWith('ssh ') && words.includes(`-${index}:`),
  )
  return Number(found?.[1])
}

/** Nothing is left in /tmp by these runs. */
async function nothingIsLeft(known: readonly string[]): Promise<void> {
  // tsx keeps what it has compiled.
  await until(() => readdirSync(sockets).every(name => name.startsWith('tsx-')))
  await until(() => sshSockets().every(name => known.includes(name)))
}

test('over ssh a program has the results of one machine', { skip, timeout: 120_000 }, async () => {
  const known = sshSockets()
  const words = [node, ...arguments_('ssh:127.0.0.1:1,localhost:1', 'all')]
  const { code, text, said } = await start(words, environment).ended
  assert.equal(code, 0, said)
  const { pids, self, ...rest } = JSON.parse(text) as Record<string, unknown>
  assert.equal(pids, 2)
  assert.equal(self, false)
  assert.deepEqual(rest, EXPECTED)
  assert.equal(readFileSync(join(folder, 'ab'), 'utf8'), 'ab')
  await nothingIsLeft(known)
})

for (const mpi of ['openmpi', 'mpich']) {
  test(
    `over ssh ranks of an MPI task are on two hosts, with ${mpi}`,
    { skip: skip !== false ? skip : without(mpi), timeout: 120_000 },
    async () => {
      rmSync(join(folder, 'died'), { force: true })
      const known = sshSockets()
      const words = [node, ...rankArguments('ssh:127.0.0.1:2,localhost:2', 'all')]
      const { code, text, said } = await start(words, { ...environment, ...mpiVariables(mpi) }).ended
      assert.equal(code, 0, said)
      const { clashed: _, waits: __, ...rest } = lastSaid(text)
      assert.deepEqual(rest, { ...RANKS_SAID, library: mpi })
      await nothingIsLeft(known)
    },
  )
}

test(
  'over ssh an agent and an ssh that are killed cost nothing but time',
  { skip, timeout: 120_000 },
  async () => {
    const known = sshSockets()
    forget()
    const hosts = 'ssh:127.0.0.1:1,localhost:1,127.0.0.1:1'
    const run = start([node, ...arguments_(hosts, 'kill')], environment)
    await until(() => workers().length === 3, run)
    const all = workers()
    const ssh = sshOf(run.pid, 0)
    assert.ok(ssh > 0)
    // One of the three is that of the ssh; which one does not matter.
    process.kill(ssh, 'SIGKILL')
    await until(() => all.filter(isAlive).length === 2)
    process.kill(all.find(isAlive) ?? 0, 'SIGKILL')
    allKilled()
    const { code, text, said } = await run.ended
    assert.equal(code, 0, said)
    assert.deepEqual(
      JSON.parse(text),
      Array.from({ length: 60 }, (_, i) => i),
    )
    await until(() => !all.some(isAlive))
    await nothingIsLeft(known)
  },
)

test('over ssh a coordinator that is killed leaves nothing', { skip, timeout: 120_000 }, async () => {
  const known = sshSockets()
  forget()
  const run = start([node, ...arguments_('ssh:127.0.0.1:1,localhost:1', 'kill')], environment)
  await until(() => workers().length === 2, run)
  const connections = [0, 1].map(index => sshOf(run.pid, index))
  process.kill(run.pid, 'SIGKILL')
  await until(() => ![...workers(), ...connections].some(isAlive))
  await nothingIsLeft(known)
})

test('a host that cannot be reached is named', { skip, timeout: 120_000 }, async () => {
  const known = sshSockets()
  const wrong = environment['MILLRACE_SSH_OPTIONS']?.replace(/-i \S+/, '-i /dev/null')
  const words = [node, ...arguments_('ssh:127.0.0.1:1', 'all')]
  const { code, said } = await start(words, { MILLRACE_SSH_OPTIONS: wrong, SSH_AUTH_SOCK: '' }).ended
  assert.equal(code, 2)
  assert.match(said, /the agent of node 127\.0\.0\.1 did not start: .*Permission denied/)
  await nothingIsLeft(known)
})

const canHide = spawnSync('unshare', ['-m', 'true']).status === 0
test(
  'a host with nothing but Node gets the package, the program and its files',
  { skip: skip || (canHide ? false : 'mounts cannot be made here'), timeout: 120_000 },
  async () => {
    const known = sshSockets()
    const own = makeFolder({
      'app.ts': `
import { readFileSync, writeFileSync } from 'node:fs'
import { task, command, main, barrier, FILE_IN, FILE_OUT } from 'millrace'
import { word } from './lib/word.js'
export const write = task({ name: 'write', params: [FILE_IN, FILE_OUT] }, (from: string, to: string) => {
  writeFileSync(to, readFileSync(from, 'utf8') + word + ' ' + import.meta.url)
})
export const copy = command({ name: 'copy', params: [FILE_IN, FILE_OUT], stdout: 1 }, from => ['cat', String(from)])
main(async () => {
  writeFileSync('given', 'given ')
  for (let i = 0; i < 4; i++) { write('given', 'out/w' + i); copy('out/w' + i, 'c' + i) }
  await barrier()
  console.log(JSON.stringify([0, 1, 2, 3].map(i => readFileSync('c' + i, 'utf8'))))
})
`,
      'lib/word.ts': "export const word = 'word'",
    })
    const cache = mkdtempSync(join(tmpdir(), 'millrace-host-'))
    after(() => rmSync(cache, { recursive: true, force: true }))
    // Logins there see neither this repository nor the folder of the program.
    const hidden = [join(import.meta.dirname, '..', '..'), dirname(own)]
    const hide = hidden.map(path => `mount -t tmpfs none '${path}'`).join(' && ')
    writeFileSync(at('login'), `cd / && ${hide} && exec sh -c "$SSH_ORIGINAL_COMMAND"`)
    const apart = await startServer([
      `ForceCommand exec unshare -m sh ${at('login')}`,
      `SetEnv XDG_CACHE_HOME=${cache}`,
    ])
    const words = [
      node,
      bin,
      'run',
      'app.ts',
      '--nodes',
      'ssh:127.0.0.1:1,localhost:1',
      '--progress',
      'plain',
    ]
    for (const isSent of [true, false]) {
      const packages = join(cache, 'millrace', 'packages')
      assert.equal(existsSync(packages), !isSent)
      const { code, text, said } = await start(words, apart, own).ended
      assert.equal(code, 0, said)
      const seen = JSON.parse(text) as string[]
      assert.equal(seen.length, 4)
      for (const one of seen) assert.match(one, /^given word file:.*\/programs\/[^/]*\/.*\/app\.ts$/)
      assert.equal(readdirSync(packages).length, 1)
      assert.equal(readFileSync(join(own, 'out', 'w3'), 'utf8'), seen[3])
    }
    await nothingIsLeft(known)
    assert.deepEqual(
      readdirSync(tmpdir()).filter(name => name.startsWith('millrace-package-')),
      [],
    )
  },
)
