/**
 * Who is alive, decided from heartbeats alone: TCP keeps silent for seconds after a short cut, and a stopped process keeps
 * its connection. Both sides are pure: the time comes in, decisions come out.
 *
 * An agent asks the coordinator each second. An answer renews its lease from the moment at which it asked, so what happened
 * on the way cannot make the lease longer. The coordinator waits longer than a lease lasts before it calls an agent dead:
 * when work is begun elsewhere, an agent that was cut off has ended its own. No agent comes back into an old incarnation:
 * an agent that was lost is started anew, with nothing.
 */

/** Milliseconds. A stop of 4 s and a cut of 3 s, with the silence of TCP after it, are below all limits. */
export const LEASE = {
  /** Between two questions. */
  every: 1000,
  /** Nothing new is sent to an agent that was silent for so long. */
  suspect: 5000,
  /** An agent without an answer for so long ends all that it runs. */
  agent: 12_000,
  /** The coordinator gives up an agent that was silent for so long. */
  dead: 15_000,
} as const

export type LeaseTimes = Readonly<Record<keyof typeof LEASE, number>>

/** The same where an agent is given up after another time; milliseconds. */
export const leaseFor = (dead: number): LeaseTimes => ({
  every: dead / 15,
  suspect: dead / 3,
  agent: dead * 0.8,
  dead,
})

export type AgentAction = { ask: number } | 'end' | null

/** The agent's side. */
export class AgentLease {
  readonly #times: LeaseTimes
  #renewedAt: number
  #askedAt = -Infinity
  #question = 0
  /** When the questions that have no answer yet were asked. */
  readonly #open = new Map<number, number>()
  #isOver = false

  constructor(now: number, times: LeaseTimes = LEASE) {
    this.#times = times
    this.#renewedAt = now
  }

  /** Until when what it runs may go on, as things stand. */
  get lasts(): number {
    return this.#renewedAt + this.#times.agent
  }

  /** Nothing more may begin: a process that was stopped finds that out before it looks at what has come meanwhile. */
  isExpired(now: number): boolean {
    return this.#isOver || now >= this.lasts
  }

  /** To be called often. `ask` is to be sent; `end`, said once, means that all work must end before anything else happens. */
  tick(now: number): AgentAction {
    if (this.#isOver) return null
    if (this.isExpired(now)) {
      this.#isOver = true
      return 'end'
    }
    if (now - this.#askedAt < this.#times.every) return null
    this.#askedAt = now
    this.#open.set(++this.#question, now)
    return { ask: this.#question }
  }

  answered(question: number): void {
    const askedAt = this.#open.get(question)
    if (askedAt === undefined) return
    // Answers may overtake each other; the latest question counts.
    this.#renewedAt = Math.max(this.#renewedAt, askedAt)
    for (const open of this.#open.keys()) if (open <= question) this.#open.delete(open)
  }
}

export type Health = 'alive' | 'suspect' | 'dead'

/** The coordinator's side, for one incarnation of one agent. */
export class CoordinatorLease {
  readonly incarnation: number
  readonly #times: LeaseTimes
  #heardAt: number
  #health: Health = 'alive'

  constructor(incarnation: number, now: number, times: LeaseTimes = LEASE) {
    this.incarnation = incarnation
    this.#heardAt = now
    this.#times = times
  }

  get health(): Health {
    return this.#health
  }

  /** Returns the question to answer, or null when it is of another incarnation or comes too late. */
  asked(incarnation: number, question: number, now: number): number | null {
    if (incarnation !== this.incarnation || this.tick(now) === 'dead') return null
    this.#heardAt = now
    this.#health = 'alive'
    return question
  }

  tick(now: number): Health {
    if (this.#health === 'dead') return 'dead'
    const silence = now - this.#heardAt
    if (silence >= this.#times.dead) this.#health = 'dead'
    else if (silence >= this.#times.suspect) this.#health = 'suspect'
    return this.#health
  }

  /** The connection is closed, or the process is known to have ended. */
  lost(): void {
    this.#health = 'dead'
  }
}
