import type { Row } from './rows.ts'
import { UNSTATED } from './unstated.ts'
import type { Unstated } from './unstated.ts'

export type Parts = Record<string, () => Row[] | Promise<Row[]>>

/** How one row depends on one constant. */
export interface Dependence {
  constant: string
  what: string
  row: string
  /** The values that were tried, in order, and at which of them the row was reached. */
  tried: number[]
  reached: number[]
  /** The values next to each other, around the one that is used, with the same outcome. */
  same: [least: number, most: number]
}

/** Varies one constant at a time and simulates again all that it counts for; `words` name constants, parts, or both. */
export async function* sensitivity(parts: Parts, words: readonly string[]): AsyncGenerator<Dependence> {
  const names = words.filter(word => !(word in parts))
  const chosen = words.filter(word => word in parts)
  /** Of each part, with all constants as they are used. */
  const usual = new Map<string, Row[]>()
  for (const [constant, one] of Object.entries<Unstated>(UNSTATED)) {
    if (names.length > 0 && !names.includes(constant)) continue
    const own = one.parts.filter(part => chosen.length === 0 || chosen.includes(part))
    if (own.length === 0) continue
    const used = one.value
    const tried = [...one.others, used].sort((a, b) => a - b)
    const rows = new Map<string, boolean[]>()
    for (const value of tried) {
      one.value = value
      for (const part of own) {
        const found = (value === used && usual.get(part)) || ((await parts[part]?.()) ?? [])
        if (value === used) usual.set(part, found)
        for (const { experiment, met } of found) {
          if (!rows.has(experiment)) rows.set(experiment, [])
          rows.get(experiment)?.push(met === true)
        }
      }
    }
    one.value = used
    for (const [row, met] of rows) {
      const reached = tried.filter((_, i) => met[i])
      yield { constant, what: one.what, row, tried, reached, same: around(tried, met, tried.indexOf(used)) }
    }
  }
}

function around(tried: readonly number[], met: readonly boolean[], at: number): [number, number] {
  let [low, high] = [at, at]
  while (low > 0 && met[low - 1] === met[at]) low--
  while (high < tried.length - 1 && met[high + 1] === met[at]) high++
  return [tried[low] as number, tried[high] as number]
}

const text = (value: number): string =>
  value === Infinity ? 'no limit' : String(Number(value.toPrecision(3)))

/** A line for each constant: the rows that change, and between which values they do not. */
export function describe(all: readonly Dependence[]): string[] {
  const lines: string[] = []
  for (const name of new Set(all.map(({ constant }) => constant))) {
    const own = all.filter(({ constant }) => constant === name)
    const [first] = own as [Dependence]
    const [least, most] = [first.tried[0] as number, first.tried.at(-1) as number]
    lines.push(`${name} (${first.what}): tried ${first.tried.map(text).join(', ')}`)
    const changing = own.filter(({ same }) => same[0] !== least || same[1] !== most)
    for (const { row, reached, tried, same } of changing) {
      const used = UNSTATED[name as keyof typeof UNSTATED].value
      const word = reached.includes(used) ? 'reached' : 'not reached'
      const elsewhere = reached.includes(used)
        ? ''
        : `; reached at ${tried
            .filter(value => reached.includes(value))
            .map(text)
            .join(', ')}`
      lines.push(`  ${row}: ${word} from ${text(same[0])} to ${text(same[1])}${elsewhere}`)
    }
    const rest = own.length - changing.length
    if (rest > 0) lines.push(`  ${rest} of ${own.length} rows are the same with all of them`)
  }
  return lines
}
