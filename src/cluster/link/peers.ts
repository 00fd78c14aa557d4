import { randomBytes } from 'node:crypto'
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { connect, createServer as createTlsServer } from 'node:tls'
import { proveToCaller } from './prove.ts'
import { clientTls, serverTls } from './secret.ts'
import type { Secret } from './secret.ts'

/** Milliseconds for one address, and for the other side to say anything. */
export const ANSWER_TIMEOUT = 5000

/** From where others can call: over a socket of this machine that has no port, or over a port of it, or from other machines. */
export type Reach = 'local-socket' | 'loopback' | 'network'

/** Where other nodes of a run can call this one. A caller without the secret gets nothing. */
export class PeerListener {
  readonly #isRef: boolean
  #server: Server | null = null
  readonly #sockets = new Set<Socket>()

  /** `isRef`: it keeps the process alive. */
  constructor(isRef = true) {
    this.#isRef = isRef
  }

  /** Returns the addresses at which others can call. */
  async listen(secret: Secret, reach: Reach, called: (socket: Socket) => void): Promise<string[]> {
    const path = `\0millrace-${randomBytes(12).toString('hex')}`
    const accept = (socket: Socket): void => {
      this.keep(socket)
      if (reach === 'local-socket') proveToCaller(socket, secret, ANSWER_TIMEOUT, called)
      else called(socket)
    }
    const server =
      reach === 'local-socket' ? createServer(accept) : createTlsServer(serverTls(secret), accept)
    server.on('tlsClientError', () => undefined)
    this.#server = server
    const host = reach === 'network' ? '0.0.0.0' : '127.0.0.1'
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(reach === 'local-socket' ? { path } : { port: 0, host }, resolve)
    })
    if (!this.#isRef) server.unref()
    return reach === 'local-socket' ? [path] : addressesOf(server, reach === 'network')
  }

  /** A connection of this node, which `end` closes. */
  readonly keep = (socket: Socket): void => {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.setNoDelay(true)
    if (!this.#isRef) socket.unref()
  }

  end(): void {
    this.#server?.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** The addresses at which a server can be called: from this machine, and from others where `isFar`. */
export function addressesOf(server: Server, isFar: boolean): string[] {
  const { port } = server.address() as { port: number }
  const all = isFar ? Object.values(networkInterfaces()).flatMap(list => list ?? []) : []
  const outside = all.filter(({ internal, family }) => !internal && family === 'IPv4')
  return [...outside.map(({ address }) => `${address}:${port}`), `127.0.0.1:${port}`]
}

/**
 * The first of the addresses that answers and at which `isIt` says that the right node is: another machine may have the same
 * address in a network of its own.
 */
export async function callPeer(
  secret: Secret,
  addresses: readonly string[],
  isIt: (socket: Socket) => Promise<boolean>,
): Promise<Socket> {
  const sockets: Socket[] = []
  const tries = addresses.map(async address => {
    const socket = await callFar(address, secret)
    sockets.push(socket)
    if (await isIt(socket)) return socket
    throw new Error(`${address}: another node answers there`)
  })
  try {
    const found = await Promise.any(tries)
    for (const socket of sockets) if (socket !== found) socket.destroy()
    void Promise.allSettled(tries).then(() => {
      for (const socket of sockets) if (socket !== found) socket.destroy()
    })
    return found
  } catch (error) {
    for (const socket of sockets) socket.destroy()
    const reasons = error instanceof AggregateError ? error.errors : [error]
    const text = reasons.map(reason => (reason instanceof Error ? reason.message : String(reason)))
    throw new Error(text.join('; ') || 'it has no address', { cause: error })
  }
}

/** Calls a node by its port. */
export function callFar(
  address: string,
  secret: Secret,
  begun: (socket: Socket) => void = () => undefined,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const at = address.lastIndexOf(':')
    const socket = connect({
      host: address.slice(0, at),
      port: Number(address.slice(at + 1)),
      ...clientTls(secret),
    })
    socket.setTimeout(ANSWER_TIMEOUT, () => socket.destroy(new Error(`${address}: no answer`)))
    socket.on('error', reject)
    socket.once('close', () => reject(new Error(`${address}: the connection was lost`)))
    begun(socket)
    socket.once('secureConnect', () => {
      socket.removeAllListeners('timeout')
      socket.setTimeout(0)
      socket.setNoDelay(true)
      resolve(socket)
    })
  })
}
