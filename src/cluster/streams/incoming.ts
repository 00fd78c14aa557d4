import type { FrameReader } from '../link/frames.ts'
import type { Arrivals, Holds } from './channel.ts'
import { EPOCH_FRAME, FLAGS, MARK_FRAME, RELAY } from './messages.ts'
import { endedFrame, frameOf, pathOf, readMark, readNumber } from './relay-frame.ts'
import type { Mark } from './relay-frame.ts'

/** Milliseconds for a name to become free on the node that had it, before two nodes are said to write one file. */
const NAME_TIMEOUT = 2000
/** Milliseconds for what a lost node has sent before. */
const LAST_WORDS = 5000

export interface IncomingEvents {
  /** To the relay of this node. */
  toRelay(frame: Buffer, from: Holds | null): void
  nameOf(node: number): string
  /** Instances of each step that were placed on a node. */
  placedOn(node: number): ReadonlyMap<string, number>
}

interface FileFrom {
  readonly source: number
  /** On which of its ways it comes, and since when. */
  readonly id: string
  readonly epoch: number
  generation: number
  /** `known`: it is complete here, and comes again for others. */
  state: 'open' | 'done' | 'known'
}

interface Ended {
  mark: Mark
  heard: Set<string>
  isTold: boolean
}

interface Source {
  readonly channels: Set<string>
  /** Of its ways. */
  readonly epochs: Map<string, number>
  readonly ended: Map<number, Ended>
  /** Instances whose end was told to this node, by step. */
  readonly told: Map<string, number>
  isLost: boolean
}

interface Begun {
  readonly source: number
  readonly id: string
  readonly epoch: number
  readonly path: string
  readonly frame: Buffer
  readonly file: FileFrom | undefined
}

interface Waiting {
  readonly source: number
  readonly id: string
  readonly type: number
  readonly frame: Buffer
}

/** Frames of other nodes, put in the order that the relay of this node needs. */
export class Incoming implements Arrivals {
  readonly me: number
  readonly #events: IncomingEvents
  readonly #sources = new Map<number, Source>()
  readonly #files = new Map<string, FileFrom>()
  readonly #directories = new Set<string>()
  /** Channels that wait until a name is free. */
  readonly #held = new Map<string, { path: string; frames: Waiting[]; timer: NodeJS.Timeout; from: Holds }>()

  constructor(me: number, events: IncomingEvents) {
    this.me = me
    this.#events = events
  }

  /** Its home is another node. */
  isRemote(path: string): boolean {
    return this.#files.has(path)
  }

  /** Another node has told of this directory. */
  isTold(directory: string): boolean {
    return this.#directories.has(directory)
  }

  get remoteCount(): number {
    return this.#files.size
  }

  begin(source: number, id: string): void {
    this.#of(source).channels.add(id)
  }

  end(source: number, id: string): void {
    this.#of(source).channels.delete(id)
  }

  frame(source: number, id: string, type: number, frame: Buffer, content: FrameReader, from: Holds): void {
    if (this.#of(source).isLost) return
    const key = `${source} ${id}`
    const held = this.#held.get(key)
    if (held) {
      held.frames.push({ source, id, type, frame: Buffer.from(frame) })
      return
    }
    if (type === MARK_FRAME) return this.#marked(source, id, readMark(content.rest()))
    if (type === EPOCH_FRAME) return void this.#of(source).epochs.set(id, readNumber(frame))
    const path = pathOf(content.bytes, content.at)
    if (type === RELAY.begin && this.#isTaken(path, source, frame))
      return this.#hold(key, path, source, id, frame, from)
    this.#take(source, id, type, path, frame, from)
  }

  /** A node is lost: what it had sent is taken, then its files and steps fail here. */
  async lost(source: number): Promise<void> {
    const one = this.#of(source)
    const { channels, told } = one
    for (let left = LAST_WORDS; left > 0 && channels.size > 0; left -= 20)
      await new Promise(resolve => setTimeout(resolve, 20))
    one.isLost = true
    const why = `node ${this.#events.nameOf(source)} was lost`
    for (const [path, file] of this.#files) {
      if (file.source !== source || file.state !== 'open') continue
      file.state = 'done'
      this.#tell(frameOf(RELAY.fail, path, writer => writer.raw(Buffer.from(why))))
    }
    for (const [step, placed] of this.#events.placedOn(source)) {
      const failed = placed - (told.get(step) ?? 0)
      if (failed > 0) this.#tell(endedFrame(step, failed, why))
    }
  }

  #of(source: number): Source {
    let found = this.#sources.get(source)
    if (!found)
      this.#sources.set(
        source,
        (found = {
          channels: new Set(),
          epochs: new Map(),
          ended: new Map(),
          told: new Map(),
          isLost: false,
        }),
      )
    return found
  }

