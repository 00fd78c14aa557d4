import { constants } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import { Datum } from '../../core/data/datum.ts'
import type { FailureFacts, RunEvent } from '../../core/events.ts'
import { ioDemandOf } from '../../core/tasks/demand.ts'
import type { Definition } from '../../model/definition.ts'
import type { Instance } from '../../stream/run/instance.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import type { Runtime } from '../runtime.ts'
import type { Boards } from './boards.ts'

/**
 * Turns the steps of a coordination file into tasks: each instance of a step is a command. Steps read and write at the
 * same time, so all must run at once. They hold no CPU: a chain that is longer than the CPUs would never end. What they
 * pass on is not known to the core: the rules of the board order their reads and writes.
 */
export class StepTasks {
  readonly instances: Instance[] = []
  readonly #runtime: Runtime
  readonly #boards: Boards
  readonly #file: string
  readonly #byTask = new Map<number, Instance>()
  readonly #ended = new Set<string>()

  constructor(runtime: Runtime, boards: Boards, file: string) {
    this.#runtime = runtime
    this.#boards = boards
    this.#file = file
  }

  /** `added` is called with each task before it starts. */
  submit(added: (task: number, step: string) => void): void {
    const definitions = new Map<StepCommand, Definition>()
    for (const { command, number, isOneOfMany, tags } of this.#boards.instances) {
      let definition = definitions.get(command)
      if (!definition) definitions.set(command, (definition = this.#definition(command)))
      const task = this.#runtime.submit(
        { definition, given: [], args: [number], slots: [], alone: true },
        [new Datum(null, false, false)],
        this.#runtime.main,
        this.#runtime.main.group,
        {
          demand: ioDemandOf({}, 0, 0, tags),
          priority: 0,
          label: isOneOfMany ? `instance=${number}` : '',
        },
      )
      const instance = instanceOf(command, number)
      this.instances.push(instance)
      this.#byTask.set(task.id, instance)
      added(task.id, command.step)
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
    this.#ended.add(`${instance.step} ${instance.number}`)
    return true
  }

  hasEnded(step: string, number: number): boolean {
    return this.#ended.has(`${step} ${number}`)
  }

  get running(): number {
    return this.instances.filter(({ ended }) => ended === undefined).length
  }

  #definition(command: StepCommand): Definition {
    const { step, run, cwd, env, timeout = 0 } = command
    const { dir, env: given } = this.#boards
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
        env: (number: unknown) => ({ ...given, ...env, MILLRACE_INSTANCE: String(number) }),
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
