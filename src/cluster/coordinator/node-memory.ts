import { isLiveMemory } from '../../node/threads/early-wire.ts'
import { SharedGarbage } from '../../node/threads/shared-garbage.ts'
import { TO_AGENT } from '../link/frame-types.ts'
import type { FrameWriter } from '../link/frames.ts'
import type { Holders } from './holders.ts'
import type { NodeLink } from './node-link.ts'
import type { Incoming } from '../transfer/incoming.ts'
import type { Outgoing } from '../transfer/outgoing.ts'

/** How an agent is to treat a buffer of a task: keep it for others, use it once, or share it with others at work on it. */
export const KEEP = 0
export const ONCE = 1
export const TEAM = 2

interface Team {
  number: number
  users: number
}

/** Words that the coordinator changes while threads look at them. */
interface Mirror {
  readonly number: number
  readonly memory: WeakRef<SharedArrayBuffer>
  readonly sent: Int32Array
}

/** Which buffers a node has, so that each is sent there once. Numbers given here are even, those of the agent odd. */
export class NodeMemory {
  readonly #writer: FrameWriter
  readonly #outgoing: Outgoing
  readonly #incoming: Incoming
  readonly #numbers = new WeakMap<ArrayBufferLike, number>()
  /** Memory that is written in place: its content is sent each time. */
  readonly #placed = new WeakSet<ArrayBufferLike>()
  readonly #teams = new Map<ArrayBufferLike, Team>()
  readonly #garbage = new SharedGarbage()
  readonly #unused = new FinalizationRegistry<number>(number => this.#forget(number))
  #mirrors: Mirror[] = []
  #last = 0

  readonly #link: NodeLink
  readonly #holders: Holders
  /** Buffers that the node gets from another one. */
  readonly #fetching = new Map<number, { buffer: ArrayBufferLike; from: Parameters<Holders['ended']>[0] }>()

  /** Who waits for a buffer that comes from there. */
  readonly #bringing = new Set<(isHere: boolean) => void>()

  constructor(link: NodeLink, holders: Holders) {
    this.#link = link
    this.#holders = holders
    this.#writer = link.writer
    this.#outgoing = link.outgoing
    this.#incoming = link.incoming
  }

  /** What a record has to say for a buffer that does not change. */
  keep(buffer: ArrayBufferLike): number {
    if (this.#placed.has(buffer)) return this.once(buffer, 0, buffer.byteLength)
    let number = this.#numbers.get(buffer)
    if (number === undefined) {
      number = this.#next()
      const from = this.#holders.choose(buffer, this.#link)
      this.#know(number, buffer, false)
      if (from) this.#fetch(number, buffer, from)
      else this.#send(number, buffer)
      if (buffer instanceof SharedArrayBuffer && isLiveMemory(buffer)) {
        this.#mirrors.push({ number, memory: new WeakRef(buffer), sent: new Int32Array(buffer).slice() })
      }
    }
    return number * 4 + KEEP
  }

  /** Only this goes there: which buffer it is, and who has it. */
  #fetch(number: number, buffer: ArrayBufferLike, from: Parameters<Holders['ended']>[0]): void {
    this.#fetching.set(number, { buffer, from })
    const writer = this.#writer
    writer.begin(TO_AGENT.fetch)
    writer.varint(number)
    writer.varint(from.link.node)
    writer.varint(from.number)
    writer.varint(from.link.peers.length)
    for (const address of from.link.peers) writer.text(address)
    writer.end()
  }

