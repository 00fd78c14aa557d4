import type { FrameReader } from '../link/frames.ts'
import type { Channel, ChannelEvents, Channels, Holds } from './channel.ts'
import { carriedId, carryFrame, epochFrame, markFrame, pathOf } from './relay-frame.ts'
import { FLAGS, RELAY } from './messages.ts'
import type { Sent } from './messages.ts'
import type { Routes } from './routes.ts'

/** Chains from one node; more sets of readers than this are served node by node. */
const MOST_CHAINS = 16

export interface OutgoingEvents {
  /** To the relay of this node: all that it has ever sent is to be sent again. */
  again(): void
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

/** What has to be sent while a channel opens, and the channel once it is open. */
interface Way {
  readonly id: string
  readonly chain: readonly number[]
  channel: Channel | null
  waiting: Buffer[]
  isClosed: boolean
  epoch: number
}

/**
 * Frames of this node's relay on their way to the nodes that read the files. Several readers form a chain. Where a chain
 * breaks each of its nodes is served alone; where a node cannot be reached, through the coordinator; and all is sent again,
 * which does no harm to a node that has it already.
 */
export class Outgoing {
  readonly #me: number
  readonly #routes: Routes
  readonly #channels: Pick<Channels, 'open'>
  readonly #events: OutgoingEvents
  readonly #source: Holds
  readonly #ways = new Map<string, Way>()
  /** Files that were begun, and on which ways: what follows goes there, too. Other ways lack what came before. */
  readonly #open = new Map<string, readonly Way[]>()
  /** Bytes by way. */
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
  #opening = 0

  constructor(
    me: number,
    routes: Routes,
    channels: Pick<Channels, 'open'>,
    source: Holds,
    events: OutgoingEvents,
  ) {
    this.#me = me
    this.#routes = routes
    this.#channels = channels
    this.#source = source
    this.#events = events
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
      for (const way of ways) this.#pass(way, frame)
      if (!isDirectory) this.#open.set(path, ways)
      return
    }
    for (const way of this.#open.get(path) ?? []) if (!way.isClosed) this.#pass(way, frame)
    if (isLast(type, frame)) this.#open.delete(path)
  }

  /** Files that went through it to others are sent again. */
  lost(node: number): void {
    this.#lost.add(node)
    for (const way of this.#ways.values()) {
      if (!way.chain.includes(node)) continue
      way.channel?.end()
      this.#close(way, way.chain.length > 1)
    }
  }

  end(): void {
    this.#isOver = true
    for (const { channel } of this.#ways.values()) channel?.end()
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
    const way: Way = { id, chain, channel: null, waiting: [], isClosed: false, epoch: 0 }
    this.#ways.set(id, way)
    void this.#connect(way)
    return way
  }

  #carriedWay(node: number): Way {
    const id = carriedId(node)
    const known = this.#ways.get(id)
    if (known) return known
    const chain = [node]
    const pass: Channel['pass'] = frame =>
      this.#events.byCoordinator.pass(carryFrame(this.#me, node, frame), this.#source)
    const channel = { id, chain, pass, end: () => undefined }
    const way: Way = { id, chain, channel, waiting: [], isClosed: false, epoch: 0 }
    this.#ways.set(id, way)
    return way
  }

  async #connect(way: Way): Promise<void> {
    const events: ChannelEvents = {
      closed: isInOrder => {
        if (!isInOrder) this.#close(way, true)
      },
    }
    this.#hold(1)
    try {
      const channel = await this.#channels.open(this.#me, way.id, way.chain, events)
      if (way.isClosed || this.#isOver) return channel.end()
      way.channel = channel
      for (const frame of way.waiting.splice(0)) this.#write(channel, frame)
    } catch (error) {
      if (way.isClosed || this.#isOver) return
      const names = way.chain.map(node => this.#events.nameOf(node)).join(', ')
      const reason = error instanceof Error ? error.message : String(error)
      if (way.chain.length === 1)
        this.#events.note(`no direct connection to ${names} (${reason}): bytes go through the coordinator\n`)
      this.#close(way, true)
    } finally {
      this.#hold(-1)
    }
  }

  /** While a channel opens the relay waits. */
  #hold(more: number): void {
    this.#opening += more
    if (this.#opening === 0) this.#source.resume()
    else this.#source.pause()
  }

  /** What has been sent so far. */
  get sent(): Sent[] {
    return [...this.#sent].map(([id, bytes]) => {
      const isByCoordinator = id.startsWith('c')
      const chain = isByCoordinator ? [Number(id.slice(1))] : id.split('.').map(Number)
      return { chain, isByCoordinator, bytes }
    })
  }

  #pass(way: Way, frame: Buffer): void {
    if (way.epoch !== this.#epoch) {
      way.epoch = this.#epoch
      this.#pass(way, epochFrame(this.#epoch))
    }
    if (way.channel) this.#write(way.channel, frame)
    // It is part of a larger chunk, which must not be kept for it.
    else way.waiting.push(Buffer.from(frame))
  }

  #write(channel: Channel, frame: Buffer): void {
    if (frame[4] === RELAY.data) this.#sent.set(channel.id, (this.#sent.get(channel.id) ?? 0) + frame.length)
    channel.pass(frame, this.#source)
  }

  /** A way that failed is replaced by others when there is something to send; what it carried is sent again on those. */
  #close(way: Way, isMissed: boolean): void {
    if (way.isClosed || this.#isOver) return
    way.isClosed = true
    way.waiting = []
    this.#epoch++
    this.#ways.delete(way.id)
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
    for (const way of ways) this.#pass(way, mark)
  }
}

/** Nothing more follows about the file. */
const isLast = (type: number, frame: Buffer): boolean =>
  type === RELAY.complete || type === RELAY.fail || (type === RELAY.cut && frame.at(-1) === 1)
