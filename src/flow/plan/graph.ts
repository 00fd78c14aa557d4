import { writeFileSync } from 'node:fs'
import { MillraceError } from '../../core/errors.ts'
import type { FileTable } from '../state/file-table.ts'
import type { Makers } from './makers.ts'
import { NO_FILE } from './work.ts'
import type { Work } from './work.ts'

/** More tasks than a person can look at: then rules are drawn instead. */
const MOST_DRAWN = 400

function unwritable(path: string, cause: unknown): MillraceError {
  return new MillraceError('MR_OPTION', `--graph ${path} cannot be written: ${(cause as Error).message}`, {
    hint: 'Name a file in a folder that is there.',
    cause,
  })
}

/** The workflow in DOT: what is made of what, and what is not up to date. */
export function writeGraph(path: string, makers: Makers, files: FileTable): void {
  const works = [...makers.works()]
  const lines = works.length > MOST_DRAWN ? drawRules(works, makers) : drawWorks(works, makers, files)
  const text = ['digraph workflow {', '  rankdir=LR', '  node [shape=box]', ...lines, '}', ''].join('\n')
  try {
    writeFileSync(path, text)
  } catch (cause) {
    throw unwritable(path, cause)
  }
}

function drawWorks(works: readonly Work[], makers: Makers, files: FileTable): string[] {
  const numbers = new Map(works.map((work, i) => [work, i]))
  const sources = new Set<number>()
  const edges = new Set<string>()
  const lines = works.map((work, i) => {
    const [first = 0] = work.outputs
    for (const input of work.inputs) {
      if (input === NO_FILE) continue
      const maker = makers.of(input)
      if (!maker) sources.add(input)
      edges.add(`  ${maker ? `t${numbers.get(maker)}` : `f${input}`} -> t${i}`)
    }
    return `  t${i} [label=${quote(files.path(first))}${isFresh(work) ? '' : ', style=filled, fillcolor=khaki'}]`
  })
  for (const file of sources) lines.push(`  f${file} [label=${quote(files.path(file))}, shape=plaintext]`)
  return [...lines, ...edges]
}

function drawRules(works: readonly Work[], makers: Makers): string[] {
  const counts = new Map<number, { name: string; all: number; stale: number }>()
  const edges = new Set<string>()
  for (const work of works) {
    const { number, name } = work.rule
    const count = counts.get(number) ?? { name, all: 0, stale: 0 }
    counts.set(number, count)
    count.all++
    if (!isFresh(work)) count.stale++
    for (const input of work.inputs) {
      const maker = input === NO_FILE ? null : makers.of(input)
      if (maker) edges.add(`  r${maker.rule.number} -> r${number}`)
    }
  }
  const lines = [...counts].map(
    ([number, { name, all, stale }]) =>
      `  r${number} [label=${quote(`${name} x ${all}`)}${stale ? ', style=filled, fillcolor=khaki' : ''}]`,
  )
  return [...lines, ...edges]
}

const isFresh = ({ state }: Work): boolean => state === 'fresh' || state === 'done' || state === 'absent'

const quote = (text: string): string =>
  `"${text.replaceAll(/["\\]/g, String.raw`\$&`).replaceAll('\n', String.raw`\n`)}"`
