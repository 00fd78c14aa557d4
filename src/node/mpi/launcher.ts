import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import type { Task } from '../../core/tasks/task.ts'
import { threadVariables } from '../cpus/binding.ts'

export type MpiKind = 'openmpi' | 'mpich' | 'other'

/** The MPI of this machine: how its programs are compiled and started. */
export interface Mpi {
  readonly compiler: string | null
  readonly launcher: readonly string[]
  readonly kind: MpiKind
}

let found: Mpi | null = null

/**
 * MILLRACE_MPIRUN and MILLRACE_MPICC say which; else `mpirun` and `mpicc`, and what fits to the one that is given:
 * mpirun.mpich to mpicc.mpich.
 */
export function findMpi(): Mpi {
  if (found) return found
  const compiler = process.env['MILLRACE_MPICC'] ?? null
  const given = process.env['MILLRACE_MPIRUN']?.split(' ').filter(Boolean)
  const suffix =
    /mpicc(\.\w+)$/.exec(compiler ?? '')?.[1] ?? /mpi(?:run|exec)(\.\w+)$/.exec(given?.[0] ?? '')?.[1] ?? ''
  const launcher = given ?? [onPath(`mpirun${suffix}`) ?? onPath(`mpiexec${suffix}`) ?? '']
  const [program = ''] = launcher
  if (program === '' || !onPath(program)) {
    const name = given ? `'${given[0]}' (MILLRACE_MPIRUN)` : 'mpirun'
    throw new MillraceError('MR_MPI', `there is no ${name} on this machine`)
  }
  // Loaded when it is used: programs without MPI do not wait for it.
  const { spawnSync } = process.getBuiltinModule('node:child_process')
  const said = spawnSync(program, ['--version'], { encoding: 'utf8', timeout: 30_000 })
  const text = `${said.stdout}${said.stderr}`
  const kind = /Open MPI|open-mpi|OpenRTE|prte/i.test(text)
    ? 'openmpi'
    : /HYDRA|MPICH/i.test(text)
      ? 'mpich'
      : 'other'
  found = { compiler: compiler ?? onPath(`mpicc${suffix}`) ?? onPath('mpicc'), launcher, kind }
  return found
}

function onPath(name: string): string | null {
  const folders = name.includes('/') ? [''] : (process.env['PATH'] ?? '').split(delimiter)
  for (const folder of folders) {
    const path = folder === '' ? name : join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // The next one.
    }
  }
  return null
}

type Launcher = Pick<Mpi, 'launcher' | 'kind'>

/** The words before those of the program; `isKept`: for ranks that are kept. We bind the ranks ourselves, and start no more than there are CPUs. */
export function launchWords({ launcher, kind }: Launcher, processes: number, isKept = false): string[] {
  const words = [...launcher, '-n', String(processes)]
  if (kind === 'openmpi') {
    words.push('--oversubscribe', '--bind-to', 'none')
    // All ranks are on this machine: looking for networks takes most of the time of starting.
    if (isKept) words.push('--quiet', '--mca', 'pml', 'ob1', '--mca', 'btl', 'self,vader')
  }
  return words
}

/** The name of a site for a launcher. It must not be that of a machine: a launcher starts processes on its own one by itself. */
const hostName = (site: number): string => `millrace-site-${site}`

export const siteOf = (host: string): number => Number(/^millrace-site-(\d+)$/.exec(host)?.[1] ?? -1)

/** The host file of a launcher: the sites, and the number of ranks on each. */
export const hostFile = (kind: MpiKind, counts: readonly number[]): string =>
  counts
    .map((count, i) => (kind === 'openmpi' ? `${hostName(i)} slots=${count}\n` : `${hostName(i)}:${count}\n`))
    .join('')

/** The words that start ranks on several sites: the launcher asks the starter for a process on each of them. */
export function launchWordsOver(
  { launcher, kind, starter }: Launcher & { readonly starter: string },
  processes: number,
  hosts: string,
  isOneMachine: boolean,
): string[] {
  const words = [...launcher]
  if (kind === 'openmpi') {
    words.push('--hostfile', hosts, '--map-by', 'slot', '--oversubscribe', '--bind-to', 'none', '--wdir', '/')
    for (const [name, value] of [
      ['plm', 'rsh'],
      ['plm_rsh_agent', starter],
      ['plm_rsh_no_tree_spawn', '1'],
      // Otherwise they leave their process group.
      ['orte_leave_session_attached', '1'],
    ] as const) {
      words.push('--mca', name, value)
    }
    // The memory of two sites on one machine gets mixed up there: ranks crash.
    if (isOneMachine) words.push('--mca', 'btl', 'self,tcp')
  } else {
    words.push('-f', hosts, '-launcher', 'rsh', '-launcher-exec', starter, '-genvnone', '-wdir', '/')
  }
  // Each site has a path of its own to Node and to what a rank runs.
  return [...words, '-n', String(processes), '/bin/sh', '-c', 'eval "exec $MILLRACE_RANK_COMMAND"']
}

/** Open MPI runs for root only if two variables allow it. */
export function launchVariables(nodes: readonly string[]): Record<string, string> {
  return {
    OMPI_ALLOW_RUN_AS_ROOT: '1',
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
    PRTE_ALLOW_RUN_AS_ROOT: '1',
    PRTE_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
    // Without it, a rank that waits keeps others from its CPU: on a busy machine, a task took 25 times as long.
    OMPI_MCA_mpi_yield_when_idle: process.env['OMPI_MCA_mpi_yield_when_idle'] ?? '1',
    MILLRACE_HOSTS: nodes.join(','),
    MILLRACE_NUM_NODES: String(nodes.length),
  }
}

/**
 * We say where ranks are. Launchers that see an allocation of a scheduler start them by that instead, on any
 * of its nodes.
 */
export const withoutScheduler = (environment: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(environment).filter(([name]) => !/^(?:SLURM_|PMI_|PMIX_|PBS_NODEFILE$|LSB_)/.test(name)),
  )

/** What goes before the words of an MPI program, and into its environment. */
export function mpiLaunch(
  { attemptDemand }: Task,
  cpus: number,
  node: string,
): { words: string[]; variables: Record<string, string> } {
  const processes = attemptDemand.cpus / cpus
  const variables = { ...launchVariables([node]), ...threadVariables(cpus) }
  return { words: launchWords(findMpi(), processes), variables }
}
