import type { Decoder } from '../../model/encoding/decode.ts'
import { Encoder } from '../../model/encoding/encode.ts'
import { LaneThread } from '../../node/threads/lane-thread.ts'
import type { LaneThreadOptions, ThreadMessage } from '../../node/threads/lane-thread.ts'
import { FLAG, STATUS, withRecord } from '../../node/threads/protocol.ts'
import type { ToThread } from '../../node/threads/protocol.ts'
import { SentMemory } from '../../node/threads/sent-memory.ts'
import { FROM_AGENT } from '../link/frame-types.ts'
import type { FrameReader, FrameWriter } from '../link/frames.ts'
import { pack, unpack } from '../link/structured.ts'
import { Ordered } from '../transfer/incoming.ts'
import type { AgentMemory } from './agent-memory.ts'

interface Written {
  readonly blob: number
  readonly offset: number
  readonly length: number
}

interface Given {
  readonly id: number
  readonly position: number
  readonly blobs: readonly SharedArrayBuffer[]
  readonly written: readonly Written[]
  readonly keepsFailed: boolean
  /** Buffers of results from this size on stay here; 0: none. */
  staysFrom: number
  /** Its place in the ring; null while it waits for its memory, and when it went as a message. */
  ring: number | null
  isSent: boolean
}

export interface AgentThreadHost {
  readonly writer: FrameWriter
  readonly memory: AgentMemory
  /** Something was written. */
  changed(): void
  ended(lane: number): void
}

/** One compute thread of an agent, as the coordinator drives it through the link. */
export class AgentThread {
  readonly #lane: number
  readonly #host: AgentThreadHost
  readonly #thread: LaneThread
  /** By task, in the order of sending. */
  readonly #given = new Map<number, Given>()
  readonly #inbox = new Ordered()
  readonly #encoder = new Encoder()
  readonly #sent: SentMemory
  #toldBegan = 0

