import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { FROM_AGENT, PROTOCOL } from '../link/frame-types.ts'
import { isToken, serverTls } from '../link/secret.ts'
import type { Secret } from '../link/secret.ts'
import type { AgentHello } from '../link/start.ts'
import { unpack } from '../link/structured.ts'

/** Strangers get this long to say who they are; milliseconds. */
const HELLO_TIMEOUT = 10_000
const HEADER = 5
const LONGEST_HELLO = 1 << 16

export type Called = (hello: AgentHello, socket: Socket, rest: Buffer) => void

/** Where agents call: a socket in a folder of this user, and on request a port with TLS. */
export class Listener {
  readonly #secret: Secret
  readonly #folder: string
  readonly #called: Called
  readonly #servers: Server[] = []
  readonly #sockets = new Set<Socket>()

  /** The folder is for this user alone. */
  constructor(called: Called, { token, folder }: Secret & { readonly folder: string }) {
    this.#called = called
    this.#secret = { token }
    this.#folder = folder
  }

  /** Returns the path of the socket. */
  async listenHere(name: string): Promise<string> {
    const path = join(this.#folder, name)
    const server = createServer(socket => this.#accept(socket))
    await this.#listen(server, { path })
    return path
  }

  /** Returns the addresses at which the port can be reached. */
  async listenOnNetwork(): Promise<string[]> {
    const server = createTlsServer(serverTls(this.#secret), socket => this.#accept(socket))
    server.on('tlsClientError', () => undefined)
    await this.#listen(server, { port: 0, host: '0.0.0.0' })
    const { port } = server.address() as { port: number }
    const all = Object.values(networkInterfaces()).flatMap(list => list ?? [])
    const outside = all.filter(({ internal, family }) => !internal && family === 'IPv4')
    return [...outside.map(({ address }) => `${address}:${port}`), `127.0.0.1:${port}`]
  }

  /** Takes no more calls; those that were taken go on. */
  close(): void {
    for (const server of this.#servers.splice(0)) server.close()
  }

  end(): void {
    this.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #listen(server: Server, where: { path: string } | { port: number; host: string }): Promise<void> {
    this.#servers.push(server)
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(where, () => {
        server.unref()
        resolve()
      })
    })
  }

  /** The first frame says who calls. */
  #accept(socket: Socket): void {
    this.#sockets.add(socket)
    socket.unref()
    socket.setNoDelay(true)
    let bytes = Buffer.alloc(0)
    const timer = setTimeout(() => socket.destroy(), HELLO_TIMEOUT)
    timer.unref()
    const take = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk])
      if (bytes.length < HEADER) return
      const size = bytes.readUInt32LE(0)
      const isHello = bytes[4] === FROM_AGENT.hello && size <= LONGEST_HELLO
      if (!isHello) return void socket.destroy()
      if (bytes.length < HEADER + size) return
      clearTimeout(timer)
      socket.off('data', take)
      const hello = readHello(bytes.subarray(HEADER, HEADER + size))
      if (!hello || !isToken(this.#secret, hello.token)) return void socket.destroy()
      this.#called(hello, socket, bytes.subarray(HEADER + size))
    }
    socket.on('data', take)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      this.#sockets.delete(socket)
    })
  }
}

function readHello(bytes: Uint8Array): AgentHello | null {
  try {
    const hello = unpack(bytes) as AgentHello | null
    return hello?.protocol === PROTOCOL || typeof hello?.version === 'string' ? hello : null
  } catch {
    return null
  }
}
