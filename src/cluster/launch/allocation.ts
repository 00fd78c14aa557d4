import { execFileSync } from 'node:child_process'
import { MillraceError } from '../../core/errors.ts'
import type { Allocated } from './node-spec.ts'

const scontrolNames = (list: string): string =>
  execFileSync('scontrol', ['show', 'hostnames', list], { encoding: 'utf8' })

/**
 * Whether a program that says nothing of nodes is to use those of the allocation that it was started in: it is not a step
 * of the job itself, nor a program that a task has started, and there is another node than this one.
 */
export function isInAllocation(env: NodeJS.ProcessEnv): boolean {
  if (!env['SLURM_JOB_ID'] || !env['SLURM_JOB_NODELIST'] || env['MILLRACE_RUN']) return false
  if (env['SLURM_STEP_ID'] !== undefined) return false
  return Number(env['SLURM_JOB_NUM_NODES'] ?? 1) > 1 || env['SLURMD_NODENAME'] === undefined
}

/** The nodes of the Slurm allocation that this process runs in, and how many CPUs it has on each. */
export function allocatedNodes(names: (list: string) => string = scontrolNames): Allocated[] {
  const list = process.env['SLURM_JOB_NODELIST'] ?? process.env['SLURM_NODELIST']
  if (!list) {
    throw new MillraceError('MR_NODES', '--nodes slurm: this is not inside a Slurm allocation', {
      hint: 'Start it by salloc or sbatch: salloc -N 2 millrace run app.ts --nodes slurm',
    })
  }
  const cpus = cpusPerNode(process.env['SLURM_JOB_CPUS_PER_NODE'] ?? '')
  const all = names(list).split('\n').filter(Boolean)
  return all.map((name, i) => ({ name, cpus: cpus[i] ?? null }))
}

/** Slurm writes 8(x2),4 for two nodes with 8 CPUs and one with 4. */
export function cpusPerNode(text: string): number[] {
  return text.split(',').flatMap(part => {
    const [, cpus, times = '1'] = /^(\d+)(?:\(x(\d+)\))?$/.exec(part) ?? []
    return cpus === undefined ? [] : Array.from({ length: Number(times) }, () => Number(cpus))
  })
}
