/** The plan in the text form that `millrace-board create` reads; preload/plan-format.md defines it. */
import { isAbsolute, resolve } from 'node:path'
import type { Commit } from './language.ts'
import { type Pattern, regularName } from './pattern.ts'
import type { Plan, PlanRule } from './plan.ts'
import { type Problem, StreamConfigError } from './problems.ts'

export interface PlanLineOptions {
  /** The managed directory. */
  dir: string
  /** Names the board; the name of the configuration when not given. */
  workflow?: string
  /** How often each step will be started, when that is known. */
  instances?: ReadonlyMap<string, number>
  /** Seconds after which one wait fails. */
  limit?: number
  /** Seconds without any process after which a step counts as ended, when nobody says so. */
  grace?: number
}

export function planLines(plan: Plan, options: PlanLineOptions): string[] {
  const dir = resolve(options.dir)
  const lines = ['millrace-plan\t1']
  const add = (...fields: string[]): void => void lines.push(fields.join('\t'))
  add('workflow', escapeField(options.workflow ?? plan.name))
  add('dir', escapeField(dir))
  if (options.limit !== undefined) add('limit', String(options.limit))
  if (options.grace !== undefined) add('grace', String(options.grace))
  const ids = new Map(plan.steps.map((step, id) => [step.name, String(id)]))
  for (const { name } of plan.steps)
    add('step', ids.get(name)!, escapeField(name), count(options.instances?.get(name)))

  const relative = relativeTo(dir, plan.file)
  const form = (pattern: Pattern, where?: PlanRule): [string, string] => {
    const text = relative(pattern.literal ?? pattern.text, where)
    return [pattern.literal === undefined ? 'glob' : 'exact', escapeField(text)]
  }
  for (const rule of plan.rules) {
    const producers = rule.producers.map(name => ids.get(name)!).join(',')
    const deps = rule.commit.on === 'file' ? rule.commit.deps : []
    const names = deps.map(dep => escapeField(relative(dep.pattern.literal ?? dep.pattern.text, rule)))
    const kind = rule.directory ? 'dir' : 'file'
    const fields = [kind, ...form(rule.pattern, rule), producers, commitField(rule.commit), rule.fire]
    add('rule', ...fields, ...(names.length > 0 ? [names.join(',')] : []))
  }
  for (const pattern of withInsides(plan.exclude)) add('exclude', ...form(pattern))
  for (const pattern of withInsides(plan.permanent)) add('permanent', ...form(pattern))
  for (const kind of ['memory', 'fs'] as const) {
    for (const pattern of withInsides(plan[kind])) add('storage', kind, ...form(pattern))
  }
  add('end')
  return lines
}

/** `exclude: ["dir"]` is about all that lies in `dir`. */
function withInsides(patterns: Pattern[]): Pattern[] {
  const texts = new Set(patterns.map(pattern => pattern.text))
  return patterns.flatMap(pattern => {
    const inside = `${pattern.text}/*`
    const needed = !pattern.text.endsWith('*') && !texts.has(inside)
    return needed ? [pattern, { ...pattern, text: inside, literal: undefined }] : [pattern]
  })
}

function relativeTo(dir: string, file: string): (name: string, where?: PlanRule) => string {
  return (name, where) => {
    if (!isAbsolute(name)) return regularName(name)
    if (name.startsWith(`${dir}/`)) return regularName(name.slice(dir.length + 1))
    const { line, column } = where?.at ?? { line: 1, column: 1 }
    const problem: Problem = {
      severity: 'error',
      file,
      line,
      column,
      field: where?.field ?? '',
      message: `'${name}' is not in the managed directory ${dir}`,
      fix: 'write names relative to the managed directory, or choose the directory that they lie in',
    }
    throw new StreamConfigError([problem])
  }
}

function commitField(commit: Commit): string {
  switch (commit.on) {
    case 'termination':
      return `on_termination:${commit.count ?? 0}`
    case 'close':
      return `on_close:${commit.count ?? 1}`
    case 'file':
      return 'on_file'
    case 'n_files':
      return `on_n_files:${commit.count}`
  }
}

const count = (value: number | undefined): string => (value === undefined ? '-' : String(value))

/** TAB separates fields and a comma the items of a list, so neither may stand in a name. */
export function escapeField(text: string): string {
  if (text === '') return '-'
  if (text === '-') return '%2D'
  const hex = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  return Array.from(text, char => (char < ' ' || char === '%' || char === ',' ? hex(char) : char)).join('')
}
