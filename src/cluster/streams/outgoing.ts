import type { FrameReader } from '../link/frames.ts'
import type { ChannelEvents, Channels, Holds } from './channel.ts'
import { carriedId, carryFrame, epochFrame, markFrame, pathOf } from './relay-frame.ts'
import { FLAGS, RELAY } from './messages.ts'
import type { Sent } from './messages.ts'
import type { Routes } from './routes.ts'
import { Way } from './way.ts'
import type { Room, WayEvents } from './way.ts'

/** Chains from one node; more sets of readers than this are served node by node. */
const MOST_CHAINS = 16

export interface OutgoingEvents {
  /** To the relay of this node: all that it has ever sent is to be sent again. */
  again(): void
  /** To the relay of this node: no more bytes of a file for now, or go on. */
  hold(path: string, isHeld: boolean): void
  note(text: string): void
  nameOf(node: number): string
  /** Another node has told of this directory. */
  isTold(directory: string): boolean
  /** Frames that cannot go to a node directly go to the coordinator, which passes them on. */
  byCoordinator: Holder
}

interface Holder {
  pass(frame: Buffer, ...sources: Holds[]): void
}

/** A file that was begun, and on which ways: what follows goes there, too. Other ways lack what came before. */
interface Begun {
  readonly ways: readonly Way[]
  /** One of the ways has no room for more of it. */
  isHeld: boolean
}

/**
 * Frames of this node's relay on their way to the nodes that read the files. Several readers form a chain. Where a chain
 * breaks each of its nodes is served alone; where a node cannot be reached, through the coordinator; and all is sent again,
 * which does no harm to a node that has it already.
 *
 * A way without room stops the files that go there, at the relay. The others go on.
 */
export class Outgoing {
  readonly #me: number
  readonly #routes: Routes
  readonly #channels: Pick<Channels, 'open'>
  readonly #events: OutgoingEvents
  readonly #source: Holds
  readonly #room: Room | undefined
  readonly #ways = new Map<string, Way>()
  readonly #open = new Map<string, Begun>()
  /** Bytes by way, of those that are closed. */
  readonly #sent = new Map<string, number>()
  readonly #lost = new Set<number>()
  readonly #byCoordinator = new Set<number>()
  /** Ends of steps, in order: each is valid when a node has heard it on all ways that lead there. */
  readonly #ended: Buffer[] = []
  #edition = 0
  #epoch = 0
  /** How often all had to be sent again, and for how many of them that is done. */
  #repairs = 0
  #repaired = 0
  #chains = 0
  #isStar = false
  #isOver = false
  /** Ways that the relay overruns. */
  #overrun = 0

  constructor(
    me: number,
    routes: Routes,
    channels: Pick<Channels, 'open'>,
    source: Holds,
    events: OutgoingEvents,
    room?: Room,
  ) {
    this.#me = me
    this.#routes = routes
    this.#channels = channels
    this.#source = source
    this.#events = events
    this.#room = room
  }

