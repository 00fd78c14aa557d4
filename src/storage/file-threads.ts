import type * as Fs from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'

/** Bytes of a chunk. */
export const CHUNK = 2 ** 20

/** Calls that run at one time: those to a slow device do not hold up all others. */
const MOST_THREADS = 4

/** What a copy keeps of the original. */
export interface Kept {
  readonly mode: number
  readonly atime: Date
  readonly mtime: Date
}

/** A copy that was begun: it is complete, or a folder with entries to copy, or a file that is open. */
export type Begun =
  | { readonly kind: 'done'; readonly bytes: number }
  | { readonly kind: 'folder'; readonly names: readonly string[]; readonly kept: Kept }
  | { readonly kind: 'open'; readonly file: OpenCopy; readonly kept: Kept }

export interface OpenCopy {
  readonly source: number
  readonly target: number
  readonly size: number
}

/** What a thread can be asked for. */
export interface FileCalls {
  /** With `isWhole` a file is copied, and on the disk when this returns. */
  begin(from: string, to: string, isWhole: boolean): Begun
  /** Copies a chunk; returns how much was written, 0 at the end of the source. */
  chunk(file: OpenCopy, at: number): number
  /** What was written is on the disk. */
  sync(file: OpenCopy): void
  /** Closes the files; with `kept` the copy is complete. */
  finish(file: OpenCopy, kept: Kept | null): void
  finishFolder(path: string, kept: Kept): void
  /** After a rename: the new name is on the disk as well, where the file system can do that. */
  syncFolder(path: string): void
  makeFolder(path: string): void
  rename(from: string, to: string): void
  /** Deletes a file or a folder, if it is there. */
  remove(path: string): void
}

interface Request {
  readonly name: keyof FileCalls
  readonly args: readonly unknown[]
}

type Reply = { readonly result: unknown } | { readonly error: NodeJS.ErrnoException }

interface Waiting {
  readonly request: Request
  resolve(result: unknown): void
  reject(error: Error): void
}

/**
 * Threads of their own for the file calls of moves. All threads of a process share one small pool for the calls of
 * `node:fs/promises`, which I/O tasks use: a move to a slow device would take it from them. They start with the first
 * call. A call never waits for anything but its device, so each gets its turn.
 */
export class FileThreads {
  readonly #idle: FileThread[] = []
  readonly #all = new Set<FileThread>()
  readonly #waiting: Waiting[] = []

  call<N extends keyof FileCalls>(
    name: N,
    ...args: Parameters<FileCalls[N]>
  ): Promise<ReturnType<FileCalls[N]>> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request: { name, args }, resolve: resolve as Waiting['resolve'], reject })
      this.#next()
    })
  }

  #next(): void {
    if (this.#waiting.length === 0) return
    const thread = this.#idle.pop() ?? this.#start()
    if (thread) thread.begin(this.#waiting.shift() as Waiting)
  }

  #start(): FileThread | null {
    if (this.#all.size >= MOST_THREADS) return null
    const thread = new FileThread(
      () => {
        this.#idle.push(thread)
        this.#next()
      },
      () => {
        this.#all.delete(thread)
        const at = this.#idle.indexOf(thread)
        if (at >= 0) this.#idle.splice(at, 1)
        this.#next()
      },
    )
    this.#all.add(thread)
    return thread
  }

  /** Ends the threads. A later call starts them again. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#all, thread => thread.end()))
  }
}

/**
 * Text, not a module: modules are loaded by the pool that is to be left alone. Loaders that compile TypeScript may wrap
 * functions in a call of `__name`.
 */
const SCRIPT = `const __name = made => made
;(${serve.toString()})(require('node:fs'), require('node:worker_threads').parentPort, ${CHUNK})`

class FileThread {
  readonly #worker = new Worker(
    SCRIPT,
    // Any thread may close what another has opened.
    { eval: true, execArgv: [], trackUnmanagedFds: false },
  )
  #current: Waiting | null = null

  constructor(isIdle: () => void, isGone: () => void) {
    const worker = this.#worker
    // Only a call that is under way keeps the process alive.
    worker.unref()
    worker.on('message', (reply: Reply) => {
      const current = this.#current
      this.#current = null
      worker.unref()
      isIdle()
      if ('result' in reply) current?.resolve(reply.result)
      else current?.reject(Object.assign(new Error(reply.error.message), reply.error))
    })
    worker.on('error', error => this.#fail(error as Error))
    worker.on('exit', () => {
      this.#fail(new Error('the thread that moves files has ended'))
      isGone()
    })
  }

  begin(waiting: Waiting): void {
    this.#current = waiting
    this.#worker.ref()
    this.#worker.postMessage(waiting.request)
  }

  #fail(error: Error): void {
    this.#current?.reject(error)
    this.#current = null
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }
}

