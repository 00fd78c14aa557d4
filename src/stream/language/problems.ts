import type { Place } from './json.ts'

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

/** The candidate that a mistyped word most likely means, or undefined when none is near. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const allowed = word.length < 5 ? Math.min(1, word.length - 1) : Math.min(3, Math.floor(word.length / 3))
  let best: string | undefined
  let bestDistance = allowed + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Insertions, deletions, changes and swaps of neighbours, one each. */
export function editDistance(a: string, b: string): number {
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let cost = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + same)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, before[j - 2]! + 1)
      }
      row.push(cost)
    }
    before = previous
    previous = row
  }
  return previous[b.length]!
}

export const didYouMean = (word: string, candidates: Iterable<string>): string | undefined => {
  const match = nearest(word, candidates)
  return match === undefined ? undefined : `did you mean '${match}'?`
}
