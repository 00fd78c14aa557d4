import { constants } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import { Datum } from '../../core/data/datum.ts'
import type { FailureFacts, RunEvent } from '../../core/events.ts'
import { ioDemandOf } from '../../core/tasks/demand.ts'
import type { Definition } from '../../model/definition.ts'
import type { Workspace } from '../../stream/board/workspace.ts'
import type { Instance } from '../../stream/run/runner.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import type { Runtime } from '../runtime.ts'

/**
 * Turns the steps of a coordination file into tasks: each instance of a step is a command. Steps read and write at the
 * same time, so all must run at once. They hold no CPU: a chain that is longer than the CPUs would never end. What they
 * pass on is not known to the core: the rules of the board order their reads and writes.
 */
export class StepTasks {
  readonly instances: Instance[] = []
  readonly #runtime: Runtime
  readonly #workspace: Workspace
  readonly #file: string
  readonly #byTask = new Map<number, Instance>()

  constructor(runtime: Runtime, workspace: Workspace, file: string) {
    this.#runtime = runtime
    this.#workspace = workspace
    this.#file = file
  }

  /** `added` is called with each task before it starts. */
  submit(commands: readonly StepCommand[], added: (task: number, step: string) => void): void {
    const next = new Map<string, number>()
    for (const command of commands) {
      const { step, times = 1 } = command
      const definition = this.#definition(command)
      for (let n = 0; n < times; n++) {
        const number = next.get(step) ?? 0
        next.set(step, number + 1)
        const task = this.#runtime.submit(
          { definition, given: [], args: [number], slots: [], alone: true },
          [new Datum(null, false, false)],
          this.#runtime.main,
          this.#runtime.main.group,
          { demand: ioDemandOf(), priority: 0, label: times > 1 ? `instance=${number}` : '' },
        )
        const instance = instanceOf(command, number)
        this.instances.push(instance)
        this.#byTask.set(task.id, instance)
        added(task.id, step)
      }
    }
    this.#runtime.schedule()
  }

  /** Learns from the events of the run how each instance ended. Returns whether one has. */
  observe(event: RunEvent): boolean {
    const code =
      event.type === 'finished'
        ? 0
        : event.type === 'failed'
          ? codeOf(event.failure)
          : event.type === 'cancelled'
            ? 128 + constants.signals.SIGTERM
            : undefined
    if (code === undefined || !('task' in event)) return false
    const instance = this.#byTask.get(event.task as number)
    if (!instance) return false
    instance.code = code
    instance.ended = event.at
    return true
  }

  get running(): number {
    return this.instances.filter(({ ended }) => ended === undefined).length
  }

  #definition(command: StepCommand): Definition {
    const { step, run, cwd, env, timeout = 0 } = command
    const { dir, place } = this.#workspace
    const caller = process.cwd()
    const argv = argvOf(run, caller)
    const options = { onFailure: 'cancelSuccessors' as const }
    return {
      key: `stream#${step}`,
      name: step,
      unnamed: false,
      form: 'command',
      module: this.#file,
      params: null,
      readsOnly: false,
      returns: 0,
      stream: null,
      kind: null,
      options,
      timeout,
      variants: [{ name: step, module: '', options, run: () => argv }],
      command: {
        step,
        limits: null,
        cwd: cwd === undefined ? dir : resolve(caller, cwd),
        env: (number: unknown) => ({ MILLRACE_PLACE: place, ...env, MILLRACE_INSTANCE: String(number) }),
      },
    }
  }
}

/** A program given as ./prog is where the user is, not in the managed directory. */
function argvOf(run: StepCommand['run'], caller: string): string[] {
  if (typeof run === 'string') return ['/bin/sh', '-c', run]
  const [program = '', ...args] = run
  return [program.includes('/') && !isAbsolute(program) ? resolve(caller, program) : program, ...args]
}

const instanceOf = ({ step, run }: StepCommand, number: number): Instance => ({
  step,
  number,
  command: typeof run === 'string' ? run : run.join(' '),
  started: 0,
  ended: undefined,
  code: undefined,
  tail: [],
})

/** As a shell counts. */
function codeOf({ exitCode, signal }: FailureFacts): number {
  const number = (constants.signals as Record<string, number>)[signal ?? '']
  return exitCode ?? (number === undefined ? 1 : 128 + number)
}