/** Runs in a thread, as text: it may use nothing but its parameters. */
function serve(fs: typeof Fs, port: MessagePort, chunk: number): void {
  const buffer = Buffer.allocUnsafeSlow(chunk)
  const calls: FileCalls = {
    begin: (from, to, isWhole) => {
      const stats = fs.lstatSync(from)
      const { mode, atime, mtime, size } = stats
      if (stats.isSymbolicLink()) {
        fs.symlinkSync(fs.readlinkSync(from), to)
        return { kind: 'done', bytes: 0 }
      }
      if (stats.isDirectory()) {
        fs.mkdirSync(to, { recursive: true })
        return { kind: 'folder', names: fs.readdirSync(from), kept: { mode, atime, mtime } }
      }
      if (isWhole) {
        fs.copyFileSync(from, to, fs.constants.COPYFILE_FICLONE)
        const copy = fs.openSync(to, 'r')
        try {
          fs.fsyncSync(copy)
        } finally {
          fs.closeSync(copy)
        }
        fs.utimesSync(to, atime, mtime)
        return { kind: 'done', bytes: size }
      }
      const source = fs.openSync(from, 'r')
      try {
        const target = fs.openSync(to, 'w', mode)
        return { kind: 'open', file: { source, target, size }, kept: { mode, atime, mtime } }
      } catch (error) {
        fs.closeSync(source)
        throw error
      }
    },
    chunk: ({ source, target, size }, at) => {
      const read = fs.readSync(source, buffer, 0, Math.min(chunk, size - at), at)
      // A device that is almost full takes less than it is given.
      return read === 0 ? 0 : fs.writeSync(target, buffer, 0, read, at)
    },
    sync: ({ target }) => fs.fdatasyncSync(target),
    finish: ({ source, target }, kept) => {
      try {
        if (!kept) return
        fs.fsyncSync(target)
        fs.fchmodSync(target, kept.mode)
        fs.futimesSync(target, kept.atime, kept.mtime)
      } finally {
        fs.closeSync(source)
        fs.closeSync(target)
      }
    },
    finishFolder: (path, { mode, atime, mtime }) => {
      fs.chmodSync(path, mode)
      fs.utimesSync(path, atime, mtime)
      calls.syncFolder(path)
    },
    syncFolder: path => {
      try {
        const folder = fs.openSync(path, 'r')
        try {
          fs.fsyncSync(folder)
        } finally {
          fs.closeSync(folder)
        }
      } catch {
        // Some file systems cannot sync folders.
      }
    },
    makeFolder: path => void fs.mkdirSync(path, { recursive: true }),
    rename: (from, to) => fs.renameSync(from, to),
    remove: path => fs.rmSync(path, { recursive: true, force: true }),
  }
  port.on('message', ({ name, args }: Request) => {
    try {
      const call = calls[name] as (...args: readonly unknown[]) => unknown
      port.postMessage({ result: call(...args) })
    } catch (error) {
      // A clone of an error loses its code.
      const { message, code, errno, syscall, path } = error as NodeJS.ErrnoException
      port.postMessage({ error: { message, code, errno, syscall, path } })
    }
  })
}
