import { spawn } from 'node:child_process'
import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import type { Tools } from '../../stream/run/toolchain.ts'
import { RELAY } from './messages.ts'
import { frameOf } from './relay-frame.ts'

/** Bytes that may be on their way to the other side before it has taken them. */
const WINDOW = 4 << 20
const HEADER = 5

export interface LiveRelayEvents {
  /** For the relay on the other side; the bytes are its own. */
  send(bytes: Uint8Array): void
  /** The relay here has taken this many bytes of the other side. */
  took(bytes: number): void
  /** It could not go on. */
  broken(why: string): void
}

/**
 * One of a pair of relays, each at the board of a node. Files are added while the boards are in use: see `--live` in
 * preload/tool_relay.h. What one says is for the other; it is passed on as bytes.
 */
export class LiveRelay {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>
  readonly #events: LiveRelayEvents
  /** Sent, and not taken. */
  #ahead = 0
  /** Of the frame that comes in: its header as far as it is here, and how much is missing. */
  readonly #header = Buffer.alloc(HEADER)
  #filled = 0
  #missing = 0
  /** Frames of ours wait until one of the other side is complete. */
  #own: Buffer[] = []
  #isEnded = false

  /** `sends`: all files of its node, or those that were asked for. */
  constructor(tools: Tools, workflow: string, sends: 'all' | 'asked', events: LiveRelayEvents) {
    this.#events = events
    const words = ['relay', '-w', workflow, '--live', ...(sends === 'all' ? [] : ['--asked'])]
    const child = spawn(tools.board, words, {
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    })
    this.#process = child
    child.stdin.on('error', () => undefined)
    child.stdout.on('data', (bytes: Buffer) => {
      this.#ahead += bytes.length
      events.send(bytes)
      if (this.#ahead >= WINDOW) child.stdout.pause()
    })
    const broken = (why: string): void => {
      if (this.#isEnded) return
      this.#isEnded = true
      events.broken(`the relay of its streams ${why}`)
    }
    child.on('error', error => broken(error.message))
    // With 0 it ends when the board does.
    child.on('exit', (code, signal) => {
      if (code !== 0) broken(`ended with ${code ?? signal}`)
    })
    child.unref()
    for (const end of [child.stdin, child.stdout]) (end as unknown as { unref(): void }).unref()
  }

  /** Sends this file of the board, from its beginning on and as it grows. */
  ask(path: string): void {
    this.#own.push(frameOf(RELAY.want, path, () => undefined))
    if (this.#missing === 0 && this.#filled === 0) this.#writeOwn()
  }

  /** Bytes of the relay on the other side. */
  take(bytes: Uint8Array): void {
    const at = this.#own.length > 0 ? this.#boundaryIn(bytes) : this.#follow(bytes)
    if (at >= 0) {
      this.#write(bytes.subarray(0, at))
      this.#writeOwn()
      this.#write(bytes.subarray(at))
    } else this.#write(bytes)
  }

  /** The other side has taken this many bytes. */
  taken(bytes: number): void {
    this.#ahead -= bytes
    if (this.#ahead < WINDOW) this.#process.stdout.resume()
  }

  /** Nothing more will come: what did not come whole has failed. */
  end(): void {
    this.#isEnded = true
    this.#process.stdin.end()
    this.#process.stdout.destroy()
  }

  #write(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#process.stdin.write(bytes, () => this.#events.took(bytes.length))
  }

  #writeOwn(): void {
    for (const frame of this.#own) this.#process.stdin.write(frame)
    this.#own = []
  }

  /** Reads over frames. Where the first one ends; -1 when none does. */
  #boundaryIn(bytes: Uint8Array): number {
    let first = -1
    for (let at = 0; at < bytes.length;) {
      if (this.#missing === 0) {
        const take = Math.min(HEADER - this.#filled, bytes.length - at)
        this.#header.set(bytes.subarray(at, at + take), this.#filled)
        this.#filled += take
        at += take
        if (this.#filled < HEADER) break
        this.#missing = this.#header.readUInt32LE(0)
        if (this.#missing > 0) continue
      } else {
        const take = Math.min(this.#missing, bytes.length - at)
        this.#missing -= take
        at += take
        if (this.#missing > 0) break
      }
      this.#filled = 0
      if (first < 0) first = at
    }
    return first
  }

  #follow(bytes: Uint8Array): -1 {
    this.#boundaryIn(bytes)
    return -1
  }
}
