import { isAbsolute, resolve } from 'node:path'
import type { Place } from '../../source/json.ts'
import type { Commit } from '../language/language.ts'
import { compilePattern, type Pattern } from '../language/pattern.ts'
import type { Plan } from './plan.ts'
import { StreamConfigError } from '../language/problems.ts'

/**
 * The plan with all names relative to the managed directory, once that is known. Absolute names must lie in
 * it, except inputs: those that lie elsewhere are simply files. `written` is the directory as the user calls
 * it, which may lead through links.
 */
export function placePlan(plan: Plan, directory: string, written = directory): Plan {
  const dir = resolve(directory)
  const dirs = [dir, resolve(written)]
  const place = (pattern: Pattern, at?: Place, field = ''): Pattern => {
    const inside = relativeName(pattern.text, dirs)
    if (inside !== undefined) return inside === pattern.text ? pattern : compilePattern(inside)
    const message = `'${pattern.text}' is not in the managed directory ${dir}`
    const fix = 'write names relative to the managed directory, or choose with --dir the one that they lie in'
    const { line, column } = at ?? { line: 1, column: 1 }
    throw new StreamConfigError([{ severity: 'error', file: plan.file, line, column, field, message, fix }])
  }
  const placeCommit = (commit: Commit): Commit => {
    if (commit.on !== 'file') return commit
    return {
      on: 'file',
      deps: commit.deps.map(dep => ({ ...dep, pattern: place(dep.pattern, dep.at, dep.field) })),
    }
  }
  const all = (patterns: Pattern[], field: string): Pattern[] =>
    patterns.map(pattern => place(pattern, undefined, field))
  const names = (texts: string[]): string[] => texts.map(text => relativeName(text, dirs) ?? text)
  return {
    ...plan,
    steps: plan.steps.map(step => ({ ...step, inputs: names(step.inputs), outputs: names(step.outputs) })),
    rules: plan.rules.map(rule => ({
      ...rule,
      pattern: place(rule.pattern, rule.at, rule.field),
      commit: placeCommit(rule.commit),
    })),
    permanent: all(plan.permanent, 'permanent'),
    exclude: all(plan.exclude, 'exclude'),
    memory: all(plan.memory, 'storage.memory'),
    fs: all(plan.fs, 'storage.fs'),
  }
}

function relativeName(text: string, dirs: string[]): string | undefined {
  if (!isAbsolute(text)) return text
  const dir = dirs.find(above => text.startsWith(`${above}/`))
  return dir === undefined ? undefined : text.slice(dir.length + 1)
}
