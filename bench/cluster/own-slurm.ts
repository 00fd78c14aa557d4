import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { endDaemons, freePort, until } from './daemons.ts'

const NEEDED = [
  '/usr/sbin/munged',
  '/usr/sbin/slurmctld',
  '/usr/sbin/slurmd',
  '/usr/bin/salloc',
  '/usr/bin/srun',
]
const NODES = ['n1', 'n2']

/** Why there can be none here; undefined when there can. */
export const slurmMissing = !NEEDED.every(path => existsSync(path))
  ? 'Slurm is not installed here'
  : process.getuid?.() === 0
    ? undefined
    : 'only root can start a Slurm of its own'

/** Gives `use` the variables with which a Slurm of two nodes on this machine is reached, each with one CPU. */
export async function withSlurm<T>(use: (environment: Record<string, string>) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-slurm-'))
  const at = (name: string): string => join(folder, name)
  const environment = { SLURM_CONF: at('slurm.conf') }
  const daemons: ChildProcess[] = []
  const start = (name: string, ...words: string[]): void => {
    daemons.push(spawn(`/usr/sbin/${name}`, words, { stdio: 'ignore' }))
  }
  chmodSync(folder, 0o755)
  for (const name of ['state', ...NODES]) mkdirSync(at(name))
  writeFileSync(at('key'), randomBytes(1024), { mode: 0o400 })
  const ports = [await freePort(), await freePort(), await freePort()]
  writeFileSync(at('slurm.conf'), slurmConfiguration('bench', at, ports, NODES, 1))
  try {
    const files = [
      'socket=munge',
      'pid-file=munged.pid',
      'log-file=munged.log',
      'key-file=key',
      'seed-file=seed',
    ]
    const words = files.map(file => `--${file.replace('=', `=${folder}/`)}`)
    start('munged', '--foreground', '--force', ...words)
    await until(() => existsSync(at('munge')), 'munged')
    start('slurmctld', '-D', '-i', '-f', at('slurm.conf'))
    for (const name of NODES) start('slurmd', '-D', '-f', at('slurm.conf'), '-N', name)
    await until(() => slurmStates(environment) === 'idle idle', 'Slurm')
    return await use(environment)
  } finally {
    await endDaemons(daemons)
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * The text of `slurm.conf` for nodes on this machine, each with this many CPUs, and its own port behind that of the controller. The
 * first two are the partition `all`. `more`: further lines.
 */
export function slurmConfiguration(
  cluster: string,
  at: (name: string) => string,
  ports: readonly number[],
  nodes: readonly string[],
  cpus: number,
  more: readonly string[] = [],
): string {
  const all = {
    ClusterName: cluster,
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
  const host = `NodeHostname=${hostname()} NodeAddr=127.0.0.1 CPUs=${cpus} RealMemory=1000`
  const lines = [
    ...Object.entries(all).map(([name, value]) => `${name}=${value}`),
    ...nodes.map((name, i) => `NodeName=${name} Port=${ports[i + 1]} ${host}`),
    'PartitionName=all Nodes=n1,n2 Default=YES State=UP',
    ...more,
  ]
  return `${lines.join('\n')}\n`
}

/** The states of the nodes, with blanks between them; nothing where the controller does not answer. */
export function slurmStates(environment: NodeJS.ProcessEnv): string {
  try {
    const env = { ...process.env, ...environment }
    const text = execFileSync('sinfo', ['-h', '-N', '-o', '%T'], { encoding: 'utf8', env, stdio: 'pipe' })
    return text.trim().split('\n').join(' ')
  } catch {
    return ''
  }
}
