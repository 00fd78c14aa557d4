import { existsSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Datum } from '../../core/data/datum.ts'
import type { Version } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import type { Task } from '../../core/tasks/task.ts'
import { Pattern } from '../../flow/language/pattern.ts'
import type { Rule } from '../../flow/language/registry.ts'
import { ruleDefinition } from '../../flow/run/rule-definition.ts'
import { demandText, demandVaries, demandsOf } from '../../flow/run/rule-demand.ts'
import type { FlowState } from '../../flow/run/run-state.ts'
import {
  NO_FILE,
  asArgument,
  callAction,
  isThenable,
  placeOf,
  valueFor,
  wildcardLabel,
} from '../../flow/plan/work.ts'
import type { Work } from '../../flow/plan/work.ts'
import { isCommand } from '../../flow/shell/sh.ts'
import { shellArgv } from '../../flow/shell/argv.ts'
import { SlotArgument } from '../../model/capture/call.ts'
import type { Argument, Slot } from '../../model/capture/call.ts'
import type { Definition } from '../../model/definition.ts'
import { buildDemand } from '../../model/options/demand.ts'
import type { StreamRules } from '../../model/stream.ts'
import { evaluateTimeout } from '../../model/options/options.ts'
import { forgetSlots, putSlot } from '../../model/capture/slots.ts'
import type { Argv, CommandForm } from '../../model/command-form.ts'
import { makeFolders } from '../../storage/folders.ts'
import { cancelledError } from '../failure.ts'
import { logPath } from '../../node/logs.ts'
import type { Runtime } from '../runtime.ts'
import { assignWorks } from './assign-works.ts'
import type { PartitionWay } from '../../node/processes/gpmetis.ts'

/** Turns the work of a workflow into tasks of the runtime, and follows them. */
export class FlowTasks {
  readonly #runtime: Runtime
  readonly #state: FlowState
  readonly #keepGoing: boolean
  readonly #definitions = new Map<Rule | string, Definition>()
  /** Work that has been handed over, by the number that its task carries. */
  readonly #works: Work[] = []
  /** The nodes of work that is to be handed over, where the graph was divided among nodes. */
  readonly #nodes = new Map<Work, number>()

  constructor(runtime: Runtime, state: FlowState, keepGoing: boolean) {
    this.#runtime = runtime
    this.#state = state
    this.#keepGoing = keepGoing
  }

