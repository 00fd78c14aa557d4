import type { Away } from '../../storage/away.ts'
import { stampOf } from '../files/tree.ts'
import { NodeLost } from './remote-processes.ts'

/** The folder of a node, as a file that is there sees it. */
export interface Holder {
  readonly node: number
  readonly isLost: boolean
  /** How many others get something from there now. */
  serving: number
  /** Writes what is at a path there to a path here; false when it is not there any more. */
  fetchTo(there: string, path: string): Promise<boolean>
  /** It is here now, with this stamp. */
  cameHome(away: AwayFile, stamp: string): void
  /** Removes all that is there of it. */
  clear(away: AwayFile): void
}

let last = 0

/** What a task wrote on a node that does not see our folders, and that stays there. Nodes that read it have copies. */
export class AwayFile implements Away {
  /** By this the nodes' folders know it until it has a stamp of its own. */
  readonly id = `away-${++last}`
  readonly bytes: number
  /** The path here to which it comes. */
  readonly place: string
  readonly #holders = new Map<Holder, string>()
  /** What it looks like here, since it came. */
  stamp: string | null = null
  over = (): void => undefined
  bringSoon: (() => Promise<void>) | null = null
  #relays = 0

  constructor(maker: Holder, there: string, bytes: number, place: string) {
    this.bytes = bytes
    this.place = place
    this.#holders.set(maker, there)
  }

  /** Its content has this stamp. */
  isAt(stamp: string | undefined): boolean {
    return stamp !== undefined && (stamp === this.id || stamp === this.stamp)
  }

  get isLost(): boolean {
    return this.stamp === null && this.#live().length === 0
  }

  isOnlyOn(node: number): boolean {
    return this.#live().every(([holder]) => holder.node === node)
  }

  /** A node has it now, under this path there. */
  has(holder: Holder, there: string): void {
    if (!this.#holders.has(holder)) this.#holders.set(holder, there)
  }

  /** What was at the path there is not there any more. */
  gone(holder: Holder, there: string): void {
    if (this.#holders.get(holder) === there) this.#holders.delete(holder)
  }

  /** Others have it, too. */
  mayForget(holder: Holder): boolean {
    return this.#live().some(([other]) => other !== holder)
  }

  /** The node that serves fewest, and where it is there; null when no node has it. */
  source(to: Holder | null = null): [holder: Holder, there: string] | null {
    const others = this.#live().filter(([holder]) => holder !== to)
    others.sort(([one], [other]) => one.serving - other.serving)
    return others[0] ?? null
  }

  #live(): [Holder, string][] {
    return [...this.#holders].filter(([holder]) => !holder.isLost)
  }

  async bring(path: string): Promise<void> {
    await this.#fetchTo(path)
    this.stamp = await stampOf(path)
    if (this.stamp !== null) for (const [holder] of this.#live()) holder.cameHome(this, this.stamp)
  }

  /** A copy here for one node that cannot reach the others; to be removed by the caller. */
  async relayed(): Promise<string> {
    const path = `${this.place}.relay-${++this.#relays}`
    await this.#fetchTo(path)
    return path
  }

  async #fetchTo(path: string): Promise<void> {
    for (let from = this.source(); from; from = this.source()) {
      const [holder, there] = from
      try {
        holder.serving++
        if (await holder.fetchTo(there, path)) return
        this.gone(holder, there)
      } catch (error) {
        if (!(error instanceof NodeLost)) throw error
      } finally {
        holder.serving--
      }
    }
    throw new NodeLost()
  }

  drop(): void {
    for (const [holder] of this.#live()) holder.clear(this)
    this.#holders.clear()
  }
}
