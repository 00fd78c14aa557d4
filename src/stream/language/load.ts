import { readFileSync } from 'node:fs'
import { checkConfig } from './check.ts'
import { makePlan, type Plan } from '../board/plan.ts'
import { type Problem, Problems, StreamConfigError } from './problems.ts'
import { readConfig } from './read.ts'
import { resolveNames } from './resolve.ts'

export interface Checked {
  /** Absent when there are errors. */
  plan?: Plan
  /** Errors and warnings in the order of the file. */
  problems: Problem[]
}

/** Reads and checks the text of a configuration. Never throws for what its writer may have done wrong. */
export function checkText(text: string, file: string): Checked {
  const problems = new Problems(file)
  const written = readConfig(text, problems)
  if (written === undefined) return { problems: problems.sorted() }
  const config = resolveNames(written, file, problems)
  const groups = written.aliases.map(alias => alias.name.text)
  checkConfig(config, groups, problems)
  if (problems.failed) return { problems: problems.sorted() }
  return { plan: makePlan(config), problems: problems.sorted() }
}

/** The plan of a configuration file, with its warnings; throws StreamConfigError when it has errors. */
export function loadPlan(file: string): { plan: Plan; warnings: Problem[] } {
  const { plan, problems } = checkText(readText(file), file)
  if (plan === undefined) throw new StreamConfigError(problems)
  return { plan, warnings: problems }
}

export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    const message = reason === 'ENOENT' ? 'there is no such file' : `the file cannot be read (${reason})`
    const fix = reason === 'EISDIR' ? 'give the configuration file, not its directory' : 'check the path'
    throw new StreamConfigError([{ severity: 'error', file, line: 1, column: 1, field: '', message, fix }])
  }
}
