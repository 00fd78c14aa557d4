import type { NodeModel, Platform } from './machine/platform.ts'

/** Which nodes are lost, and when; milliseconds. */
export interface FailureOptions {
  /** These, at these times. */
  readonly lose?: readonly { readonly node: string; readonly at: number }[]
  /** Mean time between two losses, of any node. */
  readonly every?: number
  /** A node that was lost, or whose time is over, is replaced by one like it after so long. @default never */
  readonly replaceAfter?: number
  /** Each node ends by itself after so long, as in an allocation. @default never */
  readonly wallTime?: number
}

/** What happens to nodes. */
export interface Members {
  /** Milliseconds. */
  readonly now: number
  after(delay: number, then: () => void): void
  /** Tasks that have ended so far, less those that are made again. */
  readonly ended: number
  /** Numbers of the nodes that are there. */
  present(): readonly number[]
  lose(node: number, reason: string, isLost: boolean): void
  /** Nothing starts there that lasts longer. */
  limit(node: number, until: number): void
  /** Nothing more starts there, and what only it has is moved. */
  drain(node: number, until: number): void
  join(model: NodeModel): number
  /** No node joins any more. */
  closed(): void
}

/** Part of its time in which nothing more begins on a node that ends by itself, and its bounds: as with nodes from Slurm. */
const LAST_PART = 0.05
const [SHORTEST, LONGEST] = [2000, 60_000]

/** Nodes that may join, for each that there was, without a task more having ended. */
const MOST_IN_VAIN = 20

/** Takes nodes away and brings new ones, on the virtual clock. */
export class Failures {
  readonly #options: FailureOptions
  readonly #members: Members
  readonly #random: () => number
  readonly #models: NodeModel[]
  readonly #count: number
  /** Nodes that will join. */
  #expected = 0
  #isOver = false
  /** Nodes that joined since a task last ended, and how many had ended then. */
  #inVain = { joined: 0, ended: 0 }

  constructor(options: FailureOptions, { nodes }: Platform, members: Members, random: () => number) {
    this.#options = options
    this.#members = members
    this.#random = random
    this.#models = [...nodes]
    this.#count = nodes.length
    for (const { node, at } of options.lose ?? []) {
      const index = nodes.findIndex(({ name }) => name === node)
      members.after(at, () => this.#lose(index, 'it was lost', true))
    }
    for (const index of nodes.keys()) this.#begin(index)
    if (options.every !== undefined) this.#loseNext(options.every)
  }

  /** What is lost is replaced. */
  get mayGrow(): boolean {
    return this.#options.replaceAfter !== undefined
  }

  /** A node is on its way, so that what waits may yet begin. */
  get expectsNodes(): boolean {
    return this.#expected > 0 || (this.mayGrow && this.#options.wallTime !== undefined && !this.#isOver)
  }

  #loseNext(mean: number): void {
    this.#members.after(-Math.log(1 - this.#random()) * mean, () => {
      const present = this.#members.present()
      const chosen = present[Math.floor(this.#random() * present.length)]
      if (chosen !== undefined) this.#lose(chosen, 'it was lost', true)
      if (present.length > 1 || this.mayGrow) this.#loseNext(mean)
    })
  }

  /** A node with a time of its own is drained towards its end, and given back then. */
  #begin(index: number): void {
    const { wallTime } = this.#options
    if (wallTime === undefined) return
    const members = this.#members
    const last = Math.min(LONGEST, Math.max(SHORTEST, wallTime * LAST_PART))
    const until = members.now + wallTime
    members.limit(index, until - Math.min(last, wallTime))
    members.after(wallTime - Math.min(last, wallTime), () => members.drain(index, until))
    members.after(wallTime, () => this.#lose(index, 'its time was over', false))
  }

  #lose(index: number, reason: string, isLost: boolean): void {
    const members = this.#members
    if (!members.present().includes(index)) return
    members.lose(index, reason, isLost)
    const { replaceAfter } = this.#options
    if (replaceAfter === undefined) return
    this.#expected++
    members.after(replaceAfter, () => {
      this.#expected--
      if (this.#isInVain()) {
        this.#isOver = true
        return members.closed()
      }
      const model = this.#models[index] as NodeModel
      const next = { ...model, name: `${model.name}'` }
      const joined = members.join(next)
      this.#models[joined] = next
      this.#begin(joined)
    })
  }

  /** New nodes do not help: what waits can end on none of them in time, or as much is lost as is made. */
  #isInVain(): boolean {
    const ended = Math.max(this.#members.ended, this.#inVain.ended)
    const joined = ended === this.#inVain.ended ? this.#inVain.joined + 1 : 0
    this.#inVain = { joined, ended }
    return joined > MOST_IN_VAIN * this.#count
  }
}
