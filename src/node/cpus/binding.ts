import type { Node } from '../../core/schedule/machine.ts'
import type { Task } from '../../core/tasks/task.ts'
import { jobOf } from '../job.ts'
import { readTopology } from './topology.ts'

/** Which tasks are bound to the CPUs behind their lanes: those with several CPUs, all, or none. */
export type BindMode = 'wide' | 'all' | 'off'

export interface BindSettings {
  readonly mode: BindMode
  /** CPUs that are one core count as several. */
  readonly hyperThreads: boolean
}

/** Says which CPUs and GPUs of this machine a task has. */
export class Binding {
  readonly #machine: Node
  readonly #mode: BindMode
  /** By lane. */
  readonly #cpus: readonly number[]

  /** `isHere`: the node is the machine that this process runs on. */
  constructor(machine: Node, { mode, hyperThreads }: BindSettings, isHere: boolean) {
    this.#machine = machine
    this.#mode = isHere ? mode : 'off'
    this.#cpus = this.#mode === 'off' ? [] : readTopology(hyperThreads).cpus
  }

  /** It may be bound; asked for each task, and most are not. */
  concerns(task: Task): boolean {
    if (this.#mode === 'off' || task.demand.io) return false
    return this.#mode === 'all' || task.attemptDemand.cpus > 1
  }

  /** The CPUs to bind it to; null for none. For an I/O task, those near its device. */
  cpusOf(task: Task): readonly number[] | null {
    if (task.demand.io) return task.io?.device?.cpus ?? null
    if (this.#mode === 'off') return null
    const cpus = this.#cpus
    const held = this.lanesOf(task)
    if (this.#mode === 'all') return held.flatMap(lane => cpus[lane % cpus.length] ?? [])
    // Where there are more lanes than CPUs, and for a task that has all of them, there is nothing to keep apart.
    if (held.length < 2 || held.length >= cpus.length || this.#machine.cpus > cpus.length) return null
    return held.flatMap(lane => cpus[lane] ?? [])
  }

  /** Its own lane first. */
  lanesOf(task: Task): number[] {
    const { lanes } = this.#machine
    const others = lanes.filter(lane => lane.lentTo === task).map(({ index }) => index)
    return [task.lane, ...others]
  }

  gpusOf(task: Task): readonly string[] {
    return this.#machine.gpus.of(task)
  }

  /** Variables that say what a program has; null for the many that asked for nothing. */
  variablesOf(task: Task): Record<string, string> | null {
    const { demand } = task
    const { cpus } = task.attemptDemand
    const gpus = demand.gpus > 0 ? this.gpusOf(task) : null
    const bound = this.cpusOf(task)
    const isAsked = !demand.io && (cpus > 1 || jobOf(task).definition.options.cpus !== undefined)
    if (!isAsked && !gpus && !bound) return null
    return {
      ...(isAsked ? threadVariables(cpus) : {}),
      ...(bound ? { MILLRACE_CPUS_BOUND: bound.join(',') } : {}),
      ...(gpus ? gpuVariables(gpus) : {}),
    }
  }
}

/** What libraries look at to know how many threads to start. */
export function threadVariables(count: number): Record<string, string> {
  const threads = String(Math.max(1, count))
  return { OMP_NUM_THREADS: threads, OPENBLAS_NUM_THREADS: threads, MKL_NUM_THREADS: threads }
}

/** AMD's libraries also read the variable of NVIDIA's, and then count within what theirs has left: only one is set. */
function gpuVariables(ids: readonly string[]): Record<string, string> {
  const list = ids.join(',')
  const own = isAmd() ? { ROCR_VISIBLE_DEVICES: list } : { CUDA_VISIBLE_DEVICES: list }
  return { ...own, MILLRACE_GPUS: list }
}

const isAmd = (): boolean =>
  process.env['CUDA_VISIBLE_DEVICES'] === undefined &&
  process.getBuiltinModule('node:fs').existsSync('/dev/kfd')
