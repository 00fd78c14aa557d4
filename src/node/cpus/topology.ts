import { readFileSync, readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { listed, ownCpus } from './own-cpus.ts'

/** The CPUs that this process may use, in the order of lanes. */
export interface Topology {
  readonly cpus: readonly number[]
  /** The memory (NUMA) domain of each; null where there is only one. */
  readonly domains: readonly number[] | null
}

const SYSTEM = '/sys/devices/system'

/**
 * CPUs of one memory domain come one after the other. With `hyperThreads` false, of the CPUs that are one core only the
 * first is used. `system` is the folder that the kernel shows them in.
 */
export function readTopology(hyperThreads: boolean, allowed = ownCpus(), system = SYSTEM): Topology {
  const seen = new Set<number>()
  const kept = allowed.filter(cpu => {
    if (hyperThreads) return true
    if (seen.has(cpu)) return false
    for (const sibling of siblingsOf(cpu, system)) seen.add(sibling)
    return true
  })
  const domainOf = domains(system)
  const cpus = [...kept].sort((a, b) => (domainOf.get(a) ?? 0) - (domainOf.get(b) ?? 0) || a - b)
  const found = cpus.map(cpu => domainOf.get(cpu) ?? 0)
  return { cpus, domains: new Set(found).size > 1 ? found : null }
}

const siblingsOf = (cpu: number, system: string): number[] =>
  listed(read(`${system}/cpu/cpu${cpu}/topology/thread_siblings_list`) ?? String(cpu))

function domains(system: string): Map<number, number> {
  const found = new Map<number, number>()
  for (const name of folders(`${system}/node`)) {
    const [, number] = /^node(\d+)$/.exec(name) ?? []
    if (number === undefined) continue
    for (const cpu of listed(read(`${system}/node/${name}/cpulist`) ?? '')) found.set(cpu, Number(number))
  }
  return found
}

function folders(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return null
  }
}

/**
 * How many CPUs a run uses unless it says otherwise: those that this process is allowed to use, no more than its control
 * group gives time for, and no more than Slurm gave to the job on this node.
 */
export function usableCpus(hyperThreads: boolean, environment = process.env): number {
  const { cpus } = readTopology(hyperThreads)
  const found = cpus.length > 0 ? Math.min(cpus.length, availableParallelism()) : availableParallelism()
  const slurm = environment['SLURM_JOB_ID'] ? Number(environment['SLURM_CPUS_ON_NODE']) : NaN
  const limits = [found, quota() ?? Infinity, slurm >= 1 ? slurm : Infinity]
  return Math.max(1, Math.floor(Math.min(...limits)))
}

/** CPUs' worth of time that the control group of this process gets; null for no limit. */
export function quota(
  groups = read('/proc/self/cgroup') ?? '',
  file: (path: string) => string | null = read,
): number | null {
  let least = Infinity
  for (const line of groups.split('\n')) {
    const found = /^\d+:([^:]*):(.*)$/.exec(line)
    if (!found) continue
    const [, controllers = '', path = ''] = found
    if (controllers !== '' && !controllers.split(',').includes('cpu')) continue
    const isSecond = controllers === ''
    const root = isSecond ? '/sys/fs/cgroup' : '/sys/fs/cgroup/cpu'
    for (let at = path === '' ? '/' : path; ; at = at.slice(0, at.lastIndexOf('/')) || '/') {
      const folder = `${root}${at === '/' ? '' : at}`
      const share = isSecond
        ? /^(\d+) (\d+)/.exec(file(`${folder}/cpu.max`) ?? '')
        : pair(file(`${folder}/cpu.cfs_quota_us`), file(`${folder}/cpu.cfs_period_us`))
      if (share) least = Math.min(least, Number(share[1]) / Number(share[2]))
      if (at === '/') break
    }
  }
  return least === Infinity ? null : Math.max(1, Math.ceil(least))
}

const pair = (share: string | null, period: string | null): RegExpExecArray | null =>
  /^(\d+) (\d+)/.exec(`${share ?? ''} ${period ?? ''}`)
