import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

interface ProfileNode {
  id: number
  callFrame: { functionName: string; url: string; lineNumber: number }
  positionTicks?: { line: number; ticks: number }[]
}

interface Profile {
  nodes: ProfileNode[]
  samples: number[]
  timeDeltas: number[]
}

interface Entry {
  time: number
  lines: Map<number, number>
}

/** The functions of a .cpuprofile with the most time of their own, with the lines where it is spent. */
export function selfTimes(text: string, top: number): string[] {
  const { nodes, samples, timeDeltas } = JSON.parse(text) as Profile
  const byId = new Map(nodes.map(node => [node.id, node]))
  const entries = new Map<string, Entry>()
  let total = 0
  for (const [i, id] of samples.entries()) {
    const node = byId.get(id)
    const delta = timeDeltas[i] ?? 0
    if (!node) continue
    total += delta
    const name = describe(node)
    const entry = entries.get(name) ?? { time: 0, lines: new Map<number, number>() }
    entry.time += delta
    entries.set(name, entry)
  }
  for (const node of nodes) {
    const lines = entries.get(describe(node))?.lines
    for (const { line, ticks } of node.positionTicks ?? []) lines?.set(line, (lines.get(line) ?? 0) + ticks)
  }
  const order = [...entries].sort((a, b) => b[1].time - a[1].time).slice(0, top)
  const shown = order.map(([name, { time, lines }]) => {
    const share = ((100 * time) / total).toFixed(1).padStart(5)
    return `${share}%  ${(time / 1000).toFixed(1).padStart(8)} ms  ${name}${hottest(lines)}`
  })
  return [`${(total / 1000).toFixed(0)} ms in all`, ...shown]
}

function describe({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string {
  const name = functionName || '(anonymous)'
  if (url === '') return name
  const file = url.replace(/^.*\/(dist|bench|node_modules)\//, '$1/')
  return `${name}  ${sourceOf(url, lineNumber)}${file}:${lineNumber + 1}`
}

const bundles = new Map<string, string[]>()

/** The build joins modules into a few files, in which a comment says where each begins. */
function sourceOf(url: string, lineNumber: number): string {
  if (!/\/dist\/[^/]*\.js$/.test(url)) return ''
  let lines = bundles.get(url)
  if (!lines) bundles.set(url, (lines = readFileSync(fileURLToPath(url), 'utf8').split('\n')))
  for (let at = lineNumber; at >= 0; at--) {
    const found = /^\/\/ (src\/.*\.ts)$/.exec(lines[at] ?? '')
    if (found) return `${found[1]} = `
  }
  return ''
}

function hottest(lines: Map<number, number>): string {
  const ticks = [...lines.values()].reduce((sum, one) => sum + one, 0)
  const best = [...lines].sort((a, b) => b[1] - a[1]).slice(0, 3)
  const shown = best.map(([line, count]) => `${line} ${((100 * count) / ticks).toFixed(0)}%`)
  return shown.length > 0 ? `  (lines ${shown.join(', ')})` : ''
}
