/** What to start for each step: from options on the command line, or from a file. */
import { parseDuration } from '../../general/units.ts'
import { Fields } from '../language/fields.ts'
import { parseJson } from '../../source/json.ts'
import { readText } from '../language/load.ts'
import { nearest } from '../../general/nearest.ts'
import { Problems, StreamConfigError } from '../language/problems.ts'
import { StreamError } from '../stream-error.ts'
import type { Plan } from '../board/plan.ts'

export interface StepCommand {
  step: string
  /** A line for the shell, or a program with its arguments. */
  run: string | readonly string[]
  /** How many instances of it are started; each finds its number in MILLRACE_INSTANCE. */
  times?: number
  /** Working directory; the managed directory when not given. */
  cwd?: string
  env?: Record<string, string>
  /** Milliseconds after which an instance is stopped, and fails. */
  timeout?: number
  /** The names of the nodes that run it, each `times` times. */
  nodes?: readonly string[]
}

/** `name=command line`, as given to `--step`. */
export function parseStepOption(text: string): StepCommand {
  const at = text.indexOf('=')
  const step = text.slice(0, at).trim()
  const run = text.slice(at + 1).trim()
  if (at < 1 || step === '' || run === '') {
    throw new StreamError(
      'MR_STREAM_STEPS',
      `'${text}' does not say what to run`,
      "write --step name='command arguments'",
    )
  }
  return { step, run }
}

/**
 * A JSON file: `{ "appA": "command line", "appB": ["program", "argument"], "appC": { "run": …, "times": 4,
 * "cwd": …, "env": { … }, "timeout": "1h", "nodes": ["n1"] } }`.
 */
export function readStepCommands(file: string): StepCommand[] {
  const problems = new Problems(file)
  const { root, problems: syntax } = parseJson(readText(file))
  for (const { at, message, fix } of syntax) problems.error(at, '', message, fix)
  const out: StepCommand[] = []
  if (root !== undefined && root.kind !== 'object') {
    problems.error(root.at, '', 'the file must hold an object', 'write { "step": "command line", … }')
  } else if (root !== undefined) {
    for (const { key, value, keyAt } of root.members) {
      const fix = 'write "command line", ["program", "argument", …] or { "run": … }'
      const run = value.kind === 'object' ? value.members.find(member => member.key === 'run')?.value : value
      const command = run?.kind === 'string' ? run.value : run?.kind === 'array' ? argv(run.items) : undefined
      if (command === undefined || command.length === 0)
        problems.error(run?.at ?? value.at, key, 'no command', fix)
      else if (value.kind !== 'object') out.push({ step: key, run: command })
      else {
        const fields = new Fields(value, key, ['run', 'times', 'cwd', 'env', 'timeout', 'nodes'], problems)
        const [times, cwd] = [fields.count('times'), fields.string('cwd', '"/tmp"')?.text]
        const env: Record<string, string> = {}
        const variables = fields.node('env')
        if (variables !== undefined && variables.kind !== 'object')
          fields.wrong('env', 'an object { "NAME": "value" }')
        for (const member of variables?.kind === 'object' ? variables.members : []) {
          if (member.value.kind === 'string' || member.value.kind === 'number')
            env[member.key] = String(member.value.value)
          else
            problems.error(
              member.value.at,
              `${key}.env.${member.key}`,
              'a string is needed here',
              'write "value"',
            )
        }
        const limit = fields.node('timeout')
        const given = limit?.kind === 'string' || limit?.kind === 'number' ? limit.value : undefined
        const timeout = given === undefined ? null : parseDuration(given)
        if (limit !== undefined && (timeout === null || timeout <= 0))
          fields.wrong('timeout', 'a duration such as "30s" or "5min"')
        const nodes = fields.node('nodes')
        const names = nodes?.kind === 'array' ? argv(nodes.items) : undefined
        if (nodes !== undefined && (names === undefined || names.length === 0))
          fields.wrong('nodes', 'a list of names of nodes, as ["n1", "n2"]')
        out.push({
          step: key,
          run: command,
          env,
          ...(names === undefined ? {} : { nodes: names }),
          ...(times === undefined ? {} : { times }),
          ...(cwd === undefined ? {} : { cwd }),
          ...(timeout === null ? {} : { timeout }),
        })
      }
      if (out.filter(entry => entry.step === key).length > 1)
        problems.error(keyAt, key, `'${key}' is here twice`, 'use "times"')
    }
  }
  if (problems.failed) throw new StreamConfigError(problems.sorted())
  return out
}

function argv(items: { kind: string; value?: unknown }[]): string[] | undefined {
  const words = items.map(item => (item.kind === 'string' ? String(item.value) : undefined))
  return words.every(word => word !== undefined) ? words : undefined
}

/** Each step needs a command and each command a step; the instances of each step. */
export function matchCommands(plan: Plan, commands: readonly StepCommand[]): Map<string, number> {
  const names = plan.steps.map(step => step.name)
  const instances = new Map<string, number>()
  for (const { step, times, nodes } of commands) {
    if (!names.includes(step)) {
      const near = nearest(step, names)
      const fix = near === null ? `the steps are ${names.join(', ')}` : `did you mean '${near}'?`
      throw new StreamError('MR_STREAM_STEPS', `there is no step '${step}' in ${plan.file}`, fix)
    }
    instances.set(step, (instances.get(step) ?? 0) + (times ?? 1) * (nodes?.length ?? 1))
  }
  const missing = names.filter(name => !instances.has(name))
  if (missing.length > 0) {
    const message = `no command is given for ${missing.map(name => `'${name}'`).join(', ')}`
    throw new StreamError(
      'MR_STREAM_STEPS',
      message,
      missing.map(name => `--step ${name}='command'`).join(' '),
    )
  }
  return instances
}
