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

/** Numbers in a header of Montage, such as NAXIS1. */
function header(path: string): Record<string, number> {
  const lines = readFileSync(path, 'utf8').matchAll(/^(\w+) *= *([-+.\d]+) *$/gm)
  return Object.fromEntries([...lines].map(([, name, value]) => [name, Number(value)]))
}

/** Tiles overlap by this many pixels, and some more for safety. */
const PAD = 12

/** The images of a table of projected images that reach into a tile of the region, `across` x `across` in all. */
export function placed(table: string, region: string, across: number, tile: string): string[] {
  const { NAXIS1 = 0, NAXIS2 = 0, CRPIX1 = 0, CRPIX2 = 0 } = header(region)
  const [x = 0, y = 0] = tile.split('_').map(Number)
  const meets = (from: number, length: number, whole: number, place: number): boolean => {
    const side = Math.ceil(whole / across)
    return from < (place + 1) * side + PAD && from + length > place * side - PAD
  }
  return rows(table).flatMap(row => {
    const [width = 0, height = 0] = row.slice(9, 11).map(Number)
    const [crpix1 = 0, crpix2 = 0] = row.slice(13, 15).map(Number)
    const isInside = meets(CRPIX1 - crpix1, width, NAXIS1, x) && meets(CRPIX2 - crpix2, height, NAXIS2, y)
    return isInside ? [row.at(-1) ?? ''] : []
  })
}

/** A table with the rows of these images only. */
export function someRows(path: string, images: readonly string[]): string {
  const lines = readFileSync(path, 'utf8').split('\n')
  const isWanted = (line: string): boolean =>
    /^[|\\]/.test(line) || images.includes(line.trim().split(/\s+/).at(-1) ?? '')
  return `${lines.filter(isWanted).join('\n')}\n`
}

/** The header of the same region in half as many pixels each way. */
export function halved(path: string): string {
  const half: Record<string, (value: number) => number> = {
    NAXIS: value => Math.ceil(value / 2),
    CRPIX: value => (value - 0.5) / 2 + 0.5,
    CDELT: value => value * 2,
  }
  return readFileSync(path, 'utf8').replaceAll(
    /^(NAXIS|CRPIX|CDELT)([12] *= *)(\S+)/gm,
    (_, name: string, middle: string, value: string) => name + middle + half[name]?.(Number(value)),
  )
}