  /** Divides work that is about to be handed over among the nodes that there are. */
  assign(works: readonly Work[], way: PartitionWay): void {
    const nodes = this.#runtime.engine.nodes.filter(({ isLost }) => !isLost)
    if (nodes.length < 2) {
      const text = '--partition divides a workflow among nodes, and there is one: name several by --nodes'
      return this.#runtime.note('warning', text)
    }
    for (const [work, node] of assignWorks(works, nodes, this.#state, way)) this.#nodes.set(work, node)
  }

  /** Resolves when it is done; rejects with its failure. */
  async run(work: Work): Promise<void> {
    const task = this.#submit(work)
    const version = task.accesses.at(-1)?.write
    if (version) await this.#runtime.settled(version)
    await this.#keepLog(work, task)
    if (task.state === 'done') return
    this.#warnOfOld(work)
    throw task.state === 'failed' ? this.#runtime.handle(task) : cancelledError(task)
  }

  /** Deletes a temporary file after its last reader. */
  remove(file: number): Promise<void> {
    return this.#runtime.removeFile(this.#absolute(file))
  }

  /** A file of an earlier run that is still there looks as if it had been made now. */
  #warnOfOld(work: Work): void {
    const { files } = this.#state
    const old = work.outputs.map(output => files.path(output)).filter(path => existsSync(path))
    if (old.length === 0) return
    const which = old.length > 1 ? `${old[0]} and ${old.length - 1} more are` : `${old[0]} is`
    const text = `${which} of an earlier run, because the task that makes it now did not end well`
    this.#runtime.engine.observer?.({ type: 'note', at: this.#runtime.now(), level: 'warning', text })
  }

  #submit(work: Work): Task {
    const definition = this.#definition(work.rule)
    const slots: Slot[] = []
    const args: Argument[] = [this.#works.push(work) - 1]
    for (const input of work.inputs) args.push(input === NO_FILE ? undefined : this.#input(slots, input))
    for (const [i, output] of work.outputs.entries()) {
      const { directory = false, stream, temp } = work.rule.outputs[i]?.marks ?? {}
      const argument = this.#slot(slots, this.#absolute(output), directory, 'out')
      const slot = slots[argument.slot]
      if (stream && slot) slot.stream = this.#streamOf(stream, work)
      // It counts as an intermediate although it is at its path.
      if (temp && slot) slot.datum.temporary = true
      args.push(argument)
    }
    forgetSlots()
    const { wildcards, rule } = work
    const { priority } = rule.options
    const given = demandVaries(rule.options) ? demandsOf(rule.options, wildcards) : definition.options
    const near = this.#nodes.get(work)
    this.#nodes.delete(work)
    const task = this.#runtime.submit(
      { definition, given: [], args, slots, alone: !work.isCommand },
      [new Datum(null, false, false)],
      this.#runtime.main,
      this.#runtime.main.group,
      {
        demand: buildDemand(definition, given, []),
        priority: priority === undefined ? 0 : valueFor(priority, wildcards),
        label: wildcardLabel(wildcards),
        ...(near === undefined ? {} : { near }),
      },
    )
    this.#runtime.schedule()
    return task
  }

  #streamOf(rules: StreamRules, work: Work): StreamRules {
    if (rules.beside === undefined) return rules
    return { ...rules, beside: resolve(this.#state.root, new Pattern(rules.beside).fill(work.wildcards)) }
  }

  #absolute(file: number): string {
    return resolve(this.#state.root, this.#state.files.path(file))
  }

  /** A file inside a directory that a task makes is read as part of it. */
  #input(slots: Slot[], input: number): Argument {
    const path = this.#absolute(input)
    const maker = this.#state.makerOf(input)
    const others = !maker || placeOf(input, maker) >= 0 ? [] : maker.outputs
    const folder = others.map(output => this.#absolute(output)).find(one => path.startsWith(`${one}/`))
    if (folder) {
      const { slot } = this.#slot(slots, folder, true, 'in')
      return new SlotArgument(slot, path.slice(folder.length + 1))
    }
    return this.#slot(slots, path, this.#state.isDirectory(input), 'in')
  }

  #slot(slots: Slot[], path: string, isDirectory: boolean, mode: 'in' | 'out'): SlotArgument {
    const datum = this.#runtime.paths.datum(path, isDirectory)
    return SlotArgument.of(
      putSlot(slots, { datum, kind: isDirectory ? 'directory' : 'file', mode, initial: null }),
    )
  }

  #definition(rule: Rule): Definition {
    const key = nameInCommon(rule) ?? rule
    const known = this.#definitions.get(key)
    if (known) return known
    const { retries, timeout, cwd, env, exitCodes } = rule.options
    const options = {
      ...demandsOf(rule.options, null),
      ...(retries === undefined ? {} : { retries }),
      onFailure: this.#keepGoing ? ('cancelSuccessors' as const) : ('fail' as const),
    }
    const workOf = (args: readonly unknown[]): Work => this.#works[args[0] as number] as Work
    const optionsOf = (args: readonly unknown[]): Rule['options'] => workOf(args).rule.options
    const command: CommandForm = {
      cwd: (...args: unknown[]) =>
        cwd === undefined
          ? this.#state.root
          : resolve(this.#state.root, valueFor(optionsOf(args).cwd ?? '', workOf(args).wildcards)),
      ...(env === undefined
        ? {}
        : {
            env: (...args: unknown[]) => valueFor(optionsOf(args).env ?? {}, workOf(args).wildcards),
          }),
      ...(exitCodes === undefined ? {} : { exitCodes }),
      limits: null,
      hooks: {
        begin: (args, signal) => this.#begin(workOf(args), args, signal),
        beforeCommit: (args, paths) => this.#beforeCommit(workOf(args), args as Argument[], paths),
        bytesOf: path => this.#state.bytesOf(path),
        written: (args, slot) => outputIn(workOf(args), args as Argument[], slot),
        released: (args, slot, path) => this.#released(workOf(args), args as Argument[], slot, path),
      },
    }
    const definition = ruleDefinition(rule, {
      options,
      timeout: evaluateTimeout(`rule ${rule.name}`, timeout),
      variants: [{ name: rule.name, module: '', options, run: () => [] }],
      command,
    })
    this.#definitions.set(key, definition)
    return definition
  }

  /** Relative to where the command runs, where that is the workflow's folder. */
  #shown(work: Work, path: unknown): string | undefined {
    if (typeof path !== 'string') return undefined
    const { root } = this.#state
    const isInside = work.rule.options.cwd === undefined && path.startsWith(`${root}/`)
    return isInside ? asArgument(path.slice(root.length + 1)) : path
  }

