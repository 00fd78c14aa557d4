import { Decoder } from '../../model/encoding/decode.ts'
import type { LaneThreadEvents, ThreadMessage } from '../../node/threads/lane-thread.ts'
import type { FromThread, ToThread } from '../../node/threads/protocol.ts'
import type { RemoteTask, ThreadPort } from '../../node/threads/thread-port.ts'
import { FROM_AGENT, TO_AGENT } from '../link/frame-types.ts'
import type { FrameReader } from '../link/frames.ts'
import { pack, unpack } from '../link/structured.ts'
import { Ordered } from '../transfer/incoming.ts'
import type { NodeLink } from './node-link.ts'

/** A task that was sent, as long as its memory may be needed. */
interface Sent {
  readonly position: number
  readonly blobs: readonly ArrayBufferLike[]
  readonly placed: RemoteTask['placed']
}

/** A compute thread of an agent. What `LaneThread` does through shared memory, this does through the link. */
export class RemoteThread implements ThreadPort {
  isKilled = false
  readonly #link: NodeLink
  readonly #lane: number
  readonly #events: LaneThreadEvents
  readonly #hooks
  /** By task. */
  readonly #sent = new Map<number, Sent>()
  readonly #asked = new Map<number, (isBack: boolean) => void>()
  readonly #inbox = new Ordered()
  #position = 0
  #hurried = 0
  #taken = 0
  #began = 0
  #isEnded = false
  #isCutOff = false
  #waiting: (() => void)[] | null = []
  #whenEnded: (() => void)[] = []
  #silence: NodeJS.Timeout | null = null

