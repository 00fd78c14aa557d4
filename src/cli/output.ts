import { once } from 'node:events'
import { createPaint } from '../report/terminal/paint.ts'
import type { Paint } from '../report/terminal/paint.ts'
import { chooseMode } from '../report/terminal/terminal-mode.ts'
import { elide, escapeUnseen, padEnd, printable, width } from '../report/text.ts'

/** Colours and symbols that fit a stream of this process. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  const { color, unicode } = chooseMode({ asked: 'plain', isTTY: stream.isTTY === true, env: process.env })
  return createPaint(color, unicode)
}

export function printLines(lines: readonly string[]): void {
  if (lines.length > 0) process.stdout.write(printable(`${lines.join('\n')}\n`))
}

/** Something about the result, which is not the result. */
export function remark(text: string): void {
  process.stderr.write(printable(`${text}\n`))
}

const CHUNK = 64 * 1024

/** One JSON object per line; waits for slow readers, so that a long journal does not pile up here. */
export async function printJson(values: AsyncIterable<object> | Iterable<object>): Promise<void> {
  let text = ''
  for await (const value of values) {
    text += `${escapeUnseen(JSON.stringify(value))}\n`
    if (text.length < CHUNK) continue
    if (!process.stdout.write(text)) await once(process.stdout, 'drain')
    text = ''
  }
  if (text !== '') process.stdout.write(text)
}

export interface Column {
  readonly title: string
  readonly align?: 'right'
  /** This column gives way when the terminal is too narrow. */
  readonly canShrink?: boolean
}

const GAP = '  '
const LEAST = 8

/** Columns as wide as what is in them. `limit` is the width of the terminal, if it is one. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paint: Paint,
  limit = Infinity,
): string[] {
  const widths = columns.map(({ title }, index) =>
    Math.max(width(title), ...rows.map(row => width(row[index] ?? ''))),
  )
  const excess = widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length) - limit
  const giving = columns.findIndex(column => column.canShrink)
  if (excess > 0 && giving >= 0) widths[giving] = Math.max(LEAST, (widths[giving] ?? 0) - excess)
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, index) => {
        const room = widths[index] ?? 0
        const shown = index === giving ? elide(cell, room, paint.ellipsis) : cell
        if (columns[index]?.align !== 'right') return padEnd(shown, room)
        return ' '.repeat(Math.max(0, room - width(shown))) + shown
      })
      .join(GAP)
      .trimEnd()
  return [paint.dim(line(columns.map(({ title }) => title))), ...rows.map(line)]
}

export const terminalWidth = (): number => (process.stdout.isTTY ? process.stdout.columns || 80 : Infinity)