  take(type: number, frame: Buffer, content: FrameReader): void {
    if (type === RELAY.ended) {
      this.#ended.push(Buffer.from(frame))
      // What is to be sent again comes before it.
      if (this.#repaired === this.#repairs) this.#mark(this.#ended.length - 1)
      return
    }
    if (type === RELAY.again) {
      this.#repaired = frame.readUInt32LE(frame.length - 4)
      if (this.#repaired !== this.#repairs) return
      this.#edition++
      for (const way of this.#ways.values()) way.repaired()
      for (const index of this.#ended.keys()) this.#mark(index)
      return
    }
    const path = pathOf(content.bytes, content.at)
    const isDirectory = type === RELAY.begin && ((frame.at(-1) ?? 0) & FLAGS.directory) !== 0
    if (isDirectory && this.#events.isTold(path)) return
    if (type === RELAY.begin) {
      const readers = this.#routes.of(path, isDirectory).filter(node => this.#isThere(node))
      const home = isDirectory ? undefined : this.#routes.homeOf(path)
      const ways = this.#waysTo(readers, home)
      if (!isDirectory) this.#begin(path, ways)
      for (const way of ways) this.#pass(way, frame)
      return
    }
    const begun = this.#open.get(path)
    if (!begun) return
    if (type === RELAY.late) {
      for (const way of begun.ways) way.late(path)
      return
    }
    for (const way of begun.ways) this.#pass(way, frame)
    if (isLast(type, frame)) this.#done(path, begun)
  }

  #begin(path: string, ways: readonly Way[]): void {
    const before = this.#open.get(path)
    for (const way of before?.ways ?? []) way.files.delete(path)
    for (const way of ways) way.files.add(path)
    const begun = { ways, isHeld: before?.isHeld ?? false }
    this.#open.set(path, begun)
    this.#look(path, begun)
  }

  #done(path: string, begun: Begun): void {
    this.#open.delete(path)
    for (const way of begun.ways) way.done(path)
    if (begun.isHeld) this.#events.hold(path, false)
  }

  /** Whether the relay may say more of the file. */
  #look(path: string, begun: Begun): void {
    const isHeld = begun.ways.some(way => way.isFull)
    if (isHeld === begun.isHeld) return
    begun.isHeld = isHeld
    this.#events.hold(path, isHeld)
  }

  /** Files that went through it to others are sent again. */
  lost(node: number): void {
    this.#lost.add(node)
    for (const way of this.#ways.values()) {
      if (!way.chain.includes(node)) continue
      way.end()
      this.#close(way, way.chain.length > 1)
    }
  }

  end(): void {
    this.#isOver = true
    for (const way of this.#ways.values()) way.end()
  }

  #isThere(node: number): boolean {
    return node !== this.#me && !this.#lost.has(node)
  }

  #waysTo(readers: readonly number[], home: number | undefined): Way[] {
    const { count } = this.#routes
    const distance = (node: number): number => (node - this.#me + count) % count
    // The home comes first. Chains of different nodes begin at different ones.
    const rest = home === undefined ? readers : readers.filter(node => node !== home)
    const first = home !== undefined && this.#isThere(home) ? [home] : []
    const chain = [...first, ...rest.toSorted((a, b) => distance(a) - distance(b))]
    const isPossible = chain.length > 1 && !this.#isStar
    const known = isPossible ? this.#ways.get(chain.join('.')) : undefined
    if (known) return [known]
    if (isPossible && this.#chains < MOST_CHAINS && !chain.some(node => this.#byCoordinator.has(node))) {
      this.#chains++
      return [this.#way(chain)]
    }
    return chain.map(node => this.#way([node]))
  }

  #way(chain: readonly number[]): Way {
    const [node = -1] = chain
    if (chain.length === 1 && this.#byCoordinator.has(node)) return this.#carriedWay(node)
    const id = chain.join('.')
    const known = this.#ways.get(id)
    if (known) return known
    const way = this.#newWay(id, chain)
    void this.#connect(way)
    return way
  }

  #newWay(id: string, chain: readonly number[]): Way {
    const events: WayEvents = {
      changed: way => {
        for (const path of way.files) {
          const begun = this.#open.get(path)
          if (begun) this.#look(path, begun)
        }
      },
      overrun: isOver => {
        this.#overrun += isOver ? 1 : -1
        if (this.#overrun === 0) this.#source.resume()
        else this.#source.pause()
      },
    }
    const way = new Way(id, chain, events, this.#room)
    this.#ways.set(id, way)
    return way
  }

  /** The node has taken this many bytes of what came to it by the coordinator. */
  taken(node: number, bytes: number): void {
    this.#ways.get(carriedId(node))?.taken(bytes)
  }

  #carriedWay(node: number): Way {
    const id = carriedId(node)
    const known = this.#ways.get(id)
    if (known) return known
    const way = this.#newWay(id, [node])
    const pass = (frame: Buffer): void => {
      const carried = carryFrame(this.#me, node, frame)
      this.#events.byCoordinator.pass(carried, way)
      way.leaves(carried.length)
    }
    way.open({ id, chain: way.chain, pass, end: () => undefined })
    return way
  }

  async #connect(way: Way): Promise<void> {
    const events: ChannelEvents = {
      closed: isInOrder => {
        if (!isInOrder) this.#close(way, true)
      },
    }
    try {
      const channel = await this.#channels.open(this.#me, way.id, way.chain, events)
      if (way.isClosed || this.#isOver) return channel.end()
      way.open(channel)
    } catch (error) {
      if (way.isClosed || this.#isOver) return
      const names = way.chain.map(node => this.#events.nameOf(node)).join(', ')
      const reason = error instanceof Error ? error.message : String(error)
      if (way.chain.length === 1)
        this.#events.note(`no direct connection to ${names} (${reason}): bytes go through the coordinator\n`)
      this.#close(way, true)
    }
  }

  /** What has been sent so far. */
  get sent(): Sent[] {
    const all = new Map(this.#sent)
    for (const { id, sent } of this.#ways.values()) if (sent > 0) all.set(id, (all.get(id) ?? 0) + sent)
    return [...all].map(([id, bytes]) => {
      const isByCoordinator = id.startsWith('c')
      const chain = isByCoordinator ? [Number(id.slice(1))] : id.split('.').map(Number)
      return { chain, isByCoordinator, bytes }
    })
  }

  #pass(way: Way, frame: Buffer): void {
    this.#sayEpoch(way)
    way.pass(frame)
  }

  #sayEpoch(way: Way): void {
    if (way.epoch === this.#epoch) return
    way.epoch = this.#epoch
    way.pass(epochFrame(this.#epoch))
  }

  /** A way that failed is replaced by others when there is something to send; what it carried is sent again on those. */
  #close(way: Way, isMissed: boolean): void {
    if (way.isClosed || this.#isOver) return
    this.#epoch++
    this.#ways.delete(way.id)
    if (way.sent > 0) this.#sent.set(way.id, (this.#sent.get(way.id) ?? 0) + way.sent)
    way.close()
    if (way.chain.length > 1) this.#isStar = true
    else for (const node of way.chain) this.#byCoordinator.add(node)
    if (!isMissed || !way.chain.some(node => this.#isThere(node))) return
    this.#repairs++
    this.#events.again()
  }

  #mark(index: number): void {
    const frame = this.#ended[index]
    if (!frame) return
    const reached = new Set([...this.#ways.values()].flatMap(({ chain }) => chain))
    // A node that gets no bytes from here needs no connection of its own.
    for (let node = 0; node < this.#routes.count; node++)
      if (this.#isThere(node) && !reached.has(node)) this.#carriedWay(node)
    const ways = [...this.#ways.values()]
    const channels = ways.map(({ id, chain }) => ({ id, chain }))
    const mark = markFrame({ index, edition: this.#edition, channels, frame: frame.toString('base64') })
    for (const way of ways) {
      this.#sayEpoch(way)
      way.mark(mark)
    }
  }
}

/** Nothing more follows about the file. */
const isLast = (type: number, frame: Buffer): boolean =>
  type === RELAY.complete || type === RELAY.fail || (type === RELAY.cut && frame.at(-1) === 1)