  async #begin(
    work: Work,
    args: readonly unknown[],
    signal: () => AbortSignal,
  ): Promise<Argv | 'made' | 'kept'> {
    const [, ...paths] = args.map(path => this.#shown(work, path))
    const inputs = paths.slice(0, work.inputs.length)
    const outputs = paths.slice(work.inputs.length) as string[]
    const growing = this.#growing(work)
    // A function of ours cannot be made to wait inside a read, as programs can.
    const waits = growing.size > 0 && work.rule.isAsync
    if (waits) await this.#complete(growing)
    const spared = await this.#state.begin(work, outputs, waits ? undefined : growing)
    if (spared) return spared
    const result = callAction(work, outputs, inputs, signal)
    if (isCommand(result)) return Array.isArray(result) ? result : shellArgv(result as never)
    if (result !== undefined && !isThenable(result)) throw noCommand(work, result)
    const awaited: unknown = await result
    if (!isCommand(awaited)) return 'made'
    return Array.isArray(awaited) ? awaited : shellArgv(awaited as never)
  }

  /** Inputs that the task reads as they are written. */
  #growing(work: Work): Set<number> {
    return new Set(
      work.inputs.filter(input => input !== NO_FILE && this.#versionOf(input)?.state === 'pending'),
    )
  }

  #versionOf(input: number): Version | undefined {
    return this.#runtime.paths.find(this.#absolute(input))?.current
  }

  async #complete(inputs: ReadonlySet<number>): Promise<void> {
    for (const input of inputs) {
      const version = this.#versionOf(input)
      if (version) await this.#runtime.settled(version)
    }
  }

  async #beforeCommit(
    work: Work,
    args: readonly Argument[],
    paths: readonly (string | null)[],
  ): Promise<readonly (number | null | undefined)[]> {
    const slots = args.slice(1 + work.inputs.length).map(argument => (argument as SlotArgument).slot)
    const sizes = await this.#state.made(
      work,
      slots.map(slot => paths[slot] as string),
    )
    const bySlot: (number | null | undefined)[] = []
    for (const [i, slot] of slots.entries()) bySlot[slot] = sizes[i]
    return bySlot
  }

  /** Readers from now on must find the stamp of what was made, not of what was there before. */
  async #released(work: Work, args: readonly Argument[], slot: number, path: string): Promise<void> {
    const outputs = args.slice(1 + work.inputs.length) as SlotArgument[]
    const at = outputs.findIndex(argument => argument.slot === slot)
    await this.#state.released(work, at, path)
  }

  /** The log that the rule asked for is a copy: the run keeps its own. */
  async #keepLog(work: Work, task: Task): Promise<void> {
    const { log } = work.rule.options
    const source = logPath(this.#runtime.logs, task)
    if (log === undefined || source === undefined) return
    const path = resolve(this.#state.root, new Pattern(log).fill(work.wildcards))
    try {
      await makeFolders(dirname(path))
      await copyFile(source, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw new MillraceError('MR_FLOW_STATE', `the log ${path} cannot be written`, { cause: error })
    }
  }
}

/** The output in a slot, as the rule has it. */
function outputIn(work: Work, args: readonly Argument[], slot: number): string {
  const outputs = args.slice(1 + work.inputs.length) as SlotArgument[]
  const at = outputs.findIndex(argument => argument.slot === slot)
  return work.rule.outputs[at]?.pattern.text ?? ''
}

function noCommand({ rule }: Work, result: unknown): MillraceError {
  const what = Array.isArray(result) ? `a list of ${result.length}` : `${JSON.stringify(result)}`
  return new MillraceError(
    'MR_FLOW_RULE',
    `the function of rule ${rule.name} (${rule.site}) gave ${what}, which is not a command`,
    {
      hint: 'Give sh`…` or a list of words; a function that does the work itself is async, or gives nothing.',
    },
  )
}

/** Rules of one name and the same wishes, such as those that a target adds in a loop, are shown and measured as one. */
function nameInCommon({ options }: Rule): string | null {
  if (options.name === undefined) return null
  const { retries, timeout, exitCodes, cwd, env } = options
  const others = [retries, timeout, exitCodes, cwd === undefined, env === undefined]
  return JSON.stringify([options.name, demandText(options), others])
}
