import type { Socket } from 'node:net'
import { callFar, ANSWER_TIMEOUT, PeerListener } from '../link/peers.ts'
import { callHere } from '../link/prove.ts'
import { readTree } from '../files/tree.ts'
import type { Incoming } from './incoming.ts'
import { piecesOf, roomIn } from './outgoing.ts'

/**
 * Agents fetch large buffers and files from each other, over connections of their own. A request is a record of three numbers:
 * the node, its number of the buffer, and that of the caller. For a file the second is below 0: as many bytes of its path
 * follow. The answer is blocks, each with its checksum. A peer that is silent for too long is given up, and the coordinator sends the buffer.
 */
const REQUEST = 24

export interface PeerOptions {
  readonly token: string
  /** Agents of one machine use sockets without a file; others a port with TLS. */
  readonly isHere: boolean
  readonly node: number
  readonly incoming: Incoming
}

/** The agent's end: serves what it has, also while it is still arriving, and fetches. */
export class Peers {
  readonly #options: PeerOptions
  readonly #calls = new Map<string, Call>()
  readonly #listener = new PeerListener(false)
  /** Where others can call; empty where they cannot. */
  addresses: readonly string[] = []

  constructor(options: PeerOptions) {
    this.#options = options
  }

  async listen(): Promise<void> {
    const { token, isHere } = this.#options
    if (isHere && process.platform !== 'linux') return
    const reach = isHere ? 'local-socket' : 'network'
    this.addresses = await this.#listener
      .listen({ token }, reach, socket => this.#serve(socket))
      .catch(() => [])
  }

  /** Gets a buffer of another node. Resolves to whether it is here; nothing is lost if not. */
  fetch(node: number, addresses: readonly string[], theirs: number, own: number): Promise<boolean> {
    return this.#callTo(node, addresses).fetch(theirs, own)
  }

  /** Gets what is at a path of another node, as a stream. Resolves to whether all of it has come. */
  fetchTree(node: number, addresses: readonly string[], path: string, own: number): Promise<boolean> {
    return this.#callTo(node, addresses).fetch(path, own)
  }

  #callTo(node: number, addresses: readonly string[]): Call {
    const key = `${node}`
    let call = this.#calls.get(key)
    if (!call) {
      call = this.#call(node, addresses)
      this.#calls.set(key, call)
      void call.closed.then(() => {
        if (this.#calls.get(key) === call) this.#calls.delete(key)
      })
    }
    return call
  }

  end(): void {
    this.#listener.end()
  }

  // --- the node that has the buffer ---

  #serve(socket: Socket): void {
    const { incoming, node } = this.#options
    let bytes = Buffer.alloc(0)
    const requests: AsyncIterable<Uint8Array[]>[] = []
    let isServing = false
    const serve = async (): Promise<void> => {
      isServing = true
      for (let next = requests.shift(); next; next = requests.shift()) {
        for await (const pieces of next) {
          let hasRoom = true
          for (const piece of pieces) hasRoom = socket.write(piece)
          if (!hasRoom) await roomIn(socket).catch(() => undefined)
          if (socket.destroyed) return
        }
      }
      isServing = false
    }
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      while (bytes.length >= REQUEST) {
        // An address may lead to another machine than the one that was meant.
        if (bytes.readDoubleLE(0) !== node) return void socket.destroy()
        const [theirs, own] = [bytes.readDoubleLE(8), bytes.readDoubleLE(16)]
        const end = REQUEST + Math.max(0, -theirs)
        if (bytes.length < end) break
        const path = bytes.toString('utf8', REQUEST, end)
        requests.push(theirs < 0 ? piecesOf(own, readTree(path)) : incoming.blocksOf(theirs, own))
        bytes = bytes.subarray(end)
      }
      if (!isServing) void serve().catch(() => socket.destroy())
    })
  }

  // --- the node that needs it ---

  #call(node: number, addresses: readonly string[]): Call {
    const { token, incoming } = this.#options
    return new Call(node, addresses, token, incoming, this.#listener.keep)
  }
}

/** A connection to one peer, for as long as it lasts. */
class Call {
  readonly #node: number
  readonly #ready: Promise<Line | null>
  readonly #waiting = new Map<number, (isHere: boolean) => void>()
  readonly closed: Promise<void>
  #isClosed = false

  constructor(
    node: number,
    addresses: readonly string[],
    token: string,
    incoming: Incoming,
    keep: (socket: Socket) => void,
  ) {
    this.#node = node
    let close = (): void => undefined
    this.closed = new Promise(resolve => (close = resolve))
    this.#ready = this.#open(addresses, token, keep)
    void this.#ready.then(line => {
      const over = (): void => {
        this.#isClosed = true
        for (const answer of this.#waiting.values()) answer(false)
        this.#waiting.clear()
        close()
      }
      if (!line || line.socket.destroyed) return over()
      const { socket } = line
      const reader = incoming.reader(number => {
        this.#waiting.get(number)?.(true)
        this.#waiting.delete(number)
        if (this.#waiting.size === 0) socket.setTimeout(0)
      })
      line.hear = bytes => {
        try {
          reader.push(bytes)
        } catch {
          socket.destroy()
        }
      }
      incoming.trees.connect(socket)
      // One that waits for the disk here is not to blame.
      socket.on('timeout', () => {
        if (incoming.trees.isPaused) socket.setTimeout(ANSWER_TIMEOUT)
        else socket.destroy()
      })
      socket.on('close', over)
    })
  }

  async fetch(theirs: number | string, own: number): Promise<boolean> {
    const socket = (await this.#ready)?.socket
    if (!socket || this.#isClosed || socket.destroyed) return false
    const path = Buffer.from(typeof theirs === 'string' ? theirs : '')
    const request = Buffer.concat([Buffer.alloc(REQUEST), path])
    request.writeDoubleLE(this.#node, 0)
    request.writeDoubleLE(typeof theirs === 'string' ? -path.length : theirs, 8)
    request.writeDoubleLE(own, 16)
    socket.setTimeout(ANSWER_TIMEOUT)
    socket.write(request)
    return new Promise(resolve => this.#waiting.set(own, resolve))
  }

  async #open(
    addresses: readonly string[],
    token: string,
    keep: (socket: Socket) => void,
  ): Promise<Line | null> {
    for (const address of addresses) {
      const line = await openLine(address, token, keep).catch(() => null)
      if (line) return line
    }
    return null
  }
}

/** A connection, and who hears what comes by it. What is heard is valid during the call only. */
interface Line {
  readonly socket: Socket
  set hear(hear: (bytes: Buffer) => void)
}

async function openLine(address: string, token: string, keep: (socket: Socket) => void): Promise<Line> {
  let hear: Line['hear'] = () => undefined
  const isFar = /:\d+$/.test(address)
  const socket = isFar
    ? await callFar(address, { token }, keep)
    : await callHere(address, { token }, ANSWER_TIMEOUT, bytes => hear(bytes), keep)
  if (isFar) socket.on('data', (chunk: Buffer) => hear(chunk))
  return {
    socket,
    set hear(next: Line['hear']) {
      hear = next
    },
  }
}
