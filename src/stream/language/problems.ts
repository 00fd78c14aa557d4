import type { Place } from '../../source/json.ts'

/** One thing that is wrong, or odd, in a configuration: where, in which field, what, and the way out. */
export interface Problem {
  severity: 'error' | 'warning'
  file: string
  line: number
  column: number
  /** Path of the field: `IO_Graph[0].streaming[1].committed`; empty for the file as a whole. */
  field: string
  message: string
  fix: string
}

/** Thrown when a configuration cannot be used. `problems` holds all of them; the fields are the first's. */
export class StreamConfigError extends Error {
  override name = 'StreamConfigError'
  readonly code = 'MR_STREAM_CONFIG'
  readonly file: string
  readonly line: number
  readonly column: number
  readonly field: string
  readonly fix: string
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    const errors = problems.filter(problem => problem.severity === 'error')
    const first = errors[0]
    if (first === undefined) throw new RangeError('a StreamConfigError needs an error')
    const more = errors.length > 1 ? `\n(and ${errors.length - 1} more)` : ''
    super(`${problemText(first)}${more} [MR_STREAM_CONFIG]`)
    this.file = first.file
    this.line = first.line
    this.column = first.column
    this.field = first.field
    this.fix = first.fix
    this.problems = problems
  }
}

export function problemText(problem: Problem): string {
  const where = `${problem.file}:${problem.line}:${problem.column}`
  const field = problem.field === '' ? '' : `${problem.field}: `
  return `${where}: ${problem.severity}: ${field}${problem.message}\n  fix: ${problem.fix}`
}

/** Collects problems, so that one run shows all of them. */
export class Problems {
  readonly list: Problem[] = []
  readonly file: string

  constructor(file: string) {
    this.file = file
  }

  error(at: Place, field: string, message: string, fix: string): void {
    this.add('error', at, field, message, fix)
  }

  warning(at: Place, field: string, message: string, fix: string): void {
    this.add('warning', at, field, message, fix)
  }

  get failed(): boolean {
    return this.list.some(problem => problem.severity === 'error')
  }

  /** In the order of the file; the sort is stable, so two at one place stay as they were found. */
  sorted(): Problem[] {
    return this.list.toSorted((a, b) => a.line - b.line || a.column - b.column)
  }

  private add(severity: Problem['severity'], at: Place, field: string, message: string, fix: string): void {
    this.list.push({ severity, file: this.file, line: at.line, column: at.column, field, message, fix })
  }
}
