import type { RunEvent } from '../../core/events.ts'
import { formatDuration, formatPercent, plural } from '../format.ts'
import { clean } from '../text.ts'

/** What one node did. */
export interface NodeFigures {
  readonly name: string
  readonly cpus: number
  readonly joinedAt: number
  /** Null while it takes part. */
  leftAt: number | null
  isLost: boolean
  /** Tasks that ended well there. */
  done: number
  /** Running time times CPUs. */
  busyMs: number
}

/** Number of nodes that are named; of more, only what they have in common is shown. */
const NAMED = 6

/** The nodes of a run, and what each did. */
export class NodeStatistics {
  readonly all: NodeFigures[] = []
  /** CPU time that nodes have offered which left, or that others offered before these joined. */
  #offered = 0
  #since = 0
  #cpus = 0

  /** CPUs of the nodes that take part. */
  get cpus(): number {
    return this.#cpus
  }

  /** CPU time that the nodes have offered so far. */
  offered(now: number): number {
    return this.#offered + this.#cpus * Math.max(0, now - this.#since)
  }

  observe(event: Extract<RunEvent, { type: 'run-started' | 'node-joined' | 'node-left' }>): void {
    switch (event.type) {
      case 'run-started':
        for (const { name, cpus } of event.nodes) this.#add(name, cpus, event.at)
        break
      case 'node-joined':
        this.#add(event.name, event.cpus, event.at)
        break
      case 'node-left': {
        const node = this.all[event.node]
        if (!node || node.leftAt !== null) break
        node.leftAt = event.at
        node.isLost = event.isLost
        this.#change(-node.cpus, event.at)
      }
    }
  }

  ran(node: number, busyMs: number): void {
    const figures = this.all[node]
    if (figures) figures.busyMs += busyMs
  }

  done(node: number): void {
    const figures = this.all[node]
    if (figures) figures.done++
  }

  /** What each did, for the summary; null where there is one node. */
  text(now: number): string | null {
    if (this.all.length < 2) return null
    const named = this.all.slice(0, NAMED).map(node => this.#describe(node, now))
    const more = this.all.length > NAMED ? `, and ${this.all.length - NAMED} more` : ''
    return `${plural(this.all.length, 'node')}: ${named.join(', ')}${more}`
  }

  #describe({ name, cpus, joinedAt, leftAt, isLost, done, busyMs }: NodeFigures, now: number): string {
    const offered = cpus * Math.max(1, (leftAt ?? now) - joinedAt)
    const used = formatPercent(Math.min(1, busyMs / offered))
    const end = leftAt === null ? '' : `; ${isLost ? 'lost' : 'given back'} after ${formatDuration(leftAt)}`
    return `${clean(name)} ${plural(done, 'task')} (${used} used${end})`
  }

  #add(name: string, cpus: number, at: number): void {
    this.all.push({ name, cpus, joinedAt: at, leftAt: null, isLost: false, done: 0, busyMs: 0 })
    this.#change(cpus, at)
  }

  #change(cpus: number, at: number): void {
    this.#offered = this.offered(at)
    this.#since = at
    this.#cpus += cpus
  }
}
