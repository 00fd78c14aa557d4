import type { GraphEdge, GraphNode } from '../src/report/dashboard/protocol.ts'

export const NODE_WIDTH = 168
export const NODE_HEIGHT = 54
const GAP_X = 64
const GAP_Y = 18

export interface Placed {
  node: GraphNode
  x: number
  y: number
}

export interface Layout {
  nodes: Placed[]
  width: number
  height: number
}

/** From left to right in layers: each node is right of all that feed it. Edges that close a circle are left out of account. */
export function layoutOf(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Layout {
  const layers = layersOf(nodes, edges)
  const columns: GraphNode[][] = []
  for (const node of nodes) (columns[layers.get(node.id) ?? 0] ??= []).push(node)
  const filled = columns.filter(column => column !== undefined)
  arrange(filled, edges)
  const tallest = Math.max(...filled.map(column => column.length), 1)
  const height = tallest * (NODE_HEIGHT + GAP_Y) + GAP_Y
  const placed = filled.flatMap((column, i) => {
    const used = column.length * (NODE_HEIGHT + GAP_Y) - GAP_Y
    const top = (height - used) / 2
    return column.map((node, j) => ({
      node,
      x: GAP_Y + i * (NODE_WIDTH + GAP_X),
      y: top + j * (NODE_HEIGHT + GAP_Y),
    }))
  })
  return { nodes: placed, width: GAP_Y * 2 + filled.length * (NODE_WIDTH + GAP_X) - GAP_X, height }
}

function layersOf(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Map<string, number> {
  const sources = new Map<string, string[]>()
  for (const { from, to } of edges) if (from !== to) sources.set(to, [...(sources.get(to) ?? []), from])
  const layers = new Map<string, number>()
  const open = new Set<string>()
  const layer = (id: string): number => {
    const known = layers.get(id)
    if (known !== undefined) return known
    if (open.has(id)) return -1
    open.add(id)
    const value = 1 + Math.max(-1, ...(sources.get(id) ?? []).map(layer))
    open.delete(id)
    layers.set(id, value)
    return value
  }
  for (const { id } of nodes) layer(id)
  return layers
}

/** Sorts each column by where its neighbours are, a few times, so that fewer edges cross. */
function arrange(columns: GraphNode[][], edges: readonly GraphEdge[]): void {
  const neighbours = new Map<string, string[]>()
  for (const { from, to } of edges) {
    neighbours.set(from, [...(neighbours.get(from) ?? []), to])
    neighbours.set(to, [...(neighbours.get(to) ?? []), from])
  }
  for (let round = 0; round < 4; round++) {
    for (const column of round % 2 === 0 ? columns : columns.toReversed()) {
      const places = new Map<string, number>()
      for (const other of columns) other.forEach((node, i) => places.set(node.id, (i + 0.5) / other.length))
      const weight = (node: GraphNode): number => {
        const around = (neighbours.get(node.id) ?? []).map(id => places.get(id) ?? 0.5)
        return around.length === 0 ? 0.5 : around.reduce((sum, one) => sum + one, 0) / around.length
      }
      const weights = new Map(column.map(node => [node.id, weight(node)]))
      column.sort((a, b) => (weights.get(a.id) ?? 0) - (weights.get(b.id) ?? 0))
    }
  }
}
