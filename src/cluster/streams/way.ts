import type { Channel, Holds } from './channel.ts'
import { RELAY } from './messages.ts'

/** How much may wait, in bytes. */
export interface Room {
  /** On their way through the coordinator before files wait, and with how few of them they go on. */
  readonly most: number
  readonly few: number
  /** What a relay may say after its files were told to wait: then all of it stops. */
  readonly over: number
}
const MIB = 1 << 20
const ROOM: Room = { most: 8 * MIB, few: 4 * MIB, over: 8 * MIB }

export interface WayEvents {
  /** It has room, or no longer. */
  changed(way: Way): void
  /** The relay goes on saying things that there is no room for; or there is room again. */
  overrun(isOver: boolean): void
}

/** One way of frames from a node to others. While it has no room its files wait, and those on other ways go on. */
export class Way implements Holds {
  readonly id: string
  readonly chain: readonly number[]
  /** Bytes of files. */
  sent = 0
  /** What was sent on it last was sent after this many ways had failed. */
  epoch = 0
  isClosed = false
  /** Files that were begun on it. */
  readonly files = new Set<string>()
  readonly #events: WayEvents
  readonly #room: Room
  readonly #late = new Set<string>()
  /** Ends of steps that come behind files which are late. */
  #marks: Buffer[] = []
  #channel: Channel | null = null
  /** What has to be sent when it is open. */
  #waiting: Buffer[] = []
  #isPaused = false
  #untaken = 0
  #isUntaken = false
  #isFull = true
  #over = 0
  #isOver = false

  constructor(id: string, chain: readonly number[], events: WayEvents, room = ROOM) {
    this.id = id
    this.chain = chain
    this.#events = events
    this.#room = room
  }

  get isFull(): boolean {
    return this.#isFull
  }

  open(channel: Channel): void {
    this.#channel = channel
    for (const frame of this.#waiting.splice(0)) this.#send(channel, frame)
    this.#look()
  }

  pass(frame: Buffer): void {
    if (this.isClosed) return
    if (this.#isFull) this.#overrun(this.#over + frame.length)
    if (this.#channel) this.#send(this.#channel, frame)
    // It is part of a larger chunk, which must not be kept for it.
    else this.#waiting.push(Buffer.from(frame))
  }

  #send(channel: Channel, frame: Buffer): void {
    if (frame[4] === RELAY.data) this.sent += frame.length
    channel.pass(frame, this)
  }

  /** Frames that leave in this way are taken one after the other: see `taken`. */
  leaves(bytes: number): void {
    this.#untaken += bytes
    if (this.#untaken < this.#room.most || this.#isUntaken) return
    this.#isUntaken = true
    this.#look()
  }

  /** The node at its end has taken this many bytes of what has left. */
  taken(bytes: number): void {
    this.#untaken -= bytes
    if (this.#untaken > this.#room.few || !this.#isUntaken) return
    this.#isUntaken = false
    this.#look()
  }

  pause(): void {
    this.#isPaused = true
    this.#look()
  }

  resume(): void {
    this.#isPaused = false
    this.#look()
  }

  /** The file is complete, and its last bytes wait: ends of steps come behind it. */
  late(path: string): void {
    this.#late.add(path)
  }

  mark(frame: Buffer): void {
    if (this.#late.size > 0) this.#marks.push(frame)
    else this.pass(frame)
  }

  /** Nothing more follows about the file. */
  done(path: string): void {
    this.files.delete(path)
    if (!this.#late.delete(path) || this.#late.size > 0) return
    for (const mark of this.#marks.splice(0)) this.pass(mark)
  }

  /** All was sent again, and so will be the ends of steps. */
  repaired(): void {
    this.#late.clear()
    this.#marks = []
  }

  end(): void {
    this.#channel?.end()
  }

  close(): void {
    this.isClosed = true
    this.#waiting = []
    this.#marks = []
    this.#look()
  }

  #look(): void {
    const isFull = !this.isClosed && (!this.#channel || this.#isPaused || this.#isUntaken)
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    if (!isFull) this.#overrun(0)
    this.#events.changed(this)
  }

  #overrun(over: number): void {
    this.#over = over
    const isOver = over > this.#room.over
    if (isOver === this.#isOver) return
    this.#isOver = isOver
    this.#events.overrun(isOver)
  }
}
