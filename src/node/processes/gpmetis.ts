import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { improve, partition } from '../../general/partition/partition.ts'
import { cutOf } from '../../general/partition/graph.ts'
import type { Graph } from '../../general/partition/graph.ts'

/** How a graph is divided: by gpmetis, by ourselves (`greedy`), or by what is better of the two where gpmetis is installed. */
export const PARTITION_WAYS = ['auto', 'greedy', 'gpmetis'] as const
export type PartitionWay = (typeof PARTITION_WAYS)[number]

/** Milliseconds that gpmetis may take: 100,000 vertices take one second. */
const TIME_LIMIT = 60_000
/** Sums of weights must fit into 32 bits. */
const MOST_SUM = 1e9

/** The part of each vertex. However it is found, each part gets its share of every band. */
export function divide(graph: Graph, shares: readonly number[], way: PartitionWay = 'auto'): Int32Array {
  if (shares.length < 2) return new Int32Array(graph.size)
  if (way === 'greedy') return partition(graph, shares)
  const found = gpmetis(graph, shares)
  if (found) improve(graph, found, shares)
  if (way === 'gpmetis') return found ?? refuse()
  const own = partition(graph, shares)
  return found && cutOf(graph, found) <= cutOf(graph, own) ? found : own
}

function refuse(): never {
  throw new MillraceError(
    'MR_OPTION',
    '--partition gpmetis: gpmetis is not installed, or could not divide the graph',
    {
      hint: 'Install it (Debian package metis), or write --partition, which does without it.',
    },
  )
}

/** What gpmetis finds; null where it is not installed, or does not answer in time. */
export function gpmetis(graph: Graph, shares: readonly number[]): Int32Array | null {
  if (graph.size <= shares.length) return partition(graph, shares)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-metis-'))
  try {
    const path = join(folder, 'graph')
    const targets = join(folder, 'shares')
    writeFileSync(path, textOf(graph))
    writeFileSync(targets, sharesText(shares, graph.bands))
    // Recursive, because that is the way which takes several bands into account; 50: a twentieth above the share.
    const options = ['-ptype=rb', '-seed=1', '-ufactor=50', `-tpwgts=${targets}`]
    execFileSync('gpmetis', [...options, path, String(shares.length)], {
      timeout: TIME_LIMIT,
      killSignal: 'SIGKILL',
      stdio: 'ignore',
    })
    const lines = readFileSync(`${path}.part.${shares.length}`, 'utf8').trim().split('\n')
    const parts = Int32Array.from(lines, Number)
    const isWhole = parts.length === graph.size && parts.every(part => part >= 0 && part < shares.length)
    return isWhole ? parts : null
  } catch {
    return null
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The format of METIS: a head, then a line for each vertex with its weights, neighbours and bonds; vertices count from 1. */
function textOf({ size, offsets, neighbours, bonds, bands, weights }: Graph): string {
  const scale = (values: Float64Array): number =>
    Math.min(1000, MOST_SUM / values.reduce((sum, value) => sum + value, 1))
  const [heavy, strong] = [scale(weights), scale(bonds)]
  const whole = (value: number, by: number): number => (value > 0 ? Math.max(1, Math.round(value * by)) : 0)
  const lines = [`${size} ${neighbours.length / 2} 011 ${bands}`]
  for (let vertex = 0; vertex < size; vertex++) {
    const words: number[] = []
    for (let band = 0; band < bands; band++)
      words.push(whole(weights[vertex * bands + band] as number, heavy))
    for (let i = offsets[vertex] as number; i < (offsets[vertex + 1] as number); i++) {
      words.push((neighbours[i] as number) + 1, whole(bonds[i] as number, strong))
    }
    lines.push(words.join(' '))
  }
  return `${lines.join('\n')}\n`
}

function sharesText(shares: readonly number[], bands: number): string {
  const sum = shares.reduce((all, share) => all + share, 0)
  const lines: string[] = []
  for (const [part, share] of shares.entries()) {
    for (let band = 0; band < bands; band++) lines.push(`${part} : ${band} = ${share / sum}`)
  }
  return `${lines.join('\n')}\n`
}
