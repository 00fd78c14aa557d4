import { byteText } from '../../stream/run/progress.ts'
import type { Sent } from './messages.ts'

/** Bytes that went from one node to the next, by pair. */
export class Links {
  readonly #names: readonly string[]
  #before = new Map<string, number>()
  #at = 0

  constructor(names: readonly string[]) {
    this.#names = names
  }

  #bytes(sent: readonly (readonly Sent[])[]): Map<string, number> {
    const links = new Map<string, number>()
    const add = (from: string, to: string, bytes: number): void => {
      const name = `${from} → ${to}`
      links.set(name, (links.get(name) ?? 0) + bytes)
    }
    for (const [source, ways] of sent.entries()) {
      for (const { chain, isByCoordinator, bytes } of ways) {
        const hops = [source, ...chain].map(node => this.#names[node] ?? '?')
        const ends = isByCoordinator ? ' through here' : ''
        for (let i = 1; i < hops.length; i++) add(hops[i - 1] ?? '', `${hops[i]}${ends}`, bytes)
      }
    }
    return links
  }

  /** A line with the rate of each pair since the last call; undefined when nothing went between nodes. */
  rates(sent: readonly (readonly Sent[])[], now: number): string | undefined {
    const bytes = this.#bytes(sent)
    const seconds = Math.max(1, now - this.#at) / 1000
    const isFirst = this.#at === 0
    const parts = [...bytes].map(([name, count]) => {
      const rate = isFirst ? '' : `, ${byteText((count - (this.#before.get(name) ?? 0)) / seconds)}/s`
      return `${name} ${byteText(count)}${rate}`
    })
    this.#before = bytes
    this.#at = now
    return parts.length === 0 ? undefined : `between nodes: ${parts.join('; ')}`
  }

  /** What went in all. */
  total(sent: readonly (readonly Sent[])[]): string | undefined {
    const parts = [...this.#bytes(sent)].map(([name, count]) => `${name} ${byteText(count)}`)
    return parts.length === 0 ? undefined : `between nodes: ${parts.join('; ')}`
  }
}
