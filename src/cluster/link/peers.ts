import type { Server, Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { connect, createServer } from 'node:tls'
import { clientTls, serverTls } from './secret.ts'
import type { Secret } from './secret.ts'

/** Milliseconds for one address. */
const PATIENCE = 5000

/** Where other nodes of a run can call this one. Who does not have the secret gets nothing. */
export class PeerListener {
  #server: Server | null = null
  readonly #sockets = new Set<Socket>()

  /** `isFar`: some nodes are on other machines. Returns the addresses at which the port can be reached. */
  async listen(secret: Secret, isFar: boolean, called: (socket: Socket) => void): Promise<string[]> {
    const server = createServer(serverTls(secret), socket => {
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
      called(socket)
    })
    server.on('tlsClientError', () => undefined)
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port: 0, host: isFar ? '0.0.0.0' : '127.0.0.1' }, resolve)
    })
    return addressesOf(server, isFar)
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
    const socket = await open(address, secret)
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

function open(address: string, secret: Secret): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const at = address.lastIndexOf(':')
    const socket = connect({
      host: address.slice(0, at),
      port: Number(address.slice(at + 1)),
      ...clientTls(secret),
    })
    socket.setTimeout(PATIENCE, () => socket.destroy(new Error(`${address}: no answer`)))
    socket.on('error', reject)
    socket.once('secureConnect', () => {
      socket.setTimeout(0)
      socket.setNoDelay(true)
      resolve(socket)
    })
  })
}
