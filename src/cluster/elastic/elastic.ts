import type { AgentOrders } from '../launch/agent-command.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import { Scaler } from './scaler.ts'
import type { ScalerView } from './scaler.ts'
import { SlurmJobs } from './slurm-jobs.ts'
import type { SlurmWish } from './slurm-options.ts'

/** What growing and shrinking asks of the run. */
export interface ElasticHost {
  /** Announces a node; returns the number that its agent calls with. */
  enlist(spec: NodeSpec): number
  ordersFor(member: number): AgentOrders
  /** The agent of a node did not come. */
  agentEnded(member: number, reason: string): void
  view(): Pick<ScalerView, 'waiting' | 'meanMs'>
  /** Nodes that take part, by the number of their agent. */
  nodes(): { member: number; cpus: number; isIdle: boolean }[]
  /** When the node ends by itself, in milliseconds from now, and whether anything more may start there. */
  changed(member: number, isPaused: boolean, left: number): void
  dismiss(member: number): void
  /** No node will come any more. */
  giveUp(reason: string): void
  note(level: 'info' | 'warning', text: string): void
}

interface Job {
  readonly id: string
  readonly members: readonly number[]
  /** When nothing is to run there any more, on the clock of `performance.now`; Infinity while it is not known. */
  until: number
  /** Before the end of the job; null while that is not known. */
  margin: number | null
  /** An agent of it has called. */
  hasCome: boolean
}

const TICK = 1000
const LOOK_EVERY = 5000
/** After this many jobs in turn that ended before an agent called, no more are asked for. */
const MOST_FAILURES = 3
/** Nothing is to run in the last part of an allocation; milliseconds. */
const marginOf = (left: number): number => Math.max(2000, Math.min(60_000, left * 0.05))

/** Asks Slurm for nodes while work waits, and gives them back. */
export class Elastic {
  readonly #wish: SlurmWish
  readonly #jobs: SlurmJobs
  readonly #scaler: Scaler
  readonly #host: ElasticHost
  readonly #byId = new Map<string, Job>()
  readonly #here = new Set<number>()
  readonly #leaving = new Set<number>()
  #asking = 0
  #count = 0
  #failures = 0
  #lookedAt = -Infinity
  #isLooking = false
  #isOver = false
  #timer: NodeJS.Timeout | null = null

  constructor(run: string, wish: SlurmWish, host: ElasticHost) {
    this.#wish = wish
    this.#jobs = new SlurmJobs(run, wish.words)
    this.#scaler = new Scaler(wish)
    this.#host = host
  }

  start(): void {
    this.#timer = setInterval(() => this.#tick(), TICK)
    this.#timer.unref()
    this.#tick()
  }

  /** The agent has called. Resolves when it is known how long the node stays. */
  async joined(member: number): Promise<void> {
    this.#failures = 0
    const job = this.#jobOf(member)
    if (job) job.hasCome = true
    await this.#look()
    this.#here.add(member)
  }

  /** The node takes part. */
  told(member: number): void {
    this.#tellEnd(member)
  }

  left(member: number): void {
    this.#here.delete(member)
    this.#leaving.delete(member)
    this.#scaler.left(member)
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#timer) clearInterval(this.#timer)
    this.#jobs.cancelAll()
  }

  #tick(): void {
    if (this.#isOver) return
    const now = performance.now()
    if (now - this.#lookedAt > LOOK_EVERY) void this.#look()
    const nodes = this.#host.nodes().filter(({ member }) => this.#here.has(member))
    for (const { member, isIdle } of nodes) {
      if (!isIdle || !this.#leaving.has(member)) continue
      this.#here.delete(member)
      this.#host.dismiss(member)
    }
    const members = [...this.#byId.values()].flatMap(job => job.members)
    const coming = this.#asking + members.filter(member => !this.#here.has(member)).length
    const { ask, giveBack } = this.#scaler.decide({
      now,
      coming,
      ...this.#host.view(),
      nodes: nodes.map(({ member, cpus, isIdle }) => ({
        id: member,
        cpus,
        isIdle,
        until: this.#until(member),
      })),
    })
    for (const member of giveBack) {
      this.#leaving.add(member)
      this.#host.changed(member, true, 0)
    }
    for (let left = ask; left > 0; left -= this.#wish.block) void this.#ask(Math.min(left, this.#wish.block))
  }

  async #ask(nodes: number): Promise<void> {
    this.#asking += nodes
    const members = Array.from({ length: nodes }, () =>
      this.#host.enlist({ by: 'block', name: `slurm${++this.#count}`, cpus: null }),
    )
    try {
      const id = await this.#jobs.submit(nodes, this.#host.ordersFor(members[0] as number))
      this.#byId.set(id, { id, members, until: Infinity, margin: null, hasCome: false })
      if (this.#isOver) await this.#jobs.cancel(id)
    } catch (error) {
      const reason = (error as Error).message.split('\n')[0] ?? ''
      for (const member of members) this.#host.agentEnded(member, reason)
      this.#failed(reason)
    } finally {
      this.#asking -= nodes
    }
  }

  /** One question for all jobs. */
  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    this.#lookedAt = performance.now()
    // A job that is submitted meanwhile may be missing among the answers.
    const known = [...this.#byId.values()]
    const states = await this.#jobs.look()
    this.#isLooking = false
    if (!states || this.#isOver) return
    for (const job of known) {
      const state = states.get(job.id)
      if (!state) await this.#ended(job)
      else if (state.isRunning) {
        job.margin ??= marginOf(state.left)
        job.until = performance.now() + state.left - job.margin
        for (const member of job.members) this.#tellEnd(member)
      }
    }
  }

  async #ended(job: Job): Promise<void> {
    this.#byId.delete(job.id)
    const said = await this.#jobs.ended(job.id)
    const reason = `job ${job.id} ended${said ? `: ${said}` : ''}`
    for (const member of job.members) this.#host.agentEnded(member, reason)
    if (!job.hasCome) this.#failed(reason)
  }

  #failed(reason: string): void {
    if (this.#isOver) return
    if (++this.#failures < MOST_FAILURES) return
    this.#host.giveUp(`Slurm gave no node: ${reason}`)
    this.end()
  }

  #jobOf(member: number): Job | undefined {
    for (const job of this.#byId.values()) if (job.members.includes(member)) return job
    return undefined
  }

  #until(member: number): number {
    return this.#jobOf(member)?.until ?? Infinity
  }

  #tellEnd(member: number): void {
    if (!this.#here.has(member) || this.#leaving.has(member)) return
    this.#host.changed(member, false, this.#until(member) - performance.now())
  }
}
