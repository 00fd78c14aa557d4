import { Datum } from '../../core/data/datum.ts'
import type { AccessRequest } from '../../core/engine.ts'
import { MillraceError } from '../../core/errors.ts'
import { demandOf, roundMemory } from '../../core/tasks/demand.ts'
import { tidyLabel } from '../../core/tasks/label.ts'
import type { Platform } from '../machine/platform.ts'
import type { Simulation } from '../simulation.ts'
import type { WfInstance, WfTask } from './wfformat.ts'
import { inputFile } from './workload.ts'
import type { Workload } from './workload.ts'

/**
 * Submits all tasks of a workflow instance at once, each after those that it needs. A task takes the time that was recorded;
 * with `splitTime` it computes for the share of it in which it used its CPUs, and the models of storage add the rest.
 */
export function wfWorkload(instance: WfInstance, splitTime = false): Workload {
  return {
    name: instance.name,
    begin(simulation) {
      const files = new Map<string, Datum>()
      /** What stands for a task's end, for those that wait for it without reading a file of it. */
      const ends = new Map<string, Datum>()
      const makers = new Map<string, string>()
      for (const { id, writes } of instance.tasks) for (const file of writes) makers.set(file, id)
      const waitedFor = new Set<string>()
      for (const task of instance.tasks) for (const id of bareParents(task, makers)) waitedFor.add(id)
      let inputs = 0
      const find = (name: string): Datum => {
        let file = files.get(name)
        if (!file) {
          const isMade = makers.has(name)
          const bytes = instance.files.get(name) ?? 0
          file = isMade
            ? new Datum(name, false, false)
            : inputFile(simulation, new Datum(name), bytes, inputs++)
          files.set(name, file)
        }
        return file
      }
      for (const task of instance.tasks) {
        const accesses: AccessRequest[] = []
        const bytes: number[] = []
        const add = (datum: Datum, mode: 'in' | 'out', size: number): void => {
          accesses.push({ datum, mode })
          bytes.push(size)
        }
        for (const file of task.reads) add(find(file), 'in', instance.files.get(file) ?? 0)
        for (const file of task.writes) add(find(file), 'out', instance.files.get(file) ?? 0)
        for (const id of bareParents(task, makers)) add(ends.get(id) as Datum, 'in', 0)
        if (waitedFor.has(task.id)) {
          const end = new Datum(null, false, false)
          ends.set(task.id, end)
          add(end, 'out', 0)
        }
        submit(simulation, task, accesses, bytes, splitTime)
      }
    },
  }
}

/** The machines that it was recorded on; null where the file does not say. */
export function wfPlatform({ machines }: WfInstance): Platform | null {
  if (machines.length === 0) return null
  return { nodes: machines.map(machine => ({ ...machine, tags: [] })) }
}

/** Parents of which it reads nothing. */
function bareParents({ parents, reads }: WfTask, makers: ReadonlyMap<string, string>): string[] {
  if (parents.length === 0) return []
  const readFrom = new Set(reads.map(file => makers.get(file)))
  return parents.filter(id => !readFrom.has(id))
}

function submit(
  simulation: Simulation,
  task: WfTask,
  accesses: AccessRequest[],
  bytes: number[],
  splitTime: boolean,
): void {
  const { kind, cpus, memory, seconds, share, place, id } = task
  const compute = 1000 * seconds * (splitTime ? share : 1)
  try {
    simulation.submit(
      {
        kind: simulation.kind(kind),
        demand: demandOf(cpus, roundMemory(memory), []),
        label: tidyLabel(id),
      },
      accesses,
      { compute, bytes, isWhole: !splitTime },
    )
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'MR_CONSTRAINT') throw error
    throw new MillraceError('MR_CONSTRAINT', `${place}: '${id}' does not fit: ${error.shortMessage}`, {
      hint: 'Give a node of the platform as much, or change what the task asks for there.',
      cause: error,
    })
  }
}
