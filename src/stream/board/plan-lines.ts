/** The plan in the text form that `millrace-board create` reads; preload/plan-format.md defines it. */
import { resolve } from 'node:path'
import type { Commit } from '../language/language.ts'
import type { Pattern } from '../language/pattern.ts'
import { placePlan } from './place-plan.ts'
import type { Plan } from './plan.ts'

export interface PlanLineOptions {
  /** The managed directory. */
  dir: string
  /** Names the board; the name of the configuration when not given. */
  workflow?: string
  /** How often each step will be started, when that is known. */
  instances?: ReadonlyMap<string, number>
  /** Folder on disk for files that find no room in memory. */
  layer?: string
  /** Where inputs are linked from. */
  inputs?: string
  /** Seconds after which one wait fails. */
  limit?: number
  /** Seconds without any process after which a step counts as ended without a report of its end. */
  grace?: number
}

/** A link to a longer path could need memory of its own. */
export const LONGEST = 100

export function planLines(checked: Plan, options: PlanLineOptions): string[] {
  const dir = resolve(options.dir)
  const plan = placePlan(checked, dir)
  const lines = ['millrace-plan\t1']
  const add = (...fields: string[]): void => void lines.push(fields.join('\t'))
  add('workflow', escapeField(options.workflow ?? plan.name))
  add('dir', escapeField(dir))
  if (options.layer !== undefined) add('layer', escapeField(options.layer))
  if (options.inputs !== undefined && Buffer.byteLength(options.inputs) <= LONGEST)
    add('inputs', escapeField(options.inputs))
  if (options.limit !== undefined) add('limit', String(options.limit))
  if (options.grace !== undefined) add('grace', String(options.grace))
  const ids = new Map(plan.steps.map((step, id) => [step.name, String(id)]))
  for (const { name } of plan.steps)
    add('step', ids.get(name)!, escapeField(name), count(options.instances?.get(name)))

  const form = (pattern: Pattern): [string, string] =>
    pattern.literal === undefined
      ? ['glob', escapeField(pattern.text)]
      : ['exact', escapeField(pattern.literal)]
  for (const rule of plan.rules) {
    const producers = rule.producers.map(name => ids.get(name)!).join(',')
    const deps = rule.commit.on === 'file' ? rule.commit.deps : []
    const names = deps.map(dep => escapeField(dep.pattern.literal ?? dep.pattern.text))
    const kind = rule.directory ? 'dir' : 'file'
    const fields = [kind, ...form(rule.pattern), producers, commitField(rule.commit), rule.fire]
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
