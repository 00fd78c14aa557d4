import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, ftruncateSync, openSync, readSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../../core/errors.ts'
import { FrameReader, frame } from './frames.ts'
import type { EndHeader, FromRank, RankStart, ReleasedHeader, ToRank } from './frames.ts'
import { launchVariables, launchWords } from './launcher.ts'
import type { Mpi } from './launcher.ts'
import { PLACE_BYTES, readPlace } from './places.ts'
import type { Place } from './places.ts'

export interface PoolOptions {
  readonly mpi: Mpi
  readonly size: number
  /** For the socket and for memory that ranks map. */
  readonly folder: string
  readonly node: string
  readonly start: Omit<RankStart, 'socket' | 'places' | 'placesBytes' | 'folder'>
  readonly environment: Readonly<Record<string, string>>
  readonly execArgv: readonly string[]
}

export interface PoolEvents {
  ended(header: EndHeader, bytes: Buffer): void
  released(header: ReleasedHeader, bytes: Buffer): void
  /** The ranks are gone; `rank` is the one that died first, if it is known. */
  gone(reason: string, rank: number | null): void
}

/** What mpirun said is kept up to this length, for the message. */
const KEPT_OUTPUT = 4000
/** Milliseconds until all ranks have to be there. */
const PATIENCE = 60_000

/** The processes of ranks, started by one mpirun. */
export class RankPool {
  readonly size: number
  readonly ready: Promise<void>
  readonly #child: ChildProcess
  readonly #server: Server
  readonly #sockets: (Socket | null)[]
  readonly #events: PoolEvents
  readonly #folder: string
  readonly #places: number
  readonly #placeBytes: Buffer
  #output = ''
  #reason: string | null = null
  #died: number | null = null
  #isGone = false
  #settle: ((error: MillraceError | null) => void) | null = null

  constructor(options: PoolOptions, events: PoolEvents) {
    const { mpi, size, folder, start } = options
    this.size = size
    this.#events = events
    this.#folder = folder
    this.#sockets = Array.from({ length: size }, () => null)
    const places = join(folder, 'places')
    this.#places = openSync(places, 'w+')
    ftruncateSync(this.#places, size * PLACE_BYTES)
    this.#placeBytes = Buffer.alloc(size * PLACE_BYTES)
    const socket = join(folder, 'socket')
    this.#server = createServer(connection => this.#connected(connection))
    this.#server.unref()
    this.ready = new Promise((resolve, reject) => {
      this.#settle = error => (error ? reject(error) : resolve())
    })
    this.ready.catch(() => undefined)
    const given: RankStart = { ...start, socket, places, placesBytes: size * PLACE_BYTES, folder }
    const words = [...launchWords(mpi, size, folder), process.execPath, ...options.execArgv, rankProgram()]
    this.#server.listen(socket)
    this.#child = spawn(words[0] as string, words.slice(1), {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...options.environment,
        ...launchVariables([options.node]),
        MILLRACE_MPI: JSON.stringify(given),
      },
    })
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#output = (this.#output + chunk.toString('utf8')).slice(-KEPT_OUTPUT)
      // What tasks print comes this way too.
      if (this.#settle === null && this.#reason === null) process.stderr.write(chunk)
    })
    this.#child.on('error', error => this.#ended(error.message))
    this.#child.on('exit', (code, signal) =>
      this.#ended(`mpirun ended with ${signal ?? `exit code ${code}`}`),
    )
    this.#child.stdout?.on('data', (chunk: Buffer) => process.stdout.write(chunk))
    this.#child.unref()
    for (const stream of [this.#child.stdout, this.#child.stderr])
      (stream as unknown as Socket | null)?.unref()
    setTimeout(() => {
      if (this.#settle) this.kill(`the ranks were not there after ${PATIENCE / 1000} s`)
    }, PATIENCE).unref()
  }

  get isGone(): boolean {
    return this.#isGone || this.#reason !== null
  }

  send(rank: number, header: ToRank, parts: readonly Uint8Array[] = []): void {
    this.#sockets[rank]?.write(frame(header, parts))
  }

  /** Where these ranks are now. */
  placesOf(ranks: readonly number[]): Place[] {
    readSync(this.#places, this.#placeBytes, 0, this.#placeBytes.length, 0)
    return ranks.map(rank => readPlace(this.#placeBytes, rank))
  }

  kill(reason: string): void {
    if (this.isGone) return
    this.#reason = reason
    this.#signal('SIGKILL')
  }

  /** No task runs any more. */
  async end(): Promise<void> {
    if (this.#isGone) return
    // With it comes the last of what tasks printed.
    const over = new Promise<void>(resolve => this.#child.once('close', () => resolve()))
    this.#reason ??= 'the run ended'
    for (const socket of this.#sockets) socket?.write(frame({ type: 'end' }))
    const timer = setTimeout(() => this.#signal('SIGKILL'), 2000)
    this.#child.ref()
    for (const stream of [this.#child.stdout, this.#child.stderr]) (stream as unknown as Socket | null)?.ref()
    await over
    clearTimeout(timer)
  }

  endNow(): void {
    this.#reason ??= 'the run ended'
    if (!this.#isGone) this.#signal('SIGKILL')
    this.#clean()
  }

  /** To mpirun and all ranks: it leads their process group, unless it made others. */
  #signal(signal: NodeJS.Signals): void {
    const pids = [this.#child.pid ?? 0, ...this.#pids]
    for (const pid of pids) {
      for (const target of [-pid, pid]) {
        try {
          if (pid > 1) process.kill(target, signal)
        } catch {
          // It has ended, or leads no group.
        }
      }
    }
  }

  readonly #pids: number[] = []

  #connected(socket: Socket): void {
    let own: number | null = null
    const reader = new FrameReader<FromRank>((header, bytes) => {
      if (header.type === 'ended') return this.#events.ended(header, bytes)
      if (header.type === 'released') return this.#events.released(header, bytes)
      if (header.type === 'refused') return this.#fail(header.reason)
      own = header.rank
      this.#pids.push(header.pid)
      if (header.size !== this.size) {
        return this.#fail(
          `mpirun and mpicc are not of the same MPI: each process is alone (${header.mpi.split('\n')[0]})`,
        )
      }
      this.#sockets[header.rank] = socket
      if (this.#sockets.every(Boolean)) this.#settled(null)
    })
    socket.on('data', chunk => reader.take(chunk as Buffer))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      if (own !== null) this.#died ??= own
      // The others wait for it in vain.
      if (own !== null && this.#reason === null) setTimeout(() => this.#signal('SIGKILL'), 50).unref()
    })
    socket.unref()
  }

  #settled(error: MillraceError | null): void {
    const settle = this.#settle
    this.#settle = null
    settle?.(error)
  }

  #fail(reason: string): void {
    this.#settled(new MillraceError('MR_MPI', reason))
    this.kill(reason)
  }

  #ended(reason: string): void {
    if (this.#isGone) return
    this.#isGone = true
    const said = this.#output.trim().split('\n').slice(-3).join(' ')
    this.#settled(
      new MillraceError('MR_MPI', `the ranks could not be started: ${reason}${said ? `: ${said}` : ''}`),
    )
    this.#clean()
    this.#events.gone(this.#reason ?? reason, this.#reason === null ? this.#died : null)
  }

  #clean(): void {
    this.#server.close()
    try {
      closeSync(this.#places)
    } catch {
      // It is closed already.
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The program of a rank is beside this file once it is built. */
const rankProgram = (): string => fileURLToPath(new URL('./mpi-rank.js', import.meta.url))
