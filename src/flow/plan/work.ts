import { tidyLabel } from '../../core/tasks/label.ts'
import { hashText } from '../../general/hash.ts'
import type { Wildcards } from '../language/pattern.ts'
import { parametersOfTasks } from '../language/params.ts'
import { flowState } from '../language/registry.ts'
import type { Rule } from '../language/registry.ts'
import type { Shape } from '../language/shape.ts'
import { isCommand, textOf } from '../shell/sh.ts'
import type { Argv, ShellCommand } from '../shell/sh.ts'
import { RuleCall } from './rule-call.ts'

/**
 * Where a task stands in a plan. `maybe`: something that it reads is made again, and it has to be seen whether that
 * changes anything. `absent`: it made temporary files, some of which are gone and not needed.
 */
export type WorkState =
  'new' | 'visiting' | 'fresh' | 'absent' | 'stale' | 'maybe' | 'running' | 'done' | 'failed'

/** Absent optional inputs are this. */
export const NO_FILE = -1

/** A rule with its wildcards filled in: the files of one task. */
export class Work {
  readonly rule: Rule
  readonly wildcards: Wildcards
  readonly outputs: readonly number[]
  readonly inputs: readonly number[]
  readonly inputShape: Shape
  state: WorkState = 'new'
  /** It was handed over only because inputs are made again. */
  wasMaybe = false
  /** It is done again only because temporary files are gone that a task may need. */
  isMissed = false
  /** Why it has to be done. */
  reason = ''
  /** Of its command, or of the code that does the work. */
  text = 0
  /** Its function gives a command, as far as could be seen without doing the work. */
  isCommand = false

  constructor(
    rule: Rule,
    wildcards: Wildcards,
    outputs: readonly number[],
    inputs: readonly number[],
    inputShape: Shape,
  ) {
    this.rule = rule
    this.wildcards = wildcards
    this.outputs = outputs
    this.inputs = inputs
    this.inputShape = inputShape
  }
}

/** From this number of outputs on, an index is used instead of a search: each may have a reader of its own. */
const INDEX_FROM = 32
const places = new WeakMap<Work, Map<number, number>>()

/** Which of its outputs the file is; -1: none of them. */
export function placeOf(file: number, work: Work): number {
  const { outputs } = work
  if (outputs.length < INDEX_FROM) return outputs.indexOf(file)
  let known = places.get(work)
  if (!known) places.set(work, (known = new Map(outputs.map((output, i) => [output, i]))))
  return known.get(file) ?? -1
}

/** In front of outputs while the command is only inspected, so that it cannot write there by mistake. */
const NOWHERE = '/dev/null/'

const NEVER = new AbortController().signal
const never = (): AbortSignal => NEVER

interface Given {
  readonly rule: Rule
  readonly wildcards: Wildcards
  readonly inputShape: Shape
}

/** Calls the function of a rule. */
export function callAction(
  { rule, wildcards, inputShape }: Given,
  outputs: readonly string[],
  inputs: readonly (string | undefined)[],
  signal: () => AbortSignal = never,
): unknown {
  const files = { out: rule.outputShape.build(outputs), in: inputShape.build(inputs) }
  return rule.action?.(new RuleCall(rule, files, wildcards, parametersOfTasks, signal))
}

/** The command of a task, or null when its function does the work itself. */
export function commandOf(
  given: Given,
  outputs: readonly string[],
  inputs: readonly (string | undefined)[],
): ShellCommand | Argv | null {
  if (!given.rule.action || given.rule.isAsync) return null
  try {
    const nowhere: string[] = []
    for (const path of outputs) nowhere.push(NOWHERE + path)
    const command = callAction(given, nowhere, inputs)
    if (isCommand(command)) return command
    if (!isThenable(command)) return null
    // An asynchronous function that does not look like one: it is not called again but to do the work.
    given.rule.isAsync = true
    void Promise.resolve(command).catch(() => undefined)
    return null
  } catch {
    // It wants to do the work itself, or it fails, and the error comes when it runs.
    return null
  }
}

export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function'

/** The command as a person would type it, with the outputs under their own names. */
export function commandText(
  given: Given,
  outputs: readonly string[],
  inputs: readonly (string | undefined)[],
): string | null {
  const command = commandOf(given, outputs, inputs)
  return command && textOf(command).replaceAll(NOWHERE, '')
}

const codes = new WeakMap<Function, string>()

/** What the result depends on besides the inputs, as a number. */
export function textHash(
  given: Given & { isCommand: boolean },
  outputs: readonly string[],
  inputs: readonly (string | undefined)[],
): number {
  const { rule, wildcards } = given
  const { env, cwd, uses } = rule.options
  const command = commandOf(given, outputs, inputs)
  given.isCommand = command !== null
  let text = command && textOf(command)
  if (text === null) {
    const action = rule.action as Function
    let code = codes.get(action)
    if (code === undefined) codes.set(action, (code = action.toString()))
    text = `code ${code}`
    if (uses === undefined) text += rule.parameters ?? flowState.atLoad
  }
  if (uses !== undefined) text += `\0${JSON.stringify(valueFor(uses, wildcards))}`
  if (env !== undefined) text += `\0${JSON.stringify(valueFor(env, wildcards))}`
  if (cwd !== undefined) text += `\0${valueFor(cwd, wildcards)}`
  return hashText(text)
}

/** An option that may be a function of the wildcards. */
export const valueFor = <T>(option: T | ((wildcards: never) => T), wildcards: Wildcards): T =>
  typeof option === 'function' ? (option as (given: Wildcards) => T)(wildcards) : option

/** A path as commands get it: no name looks like an option. */
export const asArgument = (path: string): string => (path.startsWith('-') ? `./${path}` : path)

/** What tells the tasks of a rule from each other: `s=s4`. */
export const wildcardLabel = (wildcards: Wildcards): string =>
  tidyLabel(
    Object.entries(wildcards)
      .map(([name, text]) => `${name}=${text}`)
      .join(' '),
  )