  #tell(frame: Buffer, from: Holds | null = null): void {
    this.#events.toRelay(frame, from)
  }

  #isTaken(path: string, source: number, frame: Buffer): boolean {
    const file = this.#files.get(path)
    return file !== undefined && file.source !== source && ((frame.at(-1) ?? 0) & FLAGS.directory) === 0
  }

  /** Ways differ in length: that the name is free again may come later than that another node has begun it. */
  #hold(key: string, path: string, source: number, id: string, frame: Buffer, from: Holds): void {
    from.pause()
    const timer = setTimeout(() => this.#release(key), NAME_TIMEOUT)
    const frames = [{ source, id, type: RELAY.begin, frame: Buffer.from(frame) }]
    this.#held.set(key, { path, frames, timer, from })
  }

  #release(key: string): void {
    const held = this.#held.get(key)
    if (!held) return
    clearTimeout(held.timer)
    this.#held.delete(key)
    for (const { source, id, type, frame } of held.frames) {
      if (type === MARK_FRAME) this.#marked(source, id, readMark(frame.subarray(HEADER)))
      else if (type === EPOCH_FRAME) this.#of(source).epochs.set(id, readNumber(frame))
      else this.#take(source, id, type, pathOf(frame, HEADER), frame, null)
    }
    held.from.resume()
  }

  #take(source: number, id: string, type: number, path: string, frame: Buffer, from: Holds | null): void {
    const last = frame.at(-1) ?? 0
    const file = this.#files.get(path)
    const epoch = this.#of(source).epochs.get(id) ?? 0
    // It was on its way for long, and has been sent again since.
    if (file?.source === source && epoch < file.epoch) return
    if (type === RELAY.begin) {
      if (last & FLAGS.directory) {
        this.#directories.add(path)
        return this.#tell(frame, from)
      }
      return this.#begin({ source, id, epoch, path, frame, file }, from)
    }
    if (!file || file.source !== source || file.id !== id || file.state === 'known') return
    if (type === RELAY.cut && last === 1) return this.#gone(path, frame, from)
    if (type === RELAY.cut) file.generation = frame.readUInt32LE(frame.length - 5)
    else if (type !== RELAY.data) file.state = 'done'
    this.#tell(frame, from)
  }

  #begin({ source, id, epoch, path, frame, file }: Begun, from: Holds | null): void {
    const generation = frame.readUInt32LE(frame.length - 5)
    const isAgain = ((frame.at(-1) ?? 0) & FLAGS.again) !== 0 && file?.source === source
    const state = isAgain && file.state !== 'open' ? 'known' : 'open'
    this.#files.set(path, { source, id, epoch, generation, state })
    if (state === 'known') return
    if (isAgain && file.generation !== generation) this.#tell(cutFrame(path, generation), from)
    this.#tell(frame, from)
  }

  #gone(path: string, frame: Buffer, from: Holds | null): void {
    this.#files.delete(path)
    this.#tell(frame, from)
    for (const [key, held] of this.#held) if (held.path === path) this.#release(key)
  }

  /** The end of a step counts when all that was sent before it has come, on all ways from there. */
  #marked(source: number, id: string, mark: Mark): void {
    const { ended, told } = this.#of(source)
    let one = ended.get(mark.index)
    if (!one || mark.edition > one.mark.edition) {
      one = { mark, heard: new Set(), isTold: one?.isTold ?? false }
      ended.set(mark.index, one)
    }
    if (mark.edition === one.mark.edition) one.heard.add(id)
    if (one.isTold || one.mark.channels.some(way => way.chain.includes(this.me) && !one.heard.has(way.id)))
      return
    one.isTold = true
    const frame = Buffer.from(one.mark.frame, 'base64')
    const step = pathOf(frame, HEADER)
    const at = HEADER + 2 + Buffer.byteLength(step)
    told.set(step, (told.get(step) ?? 0) + frame.readUInt32LE(at) + frame.readUInt32LE(at + 4))
    this.#tell(frame)
  }
}

const HEADER = 5

const cutFrame = (path: string, generation: number): Buffer =>
  frameOf(RELAY.cut, path, writer => {
    const rest = Buffer.alloc(5)
    rest.writeUInt32LE(generation)
    writer.raw(rest)
  })