  /** What is on other nodes only comes here first. One that is lost is made again, under another number. */
  #send(number: number, buffer: ArrayBufferLike): void {
    const go = (): void => {
      this.#outgoing.send({ number, buffer, offset: 0, length: buffer.byteLength })
      this.#link.flushSoon()
    }
    const coming = this.#holders.bring(buffer)
    if (coming) void coming.then(go, () => undefined)
    else go()
  }

  /** A task has made it there, and there it stays. Returns the memory into which it comes when it is wanted here. */
  stays(number: number, size: number): SharedArrayBuffer {
    const buffer = new SharedArrayBuffer(size)
    this.#holders.stays(buffer)
    this.#know(number, buffer, true)
    return buffer
  }

  /** Gets it from there. Resolves to whether it is here now. */
  bring(number: number, buffer: ArrayBufferLike): Promise<boolean> {
    if (this.#link.isGone) return Promise.resolve(false)
    this.#incoming.into(number, buffer)
    const writer = this.#writer
    writer.begin(TO_AGENT.bring)
    writer.varint(number)
    writer.end()
    this.#link.flushSoon()
    return new Promise(resolve => {
      this.#bringing.add(resolve)
      this.#incoming.whenHere([number], () => {
        this.#bringing.delete(resolve)
        this.#incoming.forget(number)
        resolve(true)
      })
    })
  }

  /** What could not be got from another node is sent from here. */
  fetched(number: number, isHere: boolean): void {
    const fetching = this.#fetching.get(number)
    if (!fetching) return
    this.#fetching.delete(number)
    const { buffer, from } = fetching
    this.#holders.ended(from, this.#link, isHere)
    if (isHere) this.#holders.arrived(buffer, this.#link)
    else this.#send(number, buffer)
  }

  /** The node is gone. */
  cutOff(): void {
    for (const { from } of this.#fetching.values()) this.#holders.ended(from, this.#link, true)
    this.#fetching.clear()
    for (const tell of this.#bringing) tell(false)
    this.#bringing.clear()
  }

  /** The same for a part of a buffer as it is now. */
  once(buffer: ArrayBufferLike, offset: number, length: number): number {
    const number = this.#next()
    this.#placed.add(buffer)
    this.#outgoing.send({ number, buffer, offset, length })
    return number * 4 + ONCE
  }

  /** The same for memory that several tasks of the node write at one time; `leave` ends the use. */
  join(buffer: ArrayBufferLike, offset: number, length: number): number {
    let team = this.#teams.get(buffer)
    if (!team) {
      this.#placed.add(buffer)
      this.#teams.set(buffer, (team = { number: this.#next(), users: 0 }))
      this.#outgoing.send({ number: team.number, buffer, offset, length })
    }
    team.users++
    return team.number * 4 + TEAM
  }

  leave(buffer: ArrayBufferLike): void {
    const team = this.#teams.get(buffer)
    if (!team || --team.users > 0) return
    this.#teams.delete(buffer)
    this.#forget(team.number)
  }

  /** A buffer that was made there has arrived here. */
  arrived(number: number): void {
    const buffer = this.#incoming.get(number)
    this.#incoming.forget(number)
    if (buffer) this.#know(number, buffer, true)
  }

  /** Sends what has changed in words that threads look at. */
  sendWords(): void {
    if (this.#mirrors.length === 0) return
    this.#mirrors = this.#mirrors.filter(({ number, memory, sent }) => {
      const buffer = memory.deref()
      if (!buffer) return false
      const words = new Int32Array(buffer)
      for (let i = 0; i < words.length; i++) {
        const word = Atomics.load(words, i)
        if (word === sent[i]) continue
        sent[i] = word
        const writer = this.#writer
        writer.begin(TO_AGENT.words)
        writer.varint(number)
        writer.varint(i)
        writer.varint(word >>> 0)
        writer.end()
      }
      return true
    })
  }

  #know(number: number, buffer: ArrayBufferLike, isWhole: boolean): void {
    this.#numbers.set(buffer, number)
    this.#holders.note(buffer, { link: this.#link, number, isWhole })
    this.#unused.register(buffer, number)
    this.#garbage.add(buffer.byteLength)
  }

  #next(): number {
    this.#last += 2
    return this.#last
  }

  #forget(number: number): void {
    const writer = this.#writer
    writer.begin(TO_AGENT.forget)
    writer.varint(number)
    writer.end()
  }
}