  constructor(options: LaneThreadOptions, host: AgentThreadHost) {
    this.#lane = options.lane
    this.#host = host
    this.#sent = new SentMemory((_lane, number) => this.#thread.send({ type: 'forget-memory', number }))
    this.#sent.reset(0)
    this.#thread = new LaneThread(options, {
      result: (decoder, end, blobs) => this.#result(decoder, end, blobs),
      message: message => this.#said(message),
      findClass: () => null,
      announced: () => this.drain(),
      ended: reason => this.#ended(reason),
    })
    this.#thread.whenReady(() => {
      this.#begin(FROM_AGENT.ready)
      this.#done()
    })
  }

  get isBusy(): boolean {
    return this.#given.size > 0
  }

  // --- what the coordinator says ---

  task(content: FrameReader): void {
    const position = content.varint()
    const id = content.varint()
    const keepsFailed = content.byte() === 1
    const staysFrom = content.varint()
    const references = listOf(content)
    const written: Written[] = []
    for (let left = content.varint(); left > 0; left--) {
      written.push({ blob: content.varint(), offset: content.varint(), length: content.varint() })
    }
    const record = content.rest()
    let given: Given = { id, position, blobs: [], written, keepsFailed, staysFrom, ring: null, isSent: false }
    this.#given.set(id, given)
    if (references.length === 0 && this.#inbox.isEmpty) return this.#send(given, record)
    this.#inbox.push(
      ready => {
        this.#host.memory.resolve(references, blobs => {
          // It may have been taken back, and even be here for a second time.
          if (this.#given.get(id) === given) this.#given.set(id, (given = { ...given, blobs }))
          ready()
        })
      },
      () => {
        if (this.#given.get(id) !== given) return
        this.#send(given, record)
        this.#thread.announce()
      },
    )
  }

  message(content: FrameReader): void {
    const isCounted = content.byte() === 1
    const references = listOf(content)
    const bytes = content.block()
    let resolved: SharedArrayBuffer[] = []
    this.#inbox.push(
      ready =>
        this.#host.memory.resolve(references, buffers => {
          resolved = buffers
          ready()
        }),
      () => {
        const message = unpack(bytes, resolved) as ToThread
        if (isCounted) this.#thread.sendCounted(message as Parameters<LaneThread['sendCounted']>[0])
        else if (message.type === 'end') void this.#thread.end()
        else this.#thread.send(message)
      },
    )
  }

  revoke(position: number): void {
    const given = this.#at(position)
    const isBack = given !== undefined && this.#takeBack(given)
    if (given && isBack) this.#given.delete(given.id)
    this.#begin(FROM_AGENT.revoked)
    this.#host.writer.varint(position)
    this.#host.writer.byte(isBack ? 1 : 0)
    this.#done()
  }

  hurry(): void {
    const isThere = this.#thread.hurry(true)
    if (isThere) this.drain()
  }

  kill(reason: string): void {
    this.#thread.kill(reason)
  }

  announce(): void {
    this.#thread.announce()
  }

  /** Takes results that are there. */
  drain(): void {
    this.#thread.drain()
  }

  /** Tells of a task that takes long: it has begun, though nothing else is heard of it. */
  tellBegun(): void {
    const [first] = this.#given.values()
    if (!first || first.ring === null || first.position <= this.#toldBegan) return
    if (!this.#thread.isTaken(first.ring)) return
    this.#toldBegan = first.position
    this.#begin(FROM_AGENT.began)
    this.#host.writer.varint(first.position)
    this.#done()
  }

  end(): Promise<void> {
    return this.#thread.end()
  }

  #at(position: number): Given | undefined {
    for (const given of this.#given.values()) if (given.position === position) return given
    return undefined
  }

  #takeBack({ isSent, ring, blobs }: Given): boolean {
    if (!isSent) return true
    if (ring === null || !this.#thread.revoke(ring)) return false
    for (const buffer of blobs) this.#sent.takenBack(buffer, 0)
    return true
  }

  /** As `Threads.send` does for threads of the coordinator. */
  #send(given: Given, record: Uint8Array): void {
    const { blobs } = given
    const encoder = this.#encoder
    const thread = this.#thread
    encoder.reset()
    encoder.raw(record)
    let before = thread.messages
    if (blobs.length > 0) {
      const start = encoder.length
      const message = this.#sent.write(encoder, blobs, 0)
      encoder.word(encoder.length + 4 - start)
      const flags = flagsAt(record)
      encoder.bytes[flags] = (encoder.bytes[flags] as number) | FLAG.memory
      if (message) {
        before++
        encoder.setWord(0, before)
        thread.sendCounted(message)
      }
    }
    encoder.setWord(0, before)
    given.isSent = true
    given.ring = encoder.length <= thread.largest ? thread.sendRecord(encoder.bytes, encoder.length) : null
    if (given.ring !== null) return
    const bytes = encoder.copy()
    thread.sendCounted({ type: 'task', bytes, blobs: [] }, withRecord(bytes, []))
  }

  // --- what the thread says ---

  #result(decoder: Decoder, end: number, blobs: readonly ArrayBufferLike[]): void {
    const start = decoder.at
    const id = decoder.varint()
    const status = decoder.byte()
    decoder.at = start
    const given = this.#given.get(id)
    const isLast = status !== STATUS.released
    const staysFrom = status === STATUS.ok ? (given?.staysFrom ?? 0) : 0
    const references = this.#references(blobs, given, staysFrom)
    this.#begin(FROM_AGENT.result)
    const { writer } = this.#host
    writer.varint(id)
    writer.byte(isLast ? 1 : 0)
    writer.varint(references.length)
    for (const [i, reference] of references.entries()) {
      writer.varint(reference)
      // The coordinator has no bytes from which it could know how many there are.
      if (reference % 2 === 1) writer.varint(sizeOfStaying(blobs[i] as ArrayBufferLike, staysFrom))
    }
    const keeps = isLast && given && (status === STATUS.ok || given.keepsFailed)
    const written = keeps ? given.written : NONE
    this.#parts(given, written)
    writer.raw(decoder.raw(end - start))
    this.#done()
    if (isLast) this.#given.delete(id)
  }

  #parts(given: Given | undefined, written: readonly Written[]): void {
    const { writer } = this.#host
    writer.varint(written.length)
    for (const { blob, offset, length } of written) {
      writer.block(new Uint8Array(given?.blobs[blob] as SharedArrayBuffer, offset, length))
    }
  }

  #said(message: ThreadMessage): void {
    const task = 'task' in message ? message.task : 0
    const caller = message.type === 'call' ? this.#given.get(task) : undefined
    // To repeat it would call them again.
    if (caller) caller.staysFrom = 0
    const { bytes, buffers } = pack(message)
    const references = this.#references(buffers, this.#given.get(task))
    this.#begin(FROM_AGENT.said)
    const { writer } = this.#host
    writer.varint(task)
    writer.varint(references.length)
    for (const reference of references) writer.varint(reference)
    writer.block(bytes)
    this.#done()
  }

  /** What the task was given goes by its place there; everything else is sent. */
  #references(buffers: readonly ArrayBufferLike[], given: Given | undefined, staysFrom = 0): number[] {
    if (buffers.length === 0) return []
    const { memory } = this.#host
    return buffers.map(buffer => {
      const known = given ? given.blobs.indexOf(buffer as SharedArrayBuffer) : -1
      if (known >= 0) return known * 2
      return sizeOfStaying(buffer, staysFrom) > 0 ? memory.keep(buffer) : memory.send(buffer)
    })
  }

  #ended(reason: string): void {
    let taken = 0
    const begun: Given[] = []
    for (const given of this.#given.values()) {
      const { ring, position, isSent } = given
      if (!isSent || (ring !== null && this.#thread.revoke(ring))) continue
      taken = Math.max(taken, position)
      if (given.keepsFailed && given.written.length > 0) begun.push(given)
    }
    this.#begin(FROM_AGENT.ended)
    this.#host.writer.text(reason)
    this.#host.writer.varint(this.#thread.began >>> 0)
    this.#host.writer.varint(taken)
    // What it wrote in place before it died stays, as it would on the coordinator's own machine.
    this.#host.writer.varint(begun.length)
    for (const given of begun) {
      this.#host.writer.varint(given.id)
      this.#parts(given, given.written)
    }
    this.#done()
    this.#host.ended(this.#lane)
  }

  #begin(type: number): void {
    this.#host.writer.begin(type)
    this.#host.writer.varint(this.#lane)
  }

  #done(): void {
    this.#host.writer.end()
    this.#host.changed()
  }
}

const NONE: readonly Written[] = []

/** Bytes of a buffer that is large enough to stay; 0 for others, which are sent. */
const sizeOfStaying = ({ byteLength }: ArrayBufferLike, staysFrom: number): number =>
  staysFrom > 0 && byteLength >= staysFrom ? byteLength : 0

function listOf(content: FrameReader): number[] {
  const numbers: number[] = []
  for (let left = content.varint(); left > 0; left--) numbers.push(content.varint())
  return numbers
}

/** Where the flags of a task record are: behind a word and three numbers. */
function flagsAt(record: Uint8Array): number {
  let at = 4
  for (let numbers = 0; numbers < 3; at++) if ((record[at] as number) < 0x80) numbers++
  return at
}
