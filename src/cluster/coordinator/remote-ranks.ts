import { MillraceError } from '../../core/errors.ts'
import type { RankSite, SiteEvents, SiteFacts, SiteOptions } from '../../node/mpi/site.ts'
import { TO_AGENT } from '../link/frame-types.ts'
import type { FrameReader } from '../link/frames.ts'
import type { RankError, RankNews, RankOrder } from '../link/rank-orders.ts'
import { pack, unpack } from '../link/structured.ts'
import { NodeLost } from './remote-processes.ts'
import type { NodeLink } from './node-link.ts'

/** Ranks on the machine of an agent. */
class RemoteSite implements RankSite {
  readonly node: string
  readonly #link: NodeLink
  readonly #number: number
  readonly #left: () => void
  #events: SiteEvents | null = null
  #opening: { resolve: (facts: SiteFacts) => void; reject: (error: Error) => void } | null = null
  #places: Buffer | null = null
  #isAsked = false
  #last = 0
  readonly #reading = new Map<number, { into: Uint8Array; resolve: () => void }>()

  constructor(link: NodeLink, number: number, left: () => void) {
    this.node = link.name
    this.#link = link
    this.#number = number
    this.#left = left
  }

  open(options: SiteOptions, events: SiteEvents): Promise<SiteFacts> {
    this.#events = events
    return new Promise((resolve, reject) => {
      if (this.#link.isGone) return reject(new NodeLost())
      this.#opening = { resolve, reject }
      this.#order({ op: 'open', ...options })
    })
  }

  run(program: number, words: readonly string[], isRank: boolean): void {
    this.#order({ op: 'run', program, words, isRank })
  }

  write(channel: number, bytes: Uint8Array): void {
    const { writer } = this.#link
    writer.begin(TO_AGENT.toRank)
    writer.varint(this.#number)
    writer.varint(channel)
    writer.block(bytes)
    writer.end()
    this.#link.flushSoon()
  }

  share(name: string, bytes: Uint8Array, changes: boolean): void {
    const { memory } = this.#link
    const isWhole = bytes.byteLength === bytes.buffer.byteLength
    const { buffer } = isWhole ? bytes : new Uint8Array(bytes)
    const reference = changes ? memory.once(buffer, 0, buffer.byteLength) : memory.keep(buffer)
    this.#order({ op: 'share', name, reference })
  }

  make(name: string, size: number): void {
    this.#order({ op: 'make', name, size })
  }

  read(name: string, from: number, into: Uint8Array): Promise<void> {
    const id = ++this.#last
    this.#order({ op: 'read', id, name, from, size: into.length })
    // On a machine that is lost it never ends, and is not waited for.
    return new Promise(resolve => this.#reading.set(id, { into, resolve }))
  }

  remove(names: readonly string[]): void {
    this.#order({ op: 'remove', names })
  }

  places(): Buffer | null {
    const places = this.#places
    this.#places = null
    if (!this.#isAsked) {
      this.#isAsked = true
      this.#order({ op: 'places' })
    }
    return places
  }

  kill(processes: readonly number[]): void {
    this.#order({ op: 'kill', processes })
  }

  hold(): void {}

  close(): void {
    this.#order({ op: 'close' })
    this.#left()
  }

  data(channel: number, bytes: Uint8Array): void {
    this.#events?.data(channel, Buffer.from(bytes))
  }

  heard(news: RankNews): void {
    const opening = this.#opening
    switch (news.op) {
      case 'opened':
        this.#opening = null
        return opening?.resolve(news.facts)
      case 'refused':
        this.#opening = null
        return opening?.reject(this.#refusal(news.error))
      case 'closed':
        return this.#events?.closed(news.channel)
      case 'printed':
        return this.#events?.printed(news.isOutput, news.bytes)
      case 'exited':
        return this.#events?.exited(news.program, news.code, news.reason)
      case 'places':
        this.#isAsked = false
        this.#places = Buffer.from(news.bytes)
        return
      case 'read':
        return this.#read(news.id, news.number)
    }
  }

  cutOff(reason: string): void {
    this.#opening?.reject(new NodeLost())
    this.#opening = null
    this.#events?.lost(reason, new NodeLost())
  }

  #read(id: number, number: number): void {
    const { incoming } = this.#link
    incoming.whenHere([number], ([buffer]) => {
      const reading = this.#reading.get(id)
      this.#reading.delete(id)
      reading?.into.set(new Uint8Array(buffer as ArrayBufferLike))
      incoming.forget(number)
      reading?.resolve()
    })
  }

  #refusal({ code, message, hint }: RankError): Error {
    if (code === null) return new Error(`${message} (node ${this.node})`)
    return new MillraceError(
      code as 'MR_MPI',
      `${message} (node ${this.node})`,
      hint === undefined ? {} : { hint },
    )
  }

  #order(order: RankOrder): void {
    if (this.#link.isGone) return
    const { writer } = this.#link
    writer.begin(TO_AGENT.ranks)
    writer.varint(this.#number)
    writer.block(pack(order).bytes)
    writer.end()
    this.#link.flushSoon()
  }
}

/** The sites of one agent: a number for each pool of ranks. */
export class RemoteRanks {
  readonly #link: NodeLink
  readonly #sites = new Map<number, RemoteSite>()
  #last = 0

  constructor(link: NodeLink) {
    this.#link = link
  }

  open(): RankSite {
    const number = ++this.#last
    const site = new RemoteSite(this.#link, number, () => this.#sites.delete(number))
    this.#sites.set(number, site)
    return site
  }

  heard(content: FrameReader): void {
    this.#sites.get(content.varint())?.heard(unpack(content.block()) as RankNews)
  }

  data(content: FrameReader): void {
    const site = this.#sites.get(content.varint())
    site?.data(content.varint(), content.block())
  }

  /** The node is gone with all ranks there. */
  cutOff(reason: string): void {
    for (const site of Array.from(this.#sites.values())) site.cutOff(reason)
  }
}
