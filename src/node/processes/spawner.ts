import type { ChildProcess } from 'node:child_process'
import { readSync } from 'node:fs'
import { constants } from 'node:os'
import type { Socket } from 'node:net'
import type { CommandRequest } from './command-process.ts'
import { RequestWriter, readReplies } from './spawner-wire.ts'
import type { NumberedLimits, ReplyListener, SpawnEnded, SpawnRefused } from './spawner-wire.ts'

export interface SpawnListener {
  ended(result: SpawnEnded): void
  refused(why: SpawnRefused): void
  /** It never began, because it was called back or signalled before. */
  cameBack(): void
  /** The spawner itself ended, and what it had started with it. */
  lost(): void
}

const OWN_BYTES = 1 << 14

/** The coordinator's side of `millrace-spawn`, the small process that starts programs (native/spawner.h). */
export class Spawner {
  readonly #child: ChildProcess
  readonly #input: Socket
  readonly #writer = new RequestWriter()
  readonly #listeners = new Map<number, SpawnListener>()
  #lastId = 0
  #rest: Buffer | null = null
  #isReceiving = false
  /** What replies are read from, and into, when the event loop does not do it. */
  readonly #fd: number
  readonly #own = Buffer.allocUnsafeSlow(OWN_BYTES)
  #isFlushing = false
  #isGone = false

  constructor(tool: string, onGone: () => void) {
    const environment = { ...process.env }
    delete environment['MILLRACE_RUN']
    // Programs whose output has no file get ours, which is not the spawner's own: those are for messages.
    const { spawn } = process.getBuiltinModule('node:child_process')
    this.#child = spawn(tool, [], {
      detached: true,
      stdio: ['pipe', 'pipe', 2, 1],
      env: environment,
      cwd: '/',
    })
    const gone = (): void => {
      if (this.#isGone) return
      this.#isGone = true
      const lost = [...this.#listeners.values()]
      this.#listeners.clear()
      onGone()
      for (const listener of lost) listener.lost()
    }
    this.#child.on('error', gone)
    this.#child.on('exit', gone)
    this.#input = this.#child.stdin as unknown as Socket
    const output = this.#child.stdout as unknown as Socket
    // No public name leads to it; without it, replies wait for the event loop.
    this.#fd = (output as { _handle?: { fd?: number } })._handle?.fd ?? -1
    this.#input.on('error', gone)
    output.on('error', gone)
    output.on('data', (chunk: Buffer) => this.#receive(chunk))
    // Live tasks keep the process alive, not the spawner.
    this.#child.unref()
    this.#input.unref()
    output.unref()
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Returns the number by which it can be signalled. */
  run(request: CommandRequest, limits: NumberedLimits, listener: SpawnListener): number {
    const id = ++this.#lastId
    this.#listeners.set(id, listener)
    this.#writer.run(id, request, limits)
    this.#flushSoon()
    return id
  }

  /** To the program and everything in its process group. */
  signal(id: number, signal: NodeJS.Signals): void {
    if (!this.#listeners.has(id) || this.#isGone) return
    this.#writer.kill(id, constants.signals[signal])
    this.flush()
  }

  /** If it has not begun, it does not any more. */
  callBack(id: number): void {
    if (!this.#listeners.has(id) || this.#isGone) return
    this.#writer.back(id)
    this.#flushSoon()
  }

  /** `clean`: nothing that was started can be left; else it is looked for and killed. */
  end(clean: boolean): void {
    if (this.#isGone) return
    if (clean) this.#writer.quit()
    this.flush()
    this.#isGone = true
    this.#input.end()
  }

  /** Takes what has come, while the event loop is kept from doing so. */
  drain(): void {
    if (this.#isGone || this.#isReceiving || this.#listeners.size === 0) return
    let size = 0
    try {
      size = readSync(this.#fd, this.#own)
    } catch {
      // Nothing has come. What else it may be, the event loop will hear.
    }
    if (size > 0) this.#receive(Buffer.from(this.#own.subarray(0, size)))
  }

  /** Requests of one turn go out together. */
  #flushSoon(): void {
    if (this.#isFlushing) return
    this.#isFlushing = true
    process.nextTick(() => {
      this.#isFlushing = false
      this.flush()
    })
  }

  flush(): void {
    const bytes = this.#writer.take()
    if (bytes !== null && !this.#isGone) this.#input.write(bytes)
  }

  #receive(chunk: Buffer): void {
    const bytes = this.#rest === null ? chunk : Buffer.concat([this.#rest, chunk])
    this.#isReceiving = true
    try {
      const used = readReplies(bytes, this.#replies)
      this.#rest = used < bytes.length ? bytes.subarray(used) : null
    } finally {
      this.#isReceiving = false
    }
  }

  readonly #replies: ReplyListener = {
    ended: (id, ended) => this.#take(id)?.ended(ended),
    refused: (id, refused) => this.#take(id)?.refused(refused),
    cameBack: id => this.#take(id)?.cameBack(),
  }

  #take(id: number): SpawnListener | undefined {
    const listener = this.#listeners.get(id)
    this.#listeners.delete(id)
    return listener
  }
}
