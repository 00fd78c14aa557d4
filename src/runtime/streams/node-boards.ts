import type { PlacedCommand } from '../../cluster/streams/messages.ts'
import { stepsOfSites } from '../../cluster/streams/site-programs.ts'
import { StreamSites } from '../../cluster/streams/stream-sites.ts'
import type { SitesOptions } from '../../cluster/streams/stream-sites.ts'
import type { NodeSpec } from '../../cluster/launch/node-spec.ts'
import { MillraceError } from '../../core/errors.ts'
import type { Plan } from '../../stream/board/plan.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import type { NodeOptions } from '../runtime-options.ts'
import type { BoardEvents, Boards, BoardsEnd, StepInstance } from './boards.ts'
import { MOST_STEPS } from './local-boards.ts'

/** The boards of a workflow on several nodes. Its steps are pinned to nodes before they start: what streams where follows from it. */
export class NodeBoards implements Boards {
  readonly steps = stepsOfSites
  readonly dir = '.'
  readonly env = {}
  readonly unseen = new Set<string>()
  nodes: readonly NodeOptions[] = []
  instances: readonly StepInstance[] = []
  readonly #sites: StreamSites
  /** Said before the run was there. */
  readonly #early: string[] = []
  #events: BoardEvents | null = null
  #isDeadlocked = false
  /** Milliseconds between lines that say how much goes between nodes. */
  readonly #heartbeat: number
  #saidRates = Date.now()

  constructor(plan: Plan, file: string, specs: readonly NodeSpec[], options: SitesOptions) {
    this.#heartbeat = options.heartbeat ?? HEARTBEAT
    this.#sites = new StreamSites(plan, file, specs, options, {
      note: text => this.#note(text),
      looked: () => this.#looked(),
      lost: (node, reason) => this.#events?.nodeLost(node, reason),
    })
  }

  /** Starts a process on each node, and waits until all have called. */
  async reach(commands: readonly StepCommand[]): Promise<void> {
    const sites = this.#sites
    await sites.reach(commands)
    this.nodes = sites.specs.map(({ name, by }, i) => {
      const { cpus = 1, memory = 0 } = sites.hellos[i] ?? {}
      const tags = [tagOf(name)]
      return {
        description: { name, cpus, memory, tags, ioExecutors: MOST_STEPS },
        ports: {
          openThread: refuseThread,
          processes: sites.nodes[i]!.programs,
          isLocal: by === 'local',
          attach: () => undefined,
        },
      }
    })
    const counts = new Map<string, number>()
    for (const { step, times } of sites.placed.flat()) counts.set(step, (counts.get(step) ?? 0) + times)
    const instances = sites.placed.flatMap((placed, i) => {
      const tags = [tagOf(sites.specs[i]!.name)]
      return placed.flatMap(command => numbersOf(command).map(number => ({ command, number, tags })))
    })
    this.instances = instances.map(one => ({ ...one, isOneOfMany: (counts.get(one.command.step) ?? 0) > 1 }))
  }

  begin(run: string, events: BoardEvents): void {
    this.#events = events
    for (const text of this.#early.splice(0)) this.#note(text)
    this.#sites.start(run)
  }

  look(): Promise<Snapshot> {
    return Promise.resolve(this.#sites.snapshot)
  }

  async finish(isOk: boolean, isCut: boolean): Promise<BoardsEnd> {
    if (isCut) this.#sites.stop()
    const end = await this.#sites.finish(isOk)
    if (end.links !== undefined) this.#events?.note('info', end.links)
    return end
  }

  close(): void {
    this.#sites.close()
  }

  #note(text: string): void {
    if (text === '') return
    if (this.#events) this.#events.note('warning', text)
    else this.#early.push(text)
  }

  /** Steps that wait for each other on several nodes would do so for ever. */
  #looked(): void {
    const events = this.#events
    if (!events || this.#isDeadlocked) return
    const circle = this.#sites.deadlock((step, number) => events.hasEnded(step, number))
    if (circle !== null) {
      this.#isDeadlocked = true
      events.note('warning', `these steps wait for each other and are stopped: ${circle}`)
      this.#sites.stop()
    }
    if (Date.now() - this.#saidRates >= this.#heartbeat) this.#sayRates(events)
  }

  #sayRates(events: BoardEvents): void {
    this.#saidRates = Date.now()
    const { rates } = this.#sites
    if (rates !== undefined) events.note('info', rates)
  }
}

/** Milliseconds. */
const HEARTBEAT = 30_000

const tagOf = (node: string): string => `node=${node}`

const numbersOf = ({ first, times }: PlacedCommand): number[] =>
  Array.from({ length: times }, (_, n) => first + n)

const refuseThread = (): never => {
  throw new MillraceError(
    'MR_INTERNAL',
    'steps of a coordination file are programs, and were to run on a thread',
  )
}
