import { join } from 'node:path'
import { pathIn } from '../../core/data/datum.ts'
import type { Access } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import { SlotArgument } from '../../model/capture/call.ts'
import { NOTHING, Stored } from '../../model/encoding/stored.ts'
import { decodeStored } from '../../node/decode-stored.ts'
import { jobOf } from '../../node/job.ts'
import type { TaskModules } from '../../node/threads/modules.ts'
import { declaredIn } from './surroundings.ts'

/**
 * What a task is started with beside its arguments. A command: its functions may use more than their arguments, such as the number of CPUs. Files are named
 * by the paths where they will be. Below `root` these are relative, so that they stay the same when the folder moves.
 */
export function commandLine(task: Task, root: string, modules: TaskModules): string {
  const { definition } = jobOf(task)
  const { command: form, variants } = definition
  // The number of ranks decides how work is cut, and in which order numbers are added.
  if (!form) return definition.mpi ? `${JSON.stringify([task.demand.cpus, definition.mpi])},` : ''
  const evaluate = (value: unknown, args: readonly unknown[]): unknown =>
    typeof value === 'function' ? (value as (...given: readonly unknown[]) => unknown)(...args) : value
  try {
    const args = argumentsOf(task, modules)
    const added = declaredIn(evaluate(form.env, args))
    const { stdin, stdout, stderr, exitCodes } = form
    const line = [evaluate(variants[0]?.run, args), evaluate(form.cwd, args), added]
    line.push(stdin, stdout, stderr, exitCodes, form.mpi && [task.demand.cpus, form.mpi])
    return `${JSON.stringify(line).replaceAll(`${root}/`, '')},`
  } catch {
    // The attempt says what is wrong.
    return ''
  }
}

function argumentsOf(task: Task, modules: TaskModules): unknown[] {
  const { args, slots } = jobOf(task)
  const values = slots.map(({ kind, initial }, i) => {
    const access = task.accesses[i] as Access
    if (kind !== 'value') return pathIn(access)
    const kept = access.read?.value ?? initial
    if (kept instanceof Stored) return decodeStored(kept, [], modules)
    return kept === NOTHING ? undefined : kept
  })
  return args.map(argument => {
    if (argument instanceof SlotArgument) {
      const value = values[argument.slot]
      return argument.within === null ? value : join(value as string, argument.within)
    }
    return argument instanceof Stored ? decodeStored(argument, values, modules) : argument
  })
}
