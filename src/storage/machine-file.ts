import { readFileSync } from 'node:fs'
import { MillraceError } from '../core/errors.ts'
import { MachineParser } from './machine-parser.ts'
import type { MachineNode } from './machine-parser.ts'
import { YamlSource } from '../source/yaml-source.ts'

export type { MachineDevice, MachineNode } from './machine-parser.ts'

export interface MachineDescription {
  readonly file: string
  readonly nodes: readonly MachineNode[]
}

const SHOWN = 10

export function loadMachine(file: string): MachineDescription {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'it does not exist' : code === 'EISDIR' ? 'it is a folder' : String(code)
    throw new MillraceError('MR_MACHINE', `the machine description ${file} cannot be read: ${why}`, {
      hint: 'Give the path of a YAML or JSON file by --machine or MILLRACE_MACHINE.',
      cause: error,
    })
  }
  return parseMachine(text, file)
}

/** Reads a description; throws one error with all that is wrong in it. */
export function parseMachine(text: string, file: string): MachineDescription {
  const source = new YamlSource(text)
  const nodes = source.problems.length === 0 ? new MachineParser(source).parse() : []
  if (source.problems.length === 0) return { file, nodes }
  const problems = source.problems.toSorted((a, b) => a.line - b.line || a.column - b.column)
  const lines = problems.slice(0, SHOWN).map((problem, i) => {
    const hint = i > 0 && i < SHOWN ? ` (${problem.hint})` : ''
    return `${file}:${problem.line}:${problem.column}: ${problem.text}${hint}`
  })
  if (problems.length > SHOWN) lines.push(`and ${problems.length - SHOWN} more`)
  throw new MillraceError('MR_MACHINE', lines.join('\n'), { hint: problems[0]?.hint ?? '' })
}
