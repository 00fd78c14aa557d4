import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import {
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../../core/errors.ts'
import type { Watchdog } from '../processes/watchdog.ts'
import type { RankStart } from './frames.ts'
import { findMpi, launchVariables, withoutScheduler } from './launcher.ts'
import { PLACE_BYTES } from './places.ts'
import { emptyShared, readShared, removeShared, sharedFolder, writeShared } from './shared-files.ts'
import type { RankSite, SiteEvents, SiteFacts, SiteOptions } from './site.ts'

/** What the processes of ranks on this machine have to know of the run. */
export type RankFacts = Pick<
  RankStart,
  'modules' | 'entry' | 'typescript' | 'logs' | 'startedAt' | 'cwd' | 'moduleRoot'
>

export interface LocalSiteParts {
  readonly node: string
  /** Marks processes of the run on this machine. */
  readonly run: string
  readonly watchdog: Watchdog
  facts(): RankFacts
}

/** Ranks on this machine. */
export class LocalSite implements RankSite {
  readonly node: string
  readonly #parts: LocalSiteParts
  readonly #channels = new Map<number, Socket>()
  readonly #programs = new Map<number, ChildProcess>()
  #events: SiteEvents | null = null
  #server: Server | null = null
  #folder = ''
  #places = -1
  #placeBytes: Buffer = Buffer.alloc(0)
  #environment: Record<string, string> = {}
  #start = ''
  #last = 0
  #isClosed = false

  constructor(parts: LocalSiteParts) {
    this.#parts = parts
    this.node = parts.node
  }

  async open({ size, nodes }: SiteOptions, events: SiteEvents): Promise<SiteFacts> {
    const { run, watchdog, facts } = this.#parts
    const { compiler, kind, launcher } = findMpi()
    if (!compiler) {
      throw new MillraceError(
        'MR_MPI',
        'there is no mpicc on this machine, which builds what connects MPI to Node',
      )
    }
    const { mpiAddon } = await import('../../native/mpi-addon.ts')
    const addon = await mpiAddon(compiler).catch((error: unknown) => {
      throw new MillraceError(
        'MR_MPI',
        `what connects MPI to Node could not be built: ${(error as Error).message}`,
      )
    })
    watchdog.start()
    const folder = sharedFolder(run)
    watchdog.folder(folder)
    this.#folder = folder
    this.#events = events
    const [places, socket] = [join(folder, 'places'), join(folder, 'socket')]
    this.#places = openSync(places, 'w+')
    ftruncateSync(this.#places, size * PLACE_BYTES)
    this.#placeBytes = Buffer.alloc(size * PLACE_BYTES)
    const start: RankStart = {
      ...facts(),
      socket,
      addon,
      compiler,
      places,
      placesBytes: size * PLACE_BYTES,
      folder,
    }
    this.#start = JSON.stringify(start)
    this.#environment = {
      ...withoutScheduler(process.env as Record<string, string>),
      ...launchVariables(nodes),
      MILLRACE_RUN: run,
      MILLRACE_NODE: process.execPath,
      MILLRACE_STARTER: programBeside('mpi-start'),
      MILLRACE_START: socket,
      ...(kind === 'openmpi'
        ? // What it leaves when it is killed goes with the folder.
          { OMPI_MCA_btl_vader_backing_directory: folder, OMPI_MCA_orte_tmpdir_base: folder }
        : {}),
    }
    await this.#listen(socket)
    // Where the add-on was built, programs can be started: in memory that is shared they often cannot.
    return {
      kind,
      launcher,
      folder,
      rank: rankWords(),
      machine: machineId(),
      starter: nodes.length > 1 ? starterIn(dirname(addon)) : '',
    }
  }

  #listen(socket: string): Promise<void> {
    const server = createServer(connection => this.#connected(connection))
    this.#server = server
    server.unref()
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(socket, () => resolve())
    })
  }

  #connected(socket: Socket): void {
    const channel = ++this.#last
    this.#channels.set(channel, socket)
    socket.on('data', chunk => this.#events?.data(channel, chunk as Buffer))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#channels.delete(channel)
      this.#events?.closed(channel)
    })
    socket.unref()
  }

  run(program: number, words: readonly string[], isRank: boolean): void {
    const [first = '', ...rest] = words
    const child = spawn(first, rest, {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      // The working folder may not be there under this name: ranks go to their own.
      cwd: '/',
      env: isRank
        ? { ...this.#environment, MILLRACE_MPI: this.#start, MILLRACE_RANK_COMMAND: quoted(rankWords()) }
        : this.#environment,
    })
    this.#programs.set(program, child)
    let reason = ''
    let code: number | null = null
    const over = (): void => {
      if (!this.#programs.delete(program)) return
      this.#events?.exited(program, code, reason)
    }
    child.stdout?.on('data', (chunk: Buffer) => this.#events?.printed(true, chunk))
    child.stderr?.on('data', (chunk: Buffer) => this.#events?.printed(false, chunk))
    child.on('error', error => {
      reason = error.message
      over()
    })
    child.on('exit', (status, signal) => {
      code = status
      reason = `ended with ${signal ?? `exit code ${status}`}`
      // Something that it started may still hold its output.
      setTimeout(over, LATE).unref()
    })
    child.on('close', over)
    for (const one of [child, child.stdout, child.stderr]) (one as unknown as Socket | null)?.unref()
  }

  write(channel: number, bytes: Uint8Array): void {
    this.#channels.get(channel)?.write(bytes)
  }

  share(name: string, bytes: Uint8Array): void {
    writeShared(join(this.#folder, name), bytes)
  }

  make(name: string, size: number): void {
    emptyShared(join(this.#folder, name), size)
  }

  read(name: string, from: number, into: Uint8Array): null {
    readShared(join(this.#folder, name), from, into)
    return null
  }

  remove(names: readonly string[]): void {
    removeShared(names.map(name => join(this.#folder, name)))
  }

  places(): Buffer {
    readSync(this.#places, this.#placeBytes, 0, this.#placeBytes.length, 0)
    return this.#placeBytes
  }

  /** To the programs and all ranks: each leads its process group, unless it made others. */
  kill(processes: readonly number[]): void {
    for (const pid of [...Array.from(this.#programs.values(), ({ pid }) => pid ?? 0), ...processes]) {
      for (const target of [-pid, pid]) {
        try {
          if (pid > 1) process.kill(target, 'SIGKILL')
        } catch {
          // It has ended, or leads no group.
        }
      }
    }
  }

  hold(): void {
    for (const child of this.#programs.values()) {
      for (const one of [child, child.stdout, child.stderr]) (one as unknown as Socket | null)?.ref()
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#server?.close()
    for (const socket of this.#channels.values()) socket.destroy()
    if (this.#places >= 0) closeSync(this.#places)
    this.#places = -1
    if (this.#folder !== '') rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Milliseconds until the end of the output of a program that has ended. */
const LATE = 500

/** Programs of their own are beside this file once it is built. */
const programBeside = (name: string): string => fileURLToPath(new URL(`./${name}.js`, import.meta.url))

const rankWords = (): string[] => [
  process.execPath,
  '--conditions=millrace-thread',
  programBeside('mpi-rank'),
]

const quoted = (words: readonly string[]): string =>
  words.map(word => `'${word.replaceAll("'", "'\\''")}'`).join(' ')

function machineId(): string {
  try {
    return `${hostname()} ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`
  } catch {
    return hostname()
  }
}

const STARTER = '#!/bin/sh\nexec "$MILLRACE_NODE" "$MILLRACE_STARTER" "$@"\n'

/** Launchers take a program without words for it. */
function starterIn(folder: string): string {
  const path = join(folder, 'start-there')
  if (!existsSync(path)) {
    const own = `${path}-${process.pid}`
    writeFileSync(own, STARTER, { mode: 0o755 })
    renameSync(own, path)
  }
  return path
}
