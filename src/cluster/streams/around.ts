import type { NodesLine } from '../../stream/board/snapshot.ts'
import { Links } from './links.ts'
import type { NodeOfRun, Sent } from './messages.ts'

/** Milliseconds over which rates are taken, at least. */
const SPAN = 1000
/** Bytes of the line that a board has room for: see preload/board.h. */
const ROOM = 16 << 10

/** What `stream ps` on a node says of the others: where the steps are, and what goes from node to node. */
export class Around {
  readonly #me: number
  readonly #nodes: readonly NodeOfRun[]
  readonly #links: Links
  readonly #places = Object.create(null) as Record<string, string[]>
  #at = -Infinity
  #said = ''

  constructor(me: number, nodes: readonly NodeOfRun[]) {
    this.#me = me
    this.#nodes = nodes
    this.#links = new Links(nodes.map(({ name }) => name))
    for (const { name, steps } of nodes) for (const [step] of steps) (this.#places[step] ??= []).push(name)
  }

  /** The line, when it has to be said anew. */
  line(sent: readonly Sent[], now: number): string | undefined {
    if (now - this.#at < SPAN) return undefined
    this.#at = now
    const all = this.#nodes.map((_, node) => (node === this.#me ? sent : []))
    const links = this.#links
      .look(all, now)
      .map(link => ({ ...link, rate: Math.round(link.rate ?? 0) }))
      .toSorted((a, b) => b.rate - a.rate || b.bytes - a.bytes)
    const name = this.#nodes[this.#me]?.name ?? '?'
    const line: NodesLine = { type: 'nodes', name, places: this.#places, links }
    // The slowest links go where there is no room for all, and then the places.
    while (sizeOf(line) > ROOM && line.links.length > 0) line.links.pop()
    if (sizeOf(line) > ROOM) Object.assign(line, { places: {}, links })
    while (sizeOf(line) > ROOM) line.links.pop()
    const text = JSON.stringify(line)
    if (text === this.#said) return undefined
    this.#said = text
    return text
  }
}

const sizeOf = (line: NodesLine): number => Buffer.byteLength(JSON.stringify(line))
