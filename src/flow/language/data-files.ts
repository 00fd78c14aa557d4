import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { YamlSource } from '../../source/yaml-source.ts'
import { flowState } from './registry.ts'

/**
 * The content of a file of settings, in YAML or JSON. It counts as an input of the workflow: rules whose functions do the work
 * themselves are run again when it changes, as others are when their command does.
 *
 *     const { samples } = settings<{ samples: string[] }>('config.yaml')
 */
export function settings<T = unknown>(path: string): T {
  const text = read(path, ['.yaml', '.yml', '.json'])
  const source = new YamlSource(text, { isPlain: true })
  const [problem] = source.problems
  if (problem) throw wrong(`${path}:${problem.line}:${problem.column}: ${problem.text}`, problem.hint)
  return source.value as T
}

/**
 * The rows of a table, in CSV (commas) or TSV (tabs), by the names in its first line. It counts as an input of the workflow, as
 * `settings` do. With `columns`, a table without one of them is refused.
 *
 *     for (const { sample, reads } of table('samples.csv', ['sample', 'reads'])) …
 */
export function table<const C extends string = string>(
  path: string,
  columns: readonly C[] = [],
): Record<C, string>[] {
  const text = read(path, ['.csv', '.tsv'])
  const rows = parseRows(text, extname(path) === '.tsv' ? '\t' : ',', path)
  const [head, ...body] = rows
  if (!head) throw wrong(`${path}:1:1: the table is empty`, 'Its first line has the names of the columns.')
  const names = head.cells
  const twice = names.find((name, i) => name === '' || names.indexOf(name) < i)
  if (twice !== undefined) {
    const what = twice === '' ? 'a column has no name' : `two columns are called '${twice}'`
    throw wrong(`${path}:${head.line}:1: ${what}`, 'Give each column a name of its own.')
  }
  for (const column of columns) {
    if (!names.includes(column))
      throw wrong(`${path}:1:1: there is no column '${column}'`, `Its columns are ${names.join(', ')}.`)
  }
  return body.map(({ cells, line }) => {
    if (cells.length !== names.length) {
      throw wrong(
        `${path}:${line}:1: the row has ${cells.length} cells, and the table ${names.length} columns`,
        'Put a cell with a comma, a quote or a line end in double quotes.',
      )
    }
    return Object.fromEntries(names.map((name, i) => [name, cells[i] as string])) as Record<C, string>
  })
}

function read(path: string, endings: readonly string[]): string {
  if (!endings.includes(extname(path))) {
    throw wrong(`'${path}' does not end with ${endings.join(' or ')}`, 'The ending says what is in it.')
  }
  flowState.listed.add(resolve(path))
  try {
    const text = readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
    flowState.data.set(path, createHash('sha256').update(text).digest('hex'))
    return text
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw wrong(
      `${path} cannot be read: ${code === 'ENOENT' ? 'it does not exist' : code}`,
      'Check its path.',
    )
  }
}

interface Row {
  readonly cells: string[]
  readonly line: number
}

/** Cells may be in double quotes, and then have separators, line ends, and quotes as `""`. Empty lines are left out. */
function parseRows(text: string, separator: string, path: string): Row[] {
  const rows: Row[] = []
  let line = 1
  let at = 0
  while (at < text.length) {
    const row: Row = { cells: [], line }
    for (;;) {
      const cell = text[at] === '"' ? quotedCell(text, at, line, path) : plainCell(text, at, separator)
      row.cells.push(cell.value)
      line += cell.value.split('\n').length - 1
      at = cell.end
      if (text[at] === separator) at++
      else if (at >= text.length || isLineEnd(text, at)) break
      else throw wrong(`${path}:${line}:1: text behind a quoted cell`, 'Write a quote in a cell as "".')
    }
    if (text[at] === '\r') at++
    at++
    line++
    if (row.cells.length > 1 || row.cells[0] !== '') rows.push(row)
  }
  return rows
}

const isLineEnd = (text: string, at: number): boolean =>
  text[at] === '\n' || (text[at] === '\r' && (text[at + 1] === '\n' || at + 1 === text.length))

function plainCell(text: string, start: number, separator: string): { value: string; end: number } {
  let end = start
  while (end < text.length && text[end] !== separator && !isLineEnd(text, end)) end++
  return { value: text.slice(start, end).trim(), end }
}

function quotedCell(text: string, start: number, line: number, path: string): { value: string; end: number } {
  let value = ''
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] !== '"') value += text[at]
    else if (text[at + 1] === '"') {
      value += '"'
      at++
    } else return { value, end: at + 1 }
  }
  throw wrong(`${path}:${line}:1: a quoted cell has no end`, 'Close it with a double quote.')
}

const wrong = (message: string, hint: string): MillraceError =>
  new MillraceError('MR_FLOW_DATA', message, { hint })
