import { readFileSync } from 'node:fs'

/** The cells of each row of a table of Montage, whose head lines begin with | or \\. */
export function rows(path: string): string[][] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines
    .filter(line => line.trim() !== '' && !/^[|\\]/.test(line))
    .map(line => line.trim().split(/\s+/))
}

/** `[struct stat="OK", a=1.5, b=…]`, as mFitplane prints it. */
export function fields(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)=("[^"]*"|[^,\]\s]+)/g)].map(([, name, value]) => [name, value]),
  )
}

const COLUMNS = ['a', 'b', 'c', 'crpix1', 'crpix2', 'xmin', 'xmax', 'ymin', 'ymax', 'xcenter', 'ycenter']
const MORE = ['npixel', 'rms', 'boxx', 'boxy', 'boxwidth', 'boxheight', 'boxang']

/** The table that mBgModel reads, from what mFitplane printed for each pair. */
export function fitTable(fits: readonly { plus: string; minus: string; printed: string }[]): string {
  const names = ['plus', 'minus', ...COLUMNS, ...MORE]
  const line = (cells: readonly string[], edge: string): string =>
    edge + cells.map(cell => cell.padStart(16)).join(edge) + edge
  const body = fits.flatMap(({ plus, minus, printed }) => {
    const found = fields(printed)
    if (found['stat'] !== '"OK"') return []
    return [line([plus, minus, ...[...COLUMNS, ...MORE].map(name => found[name] ?? '0')], ' ')]
  })
  return [line(names, '|'), ...body, ''].join('\n')
}
