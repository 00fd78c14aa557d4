import type { Socket } from 'node:net'
import { callPeer, PeerListener } from '../link/peers.ts'
import type { FrameReader } from '../link/frames.ts'
import { FrameLink } from './frame-link.ts'
import { PULSE, SILENCE } from './messages.ts'

/** Messages of a channel, before and between frames of relays. */
type Down =
  | { readonly ask: 'who'; readonly node: number }
  /** Frames of `source` will come, for all of the chain from here on. */
  | { readonly ask: 'open'; readonly id: string; readonly source: number; readonly chain: readonly number[] }

/** What comes back. */
type Up =
  | { readonly say: 'here'; readonly isIt: boolean }
  | { readonly say: 'open' }
  | { readonly say: 'no'; readonly reason: string }
  | { readonly say: 'pulse' }
  /** It leaves in order: nothing more has to reach it. */
  | { readonly say: 'bye' }

export type PeerLink = FrameLink<Up, Down>

/** Frames of a node, as they come in on one of its channels. */
export interface Arrivals {
  begin(source: number, id: string): void
  frame(source: number, id: string, type: number, frame: Buffer, content: FrameReader, from: Holds): void
  end(source: number, id: string): void
}

export interface Holds {
  pause(): void
  resume(): void
}

/** A way of frames from one node to others, in a chain: each passes on what it gets, so that no network carries a byte twice. */
export interface Channel {
  readonly id: string
  readonly chain: readonly number[]
  pass(frame: Buffer, ...sources: Holds[]): void
  end(): void
}

export interface ChannelEvents {
  /** It is of no use any more. `isInOrder`: the next node has left because the workflow is over. */
  closed(isInOrder: boolean): void
}

/** Connections between the nodes of a streaming workflow. */
export class Channels {
  readonly #listener = new PeerListener()
  readonly #incoming = new Set<Incoming>()
  #token = ''
  #addresses: readonly (readonly string[])[] = []
  #me = -1
  #arrivals: Arrivals | null = null
  #takes: () => void = () => undefined
  /** Until this node can take frames, those that open a channel wait. */
  readonly #isReady = new Promise<void>(resolve => (this.#takes = resolve))

  listen(me: number, token: string, isFar: boolean): Promise<string[]> {
    this.#me = me
    this.#token = token
    const reach = isFar ? 'network' : 'loopback'
    return this.#listener.listen({ token }, reach, socket => void this.#incoming.add(this.#accept(socket)))
  }

  /** From now on. */
  take(addresses: readonly (readonly string[])[], arrivals: Arrivals): void {
    this.#addresses = addresses
    this.#arrivals = arrivals
    this.#takes()
  }

  /** Opens a way for frames of `source`. Fails when a node of the chain cannot be reached. */
  async open(source: number, id: string, chain: readonly number[], events: ChannelEvents): Promise<Channel> {
    const [first = -1] = chain
    let hear: (message: Up) => void = () => undefined
    let link: PeerLink | undefined
    const isIt = (socket: Socket): Promise<boolean> => {
      const one: PeerLink = new FrameLink<Up, Down>(socket, socket, {
        message: message => {
          if (message.say !== 'here') return hear(message)
          if (message.isIt) link ??= one
          answer(link === one)
        },
        relayed: () => undefined,
      })
      let answer: (isIt: boolean) => void = () => undefined
      one.say({ ask: 'who', node: first })
      return new Promise(resolve => {
        answer = resolve
        socket.on('close', () => resolve(false))
      })
    }
    const socket = await callPeer({ token: this.#token }, this.#addresses[first] ?? [], isIt)
    let silent = 0
    let hasLeft = false
    const pulse = setInterval(() => {
      silent += PULSE
      if (silent > SILENCE) socket.destroy()
    }, PULSE)
    await new Promise<void>((resolve, reject) => {
      hear = message => {
        silent = 0
        if (message.say === 'open') resolve()
        else if (message.say === 'no') reject(new Error(message.reason))
        else if (message.say === 'bye') hasLeft = true
      }
      socket.on('close', () => {
        clearInterval(pulse)
        reject(new Error('the connection was lost'))
      })
      if (socket.destroyed) reject(new Error('the connection was lost'))
      link?.say({ ask: 'open', id, source, chain })
    }).catch((error: unknown) => {
      clearInterval(pulse)
      socket.destroy()
      throw error
    })
    let isEnded = false
    socket.on('close', () => {
      if (!isEnded) events.closed(hasLeft)
    })
    if (socket.destroyed) throw new Error('the connection was lost')
    return {
      id,
      chain,
      pass: (frame, ...sources) => link?.pass(frame, ...sources),
      end: () => {
        isEnded = true
        socket.destroy()
      },
    }
  }

  #accept(socket: Socket): Incoming {
    return new Incoming(socket, {
      ready: () => this.#isReady,
      arrivals: () => this.#arrivals,
      openNext: (...words) => this.open(...words),
      gone: one => this.#incoming.delete(one),
      me: () => this.#me,
    })
  }

  /** Says goodbye to those that send, and closes. */
  end(): void {
    for (const one of this.#incoming) one.sayGoodbye()
    this.#listener.end()
  }
}

interface Host {
  ready(): Promise<unknown>
  arrivals(): Arrivals | null
  openNext: Channels['open']
  gone(one: Incoming): void
  me(): number
}

/** The end of a channel at a node: frames are for this node, and are passed on to the rest of the chain. */
class Incoming {
  readonly #socket: Socket
  readonly #host: Host
  readonly #link: FrameLink<Down, Up>
  #next: Channel | null = null
  #opened: { source: number; id: string } | null = null

  constructor(socket: Socket, host: Host) {
    this.#socket = socket
    this.#host = host
    this.#link = new FrameLink<Down, Up>(socket, socket, {
      message: message => {
        if (message.ask === 'who') this.#link.say({ say: 'here', isIt: message.node === host.me() })
        else void this.#open(message)
      },
      relayed: (type, frame, content) => {
        this.#next?.pass(frame, this.#link)
        if (this.#opened)
          host.arrivals()?.frame(this.#opened.source, this.#opened.id, type, frame, content, this.#link)
      },
    })
    const pulse = setInterval(() => this.#link.say({ say: 'pulse' }), PULSE)
    socket.on('close', () => {
      clearInterval(pulse)
      this.#next?.end()
      if (this.#opened) host.arrivals()?.end(this.#opened.source, this.#opened.id)
      host.gone(this)
    })
  }

  sayGoodbye(): void {
    this.#link.say({ say: 'bye' })
  }

  async #open({ source, id, chain }: Down & { ask: 'open' }): Promise<void> {
    try {
      await this.#host.ready()
      const rest = chain.slice(chain.indexOf(this.#host.me()) + 1)
      if (rest.length > 0) {
        this.#next = await this.#host.openNext(source, id, rest, {
          closed: isInOrder => (isInOrder ? undefined : this.#socket.destroy()),
        })
      }
      this.#opened = { source, id }
      this.#host.arrivals()?.begin(source, id)
      this.#link.say({ say: 'open' })
    } catch (error) {
      this.#link.say({ say: 'no', reason: error instanceof Error ? error.message : String(error) })
    }
  }
}
