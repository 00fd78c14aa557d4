import type { LinkLine } from '../../stream/board/snapshot.ts'
import { byteText } from '../../stream/run/progress.ts'
import type { Sent } from './messages.ts'

type Link = Omit<LinkLine, 'rate'>

/** Bytes that went from one node to the next, by pair. */
export class Links {
  readonly #names: readonly string[]
  #before = new Map<string, number>()
  #at = 0

  constructor(names: readonly string[]) {
    this.#names = names
  }

  #all(sent: readonly (readonly Sent[])[]): Map<string, Link> {
    const links = new Map<string, Link>()
    for (const [source, ways] of sent.entries()) {
      for (const { chain, isByCoordinator: byCoordinator, bytes } of ways) {
        const hops = [source, ...chain].map(node => this.#names[node] ?? '?')
        for (let i = 1; i < hops.length; i++) {
          const from = hops[i - 1] as string
          const to = hops[i] as string
          const key = `${from}\n${to}\n${byCoordinator}`
          links.set(key, { from, to, byCoordinator, bytes: bytes + (links.get(key)?.bytes ?? 0) })
        }
      }
    }
    return links
  }

  /** Each pair, with its rate since the last call; at the first it is not known. */
  look(sent: readonly (readonly Sent[])[], now: number): (Link & { readonly rate: number | undefined })[] {
    const links = this.#all(sent)
    const seconds = Math.max(1, now - this.#at) / 1000
    const found = [...links].map(([key, link]) => ({
      ...link,
      rate: this.#at === 0 ? undefined : (link.bytes - (this.#before.get(key) ?? 0)) / seconds,
    }))
    this.#before = new Map([...links].map(([key, { bytes }]) => [key, bytes]))
    this.#at = now
    return found
  }

  /** A line with the rate of each pair since the last call; undefined when nothing went between nodes. */
  rates(sent: readonly (readonly Sent[])[], now: number): string | undefined {
    const parts = this.look(sent, now).map(link =>
      link.rate === undefined ? textOf(link) : `${textOf(link)}, ${byteText(link.rate)}/s`,
    )
    return parts.length === 0 ? undefined : `between nodes: ${parts.join('; ')}`
  }

  /** What went in all. */
  total(sent: readonly (readonly Sent[])[]): string | undefined {
    const parts = [...this.#all(sent).values()].map(textOf)
    return parts.length === 0 ? undefined : `between nodes: ${parts.join('; ')}`
  }
}

const textOf = ({ from, to, byCoordinator, bytes }: Link): string =>
  `${from} → ${to}${byCoordinator ? ' through here' : ''} ${byteText(bytes)}`
