import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { connect, createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { addressesOf } from '../link/peers.ts'
import { clientTls, serverTls } from '../link/secret.ts'
import type { Incoming } from './incoming.ts'
import { roomIn } from './outgoing.ts'

/**
 * Agents fetch large buffers from each other, over connections of their own. Both sides show that they know the secret of the
 * run. A request is a record of three numbers; the answer is blocks, each with its checksum.
 */
const NONCE = 32
const REQUEST = 24
/** A peer that is silent for this long is given up, and the coordinator sends the buffer; milliseconds. */
const SILENCE = 5000

export interface PeerOptions {
  readonly token: string
  /** Agents of one machine use sockets without a file; others a port with TLS. */
  readonly isHere: boolean
  readonly node: number
  readonly incoming: Incoming
}

const proof = (token: string, role: string, first: Buffer, second: Buffer): Buffer =>
  createHmac('sha256', Buffer.from(token, 'hex')).update(role).update(first).update(second).digest()

/** The agent's end: serves what it has, also while it is still arriving, and fetches. */
export class Peers {
  readonly #options: PeerOptions
  readonly #calls = new Map<string, Call>()
  readonly #sockets = new Set<Socket>()
  #server: Server | null = null
  /** Where others can call; empty where they cannot. */
  addresses: readonly string[] = []

  constructor(options: PeerOptions) {
    this.#options = options
  }

  async listen(): Promise<void> {
    const { token, isHere } = this.#options
    if (isHere && process.platform !== 'linux') return
    const name = `\0millrace-${randomBytes(12).toString('hex')}`
    const accept = (socket: Socket): void => this.#accept(socket)
    const server = isHere ? createServer(accept) : createTlsServer(serverTls({ token }), accept)
    server.on('tlsClientError', () => undefined)
    const isListening = await new Promise<boolean>(resolve => {
      server.once('error', () => resolve(false))
      server.listen(isHere ? { path: name } : { port: 0, host: '0.0.0.0' }, () => resolve(true))
    })
    if (!isListening) return
    server.unref()
    this.#server = server
    this.addresses = isHere ? [name] : addressesOf(server, true)
  }

  /** Gets a buffer of another node. Resolves to whether it is here; nothing is lost if not. */
  async fetch(node: number, addresses: readonly string[], theirs: number, own: number): Promise<boolean> {
    const key = `${node}`
    let call = this.#calls.get(key)
    if (!call) {
      call = this.#call(node, addresses)
      this.#calls.set(key, call)
      void call.closed.then(() => {
        if (this.#calls.get(key) === call) this.#calls.delete(key)
      })
    }
    return call.fetch(theirs, own)
  }

  end(): void {
    this.#server?.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  // --- as the one who has it ---

  #accept(socket: Socket): void {
    const { token, incoming, node } = this.#options
    this.#keep(socket)
    const challenge = randomBytes(NONCE)
    let isKnown = false
    let bytes = Buffer.alloc(0)
    const requests: { theirs: number; own: number }[] = []
    let isServing = false
    const serve = async (): Promise<void> => {
      isServing = true
      for (let next = requests.shift(); next; next = requests.shift()) {
        for await (const pieces of incoming.blocksOf(next.theirs, next.own)) {
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
      if (!isKnown) {
        if (bytes.length < 2 * NONCE) return
        const [nonce, given] = [bytes.subarray(0, NONCE), bytes.subarray(NONCE, 2 * NONCE)]
        if (!timingSafeEqual(given, proof(token, 'asks', challenge, nonce))) return void socket.destroy()
        socket.write(proof(token, 'has', nonce, challenge))
        bytes = bytes.subarray(2 * NONCE)
        isKnown = true
        socket.setTimeout(0)
      }
      for (; bytes.length >= REQUEST; bytes = bytes.subarray(REQUEST)) {
        // An address may lead to another machine than the one that was meant.
        if (bytes.readDoubleLE(0) !== node) return void socket.destroy()
        requests.push({ theirs: bytes.readDoubleLE(8), own: bytes.readDoubleLE(16) })
      }
      if (!isServing) void serve().catch(() => socket.destroy())
    })
    socket.setTimeout(SILENCE, () => socket.destroy())
    socket.write(challenge)
  }

  // --- as the one who wants it ---

  #call(node: number, addresses: readonly string[]): Call {
    const { token, incoming } = this.#options
    return new Call(node, addresses, token, incoming, socket => this.#keep(socket))
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.setNoDelay(true)
    socket.unref()
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
      socket.on('timeout', () => socket.destroy())
      socket.on('close', over)
    })
  }

  async fetch(theirs: number, own: number): Promise<boolean> {
    const socket = (await this.#ready)?.socket
    if (!socket || this.#isClosed || socket.destroyed) return false
    const request = Buffer.alloc(REQUEST)
    request.writeDoubleLE(this.#node, 0)
    request.writeDoubleLE(theirs, 8)
    request.writeDoubleLE(own, 16)
    socket.setTimeout(SILENCE)
    socket.write(request)
    return new Promise(resolve => this.#waiting.set(own, resolve))
  }

  async #open(
    addresses: readonly string[],
    token: string,
    keep: (socket: Socket) => void,
  ): Promise<Line | null> {
    for (const address of addresses) {
      const line = await dial(address, token, keep)
      if (line) return line
    }
    return null
  }
}

/** A connection, and who hears what comes by it. What is heard is valid during the call only. */
interface Line {
  readonly socket: Socket
  hear: (bytes: Buffer) => void
}

/** Bytes that are read at once. */
const READ = 1 << 20

function openLine(address: string, token: string): Line {
  const [, host, port] = /^(.*):(\d+)$/.exec(address) ?? []
  if (host !== undefined) {
    const socket = connectTls({ host, port: Number(port), ...clientTls({ token }) })
    const line: Line = { socket, hear: () => undefined }
    socket.on('data', (chunk: Buffer) => line.hear(chunk))
    return line
  }
  const buffer = Buffer.allocUnsafeSlow(READ)
  const callback = (size: number): boolean => {
    line.hear(buffer.subarray(0, size))
    return true
  }
  const line: Line = {
    socket: connect({ path: address, onread: { buffer, callback } }),
    hear: () => undefined,
  }
  return line
}

function dial(address: string, token: string, keep: (socket: Socket) => void): Promise<Line | null> {
  return new Promise(resolve => {
    const line = openLine(address, token)
    const { socket } = line
    keep(socket)
    const fail = (): void => {
      socket.destroy()
      resolve(null)
    }
    socket.setTimeout(SILENCE, fail)
    socket.once('close', fail)
    const nonce = randomBytes(NONCE)
    let bytes = Buffer.alloc(0)
    let challenge: Buffer | null = null
    line.hear = chunk => {
      bytes = Buffer.concat([bytes, chunk])
      if (bytes.length < NONCE) return
      const part = bytes.subarray(0, NONCE)
      bytes = bytes.subarray(NONCE)
      if (challenge === null) {
        challenge = part
        socket.write(Buffer.concat([nonce, proof(token, 'asks', challenge, nonce)]))
        return
      }
      if (!timingSafeEqual(part, proof(token, 'has', nonce, challenge))) return fail()
      socket.off('close', fail)
      socket.removeAllListeners('timeout')
      socket.setTimeout(0)
      line.hear = () => undefined
      resolve(line)
    }
  })
}
