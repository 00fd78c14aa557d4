import { Datum } from '../core/data/datum.ts'
import type { Version } from '../core/data/datum.ts'
import type { Task } from '../core/tasks/task.ts'
import { WORD, liveMemory } from '../node/threads/early-wire.ts'
import type { GeneratorStart } from '../node/threads/early-wire.ts'
import { Deque } from '../general/deque.ts'
import type { StreamRoom } from '../model/options/options.ts'
import type { Kept } from '../model/encoding/stored.ts'

/** A value from its release until its last use. */
export interface Item {
  readonly datum: Datum
  readonly version: Version
  readonly bytes: number
}

/** What a channel needs of the runtime. */
export interface ChannelHost {
  release(task: Task, version: Version, at: number): void
  settled(version: Version, go: () => void): void
  unread(version: Version, go: () => void): void
  /** The error with which a producer ended, or null; `isTold`: the program has seen it. */
  failureOf(end: Version, isTold: boolean): Error | null
  stop(task: Task): void
}

interface Arrival {
  kept: Kept | undefined
  bytes: number
  check: number
  at: number
}

/**
 * The values of one generator task on their way to their consumers. Each has its place in the buffer from
 * its release until the taker has gone on to the next one and the tasks that read it have ended: so memory
 * is bounded by the buffer, however many values come. `memory` tells the producer's thread where that stands.
 */
export class Channel {
  readonly producer: Task
  readonly stream: Version
  readonly end: Version
  readonly memory = liveMemory()
  readonly room: StreamRoom
  readonly #words = new Int32Array(this.memory)
  readonly #host: ChannelHost
  /** Released and not taken yet. */
  readonly #queue = new Deque<Item>()
  /** Small values and large ones come by different ways: what came too early waits for what was before it. */
  readonly #ahead = new Map<number, Arrival>()
  /** Released so far, with their checksum and bytes: what another attempt has to begin with. */
  #count = 0
  #check = 0
  #bytes = 0
  #consumed = 0
  #consumedBytes = 0
  /** Places that were given although there was no room; they are not given again when it is there. */
  #debt = 0
  #debtBytes = 0
  #isOver = false
  #isClosed = false
  /** The task that takes the values, or the program. */
  taker: Task | 'program' | null = null
  #takers: (() => void)[] = []
  #held: (() => void) | null = null

  constructor(producer: Task, stream: Version, end: Version, room: StreamRoom, host: ChannelHost) {
    this.producer = producer
    this.stream = stream
    this.end = end
    this.room = room
    this.#host = host
    host.settled(end, () => {
      this.#isOver = true
      this.#wakeTakers()
    })
  }

  /** Values so far. */
  get count(): number {
    return this.#count
  }