  constructor(link: NodeLink, lane: number, isIo: boolean, events: LaneThreadEvents) {
    this.#link = link
    this.#lane = lane
    this.#events = events
    this.#hooks = {
      findClass: (module: string, name: string) => events.findClass(module, name),
      slot: () => undefined,
    }
    const { writer } = link
    writer.begin(TO_AGENT.open)
    writer.varint(lane)
    writer.byte(isIo ? 1 : 0)
    writer.end()
    link.flushSoon()
  }

  // --- to the thread ---

  readonly sendTask = (task: RemoteTask): number => {
    const { writer, memory } = this.#link
    const { id, record, length, blobs, placed } = task
    const position = ++this.#position
    const placedAt = new Map(placed.map(one => [one.blob, one]))
    // Buffers first: they may be frames of their own.
    const references = blobs.map((buffer, i) => {
      const part = placedAt.get(i)
      if (!part) return memory.keep(buffer)
      return part.isShared
        ? memory.join(buffer, part.offset, part.length)
        : memory.once(buffer, part.offset, part.length)
    })
    writer.begin(TO_AGENT.task)
    writer.varint(this.#lane)
    writer.varint(position)
    writer.varint(id)
    writer.byte(task.keepsFailed ? 1 : 0)
    writer.varint(this.#link.peers.length > 0 ? task.staysFrom : 0)
    writer.varint(references.length)
    for (const reference of references) writer.varint(reference)
    const written = placed.filter(({ isWritten }) => isWritten)
    writer.varint(written.length)
    for (const { blob, offset, length: size } of written) {
      writer.varint(blob)
      writer.varint(offset)
      writer.varint(size)
    }
    writer.raw(record, length)
    writer.end()
    this.#sent.set(id, { position, blobs, placed })
    this.#link.flushSoon()
    return position
  }

  readonly askBack = (position: number, answer: (isBack: boolean) => void): void => {
    if (this.#isEnded) return
    const isAsked = this.#asked.has(position)
    this.#asked.set(position, answer)
    if (!isAsked) this.#tell(TO_AGENT.revoke, position)
  }

  readonly largest = Infinity
  readonly messages = 0

  sendRecord(): null {
    return null
  }

  sendCounted(message: ToThread): void {
    this.send(message)
  }

  send(message: ToThread): void {
    if (this.#isEnded) return
    // Threads of agents number memory by themselves.
    if (message.type === 'memory' || message.type === 'forget-memory') return
    const { bytes, buffers } = pack(message)
    const { writer, memory } = this.#link
    const references = buffers.map(buffer => memory.keep(buffer))
    writer.begin(TO_AGENT.message)
    writer.varint(this.#lane)
    writer.byte(COUNTED.includes(message.type) ? 1 : 0)
    writer.varint(references.length)
    for (const reference of references) writer.varint(reference)
    writer.block(bytes)
    writer.end()
    this.#link.flushSoon()
  }

  announce(): void {}

  drain(): void {}

  get began(): number {
    return this.#began
  }

  /** Each frame wakes the agent, so it is told only of tasks whose results are still to come. */
  hurry(): boolean {
    if (this.#hurried === this.#position || this.#sent.size === 0 || this.#isEnded) return false
    this.#hurried = this.#position
    this.#tell(TO_AGENT.hurry, 0)
    return false
  }

  revoke(): boolean {
    return false
  }

  isTaken(position: number): boolean {
    return position <= this.#taken
  }

  get isReady(): boolean {
    return this.#waiting === null
  }

  get isStillborn(): boolean {
    return !this.isReady && !this.isKilled && !this.#isCutOff
  }

  get isCutOff(): boolean {
    return this.#isCutOff
  }

  whenReady(go: () => void): void {
    if (this.#waiting) this.#waiting.push(go)
    else go()
  }

  checkAlive(isStuck: () => void): void {
    if (this.#silence) return
    this.#silence = setTimeout(isStuck, SILENCE)
    this.#silence.unref()
    this.send({ type: 'alive?' })
  }

  kill(reason: string): void {
    if (this.#isEnded) return
    this.isKilled = true
    const { writer } = this.#link
    writer.begin(TO_AGENT.kill)
    writer.varint(this.#lane)
    writer.text(reason)
    writer.end()
    this.#link.flush()
  }

  end(): Promise<void> {
    if (this.#isEnded) return Promise.resolve()
    return new Promise(resolve => {
      this.#whenEnded.push(resolve)
      this.send({ type: 'end' })
    })
  }

  #tell(type: number, value: number): void {
    const { writer } = this.#link
    writer.begin(type)
    writer.varint(this.#lane)
    writer.varint(value)
    writer.end()
    this.#link.flushSoon()
  }

  // --- from the thread ---

  /** A frame that names this lane, behind the lane. */
  receive(type: number, content: FrameReader): void {
    switch (type) {
      case FROM_AGENT.result:
        return this.#result(content)
      case FROM_AGENT.said:
        return this.#said(content)
      case FROM_AGENT.ready:
        return this.#becomeReady()
      case FROM_AGENT.began:
        this.#taken = Math.max(this.#taken, content.varint())
        return
      case FROM_AGENT.revoked:
        return this.#revoked(content.varint(), content.byte() === 1)
      default:
        return this.#endedThere(content)
    }
  }

  #result(content: FrameReader): void {
    if (!this.isReady) this.#becomeReady()
    const id = content.varint()
    const isLast = content.byte() === 1
    const { references, stays } = this.#resultsOf(content)
    const parts = partsOf(content)
    const { plain: bytes, at, end } = content
    const sent = this.#sent.get(id)
    if (references.length === 0 && this.#inbox.isEmpty) {
      this.#take(id, isLast, sent, parts)
      this.#events.result(this.#link.decoderOf(bytes, at, this.#hooks), end, [], [])
      return
    }
    this.#whenHere(
      references,
      sent,
      buffers => {
        this.#take(id, isLast, sent, parts)
        const decoder = new Decoder(bytes, this.#hooks)
        decoder.at = at
        this.#events.result(decoder, end, buffers, [])
      },
      stays,
    )
  }

  /** Which buffers a result has; those that stay on the node, by number, with memory for them that is empty so far. */
  #resultsOf(content: FrameReader): { references: number[]; stays: Map<number, ArrayBufferLike> } {
    const references: number[] = []
    const stays = new Map<number, ArrayBufferLike>()
    for (let left = content.varint(); left > 0; left--) {
      const reference = content.varint()
      references.push(reference)
      const size = reference % 2 === 1 ? content.varint() : 0
      if (size > 0) stays.set(reference, this.#link.memory.stays(reference, size))
    }
    return { references, stays }
  }

  /** What the task wrote in place is put there before its end is announced. */
  #take(id: number, isLast: boolean, sent: Sent | undefined, parts: readonly Uint8Array[]): void {
    if (!isLast || !sent) return
    const written = sent.placed.filter(({ isWritten }) => isWritten)
    for (const [i, bytes] of parts.entries()) {
      const place = written[i]
      const buffer = place && sent.blobs[place.blob]
      if (buffer) new Uint8Array(buffer, place.offset, place.length).set(bytes)
    }
    this.#leave(id, sent)
  }

  #leave(id: number, sent: Sent): void {
    this.#sent.delete(id)
    this.#asked.delete(sent.position)
    for (const { isShared, blob } of sent.placed) {
      if (isShared) this.#link.memory.leave(sent.blobs[blob] as ArrayBufferLike)
    }
  }

  #said(content: FrameReader): void {
    const task = content.varint()
    const references = listOf(content)
    const bytes = content.block()
    this.#whenHere(references, this.#sent.get(task), buffers => {
      const message = this.#here(unpack(bytes, buffers) as FromThread)
      if (message.type === 'alive') {
        clearTimeout(this.#silence ?? undefined)
        this.#silence = null
      } else this.#events.message(message as ThreadMessage)
    })
  }

  /** Tasks on a node with a folder of its own name files as they see them. */
  #here(message: FromThread): FromThread {
    const { folder } = this.#link
    if (!folder) return message
    if (message.type === 'call') {
      for (const slot of message.slots) if (slot.path !== null) slot.path = folder.here(slot.path)
    } else if (message.type === 'ask' && 'path' in message.question) {
      const { question } = message
      return { ...message, question: { ...question, path: folder.here(question.path) } }
    }
    return message
  }

  /** Calls, in the order of what came from the thread, when the buffers are here. */
  #whenHere(
    references: readonly number[],
    sent: Sent | undefined,
    go: (buffers: ArrayBufferLike[]) => void,
    stays: ReadonlyMap<number, ArrayBufferLike> = NONE,
  ): void {
    const { incoming, memory } = this.#link
    // Even ones mean a buffer that the task was given, by its place in the record.
    const numbers = references.filter(reference => reference % 2 === 1 && !stays.has(reference))
    let arrived: ArrayBufferLike[] = []
    this.#inbox.push(
      ready => {
        incoming.whenHere(numbers, buffers => {
          arrived = buffers
          for (const number of numbers) memory.arrived(number)
          ready()
        })
      },
      () => {
        if (this.#isEnded) return
        let next = 0
        go(
          references.map(reference => {
            if (reference % 2 === 0) return sent?.blobs[reference / 2] as ArrayBufferLike
            return stays.get(reference) ?? (arrived[next++] as ArrayBufferLike)
          }),
        )
      },
    )
  }

  #revoked(position: number, isBack: boolean): void {
    const answer = this.#asked.get(position)
    if (!answer) return
    this.#asked.delete(position)
    if (isBack) {
      for (const [id, sent] of this.#sent) if (sent.position === position) this.#leave(id, sent)
    }
    answer(isBack)
  }

  #becomeReady(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = null
    for (const go of waiting) go()
  }

  #endedThere(content: FrameReader): void {
    const reason = content.text()
    this.#began = content.varint() | 0
    this.#taken = content.varint()
    const left: { id: number; parts: Uint8Array[] }[] = []
    for (let count = content.varint(); count > 0; count--) {
      left.push({ id: content.varint(), parts: partsOf(content) })
    }
    // What was on the way when it ended comes first.
    this.#inbox.push(
      ready => ready(),
      () => {
        for (const { id, parts } of left) this.#take(id, true, this.#sent.get(id), parts)
        this.#over(reason)
      },
    )
  }

  /** The agent is gone, and the thread with it. */
  cutOff(reason: string): void {
    this.#isCutOff = true
    this.#over(reason)
  }

  #over(reason: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    for (const [id, sent] of this.#sent) this.#leave(id, sent)
    this.#link.closed(this.#lane, this)
    this.#events.ended(reason)
    for (const go of this.#whenEnded) go()
  }
}

/** As long as for threads of this process, and the way there and back; milliseconds. */
const SILENCE = 1000

const NONE: ReadonlyMap<number, ArrayBufferLike> = new Map()

const COUNTED: readonly string[] = ['task', 'kind', 'environment']

function partsOf(content: FrameReader): Uint8Array[] {
  const parts: Uint8Array[] = []
  for (let left = content.varint(); left > 0; left--) parts.push(content.block())
  return parts
}

function listOf(content: FrameReader): number[] {
  const numbers: number[] = []
  for (let left = content.varint(); left > 0; left--) numbers.push(content.varint())
  return numbers
}