  /** No reader wants more. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** A value that an earlier run kept. It is the caller's to commit it. */
  give(kept: Kept): Version {
    const datum = new Datum(null, false, false)
    const version = datum.current
    version.value = kept
    this.#count++
    if (this.#isClosed) return version
    this.#queue.push({ datum, version, bytes: 0 })
    Atomics.add(this.#words, WORD.available, 1)
    this.#wakeTakers()
    return version
  }

  /** The producer waits for room, or for someone who takes. */
  get isHeld(): boolean {
    return this.#held !== null
  }

  /** Someone waits for a value. */
  get isAwaited(): boolean {
    return this.#takers.length > 0
  }

  get waiting(): number {
    return this.#count - this.#consumed
  }

  startOf(): GeneratorStart {
    const { items, bytes } = this.room
    // Values that came ahead of others are not released; the next attempt makes them again.
    this.#ahead.clear()
    const made = this.#bytes % 2 ** 32
    return {
      type: 'generator',
      memory: this.memory,
      items,
      bytes,
      count: this.#count,
      check: this.#check,
      made,
    }
  }

  // --- the producer's end ---

  arrive(index: number, arrival: Arrival): void {
    this.#ahead.set(index, arrival)
    this.#flush()
  }

  #flush(): void {
    for (let next = this.#ahead.get(this.#count); next; next = this.#ahead.get(this.#count)) {
      this.#ahead.delete(this.#count)
      this.#release(next)
    }
  }

  #release({ kept, bytes, check, at }: Arrival): Version {
    const datum = new Datum(null, false, false)
    const version = datum.current
    version.producer = this.producer
    const item = { datum, version, bytes }
    this.#count++
    this.#check = check
    this.#bytes += bytes
    if (kept !== undefined) {
      version.value = kept
      this.#host.release(this.producer, version, at)
    }
    // The stream itself can be read as soon as there is something in it.
    this.#host.release(this.producer, this.stream, at)
    if (this.#isClosed) this.#consume(item)
    else {
      this.#queue.push(item)
      Atomics.add(this.#words, WORD.available, 1)
      this.#wakeTakers()
    }
    return version
  }

  /** The producer failed and that is ignored: its defaults stand, by position, for what it did not release. */
  goOnWith(defaults: readonly Kept[]): void {
    for (const kept of defaults.slice(this.#count)) {
      this.#release({ kept, bytes: 0, check: this.#check, at: Infinity })
    }
  }

  /** The producer fails for good: who takes the stream is started, also when nothing came, and gets the error. */
  fails(): void {
    this.#host.release(this.producer, this.stream, Infinity)
  }

  /** A place for a value that a called task will make: it comes in its turn, and is there when that task has ended. */
  expect(index: number, at: number): Version | null {
    if (index !== this.#count) return null
    const version = this.#release({ kept: undefined, bytes: 0, check: this.#check, at })
    this.#flush()
    return version
  }

  /** Resolves when there is room again; `items` and `bytes` are what the producer has made so far. */
  hold(items: number, bytes: number): Promise<void> {
    if (this.#isClosed || this.#hasRoom(items, bytes, 1)) return Promise.resolve()
    return new Promise(resolve => {
      this.#held = () => {
        // Half empty, so that the producer does not stop and go for each value.
        if (!this.#isClosed && !this.#hasRoom(items, bytes, 2)) return
        this.#held = null
        resolve()
      }
      this.#held()
    })
  }

  #hasRoom(items: number, bytes: number, share: number): boolean {
    const waiting = (items - Atomics.load(this.#words, WORD.consumed)) | 0
    const waitingBytes = (bytes - Atomics.load(this.#words, WORD.consumedBytes)) | 0
    return waiting < Math.ceil(this.room.items / share) && waitingBytes < this.room.bytes / share
  }

  /**
   * Nothing else in the run can go on: buffers must not decide whether a program ends, so the producer gets
   * another one.
   */
  makeRoom(): void {
    const items = this.waiting - this.#debt
    this.#debt += items
    Atomics.add(this.#words, WORD.consumed, items)
    const bytes = this.#bytes - this.#consumedBytes - this.#debtBytes
    this.#debtBytes += bytes
    Atomics.add(this.#words, WORD.consumedBytes, bytes | 0)
    this.#held?.()
  }

  // --- the taker's end ---

  /** The next value, when there is one; null at the end. */
  async next(isTold: boolean): Promise<Item | null> {
    for (;;) {
      const item = this.#queue.shift()
      if (item) return item
      if (this.#isOver || this.#isClosed) {
        const failure = this.#isClosed ? null : this.#host.failureOf(this.end, isTold)
        if (failure) throw failure
        return null
      }
      await new Promise<void>(resolve => this.#takers.push(resolve))
    }
  }

  /** What is there beside, up to half a buffer: the rest is for the producer to go on with meanwhile. */
  more(first: Item, limit = Infinity): Item[] {
    const items = [first]
    let bytes = first.bytes
    const most = Math.min(limit, Math.ceil(this.room.items / 2))
    while (items.length < most && bytes < this.room.bytes / 2) {
      const next = this.#queue.peek()
      if (!next?.version.settled) break
      this.#queue.shift()
      items.push(next)
      bytes += next.bytes
    }
    return items
  }

  get hasNext(): boolean {
    return this.#queue.peek()?.version.settled ?? this.#isOver
  }

  /** The taker has gone on: the item is needed only by tasks that read it. */
  pass(item: Item): void {
    const { version } = item
    if (version.settled && version.readers === 0) this.#consume(item)
    else this.#host.settled(version, () => this.#host.unread(version, () => this.#consume(item)))
  }

  /** Consumers want no more values. The producer ends at its next `yield`, as a generator does whose loop is left. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    Atomics.store(this.#words, WORD.closed, 1)
    for (let item = this.#queue.shift(); item; item = this.#queue.shift()) this.#consume(item)
    if (!this.#isOver) this.#host.stop(this.producer)
    this.#wakeTakers()
    this.#held?.()
  }

  #consume({ bytes }: Item): void {
    this.#consumed++
    this.#consumedBytes += bytes
    if (this.#debt > 0) this.#debt--
    else Atomics.add(this.#words, WORD.consumed, 1)
    const owed = Math.min(this.#debtBytes, bytes)
    this.#debtBytes -= owed
    Atomics.add(this.#words, WORD.consumedBytes, bytes - owed)
    this.#held?.()
  }

  #wakeTakers(): void {
    const takers = this.#takers
    if (takers.length === 0) return
    this.#takers = []
    for (const go of takers) go()
  }
}
