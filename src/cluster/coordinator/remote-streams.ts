import { MillraceError } from '../../core/errors.ts'
import type { BoardName, SiteFile, SitePlace, StreamSite } from '../../node/files/stream-site.ts'
import { TO_AGENT } from '../link/frame-types.ts'
import { pack } from '../link/structured.ts'
import type { StreamAnswer, StreamOrder } from '../link/stream-orders.ts'
import { LiveRelay } from '../streams/live-relay.ts'
import type { NodeLink } from './node-link.ts'
import { NodeLost } from './remote-processes.ts'

/** Leaves room for what the name of a board has before and behind it. */
const LONGEST = 100

/** Growing files of a node on another machine, through its agent. */
export class RemoteStreams implements StreamSite {
  readonly lost: Promise<never>
  readonly #link: NodeLink
  readonly #asked = new Map<number, { resolve(answer: StreamAnswer): void; reject(error: Error): void }>()
  readonly #steps = new Set<string>()
  #lose: (error: Error) => void = () => undefined
  #opening: Promise<SitePlace> | null = null
  #relay: LiveRelay | null = null
  #last = 0
  #isLost = false

  constructor(link: NodeLink) {
    this.#link = link
    this.lost = new Promise((_, reject) => (this.#lose = reject))
    this.lost.catch(() => undefined)
    link.incoming.growing = bytes => this.#relay?.take(bytes)
  }

  open(here: BoardName): Promise<SitePlace> {
    return (this.#opening ??= this.#open(here))
  }

  async know(steps: readonly string[], files: readonly SiteFile[]): Promise<void> {
    const news = steps.filter(step => !this.#steps.has(step))
    for (const step of news) this.#steps.add(step)
    await this.#ask({ op: 'know', id: ++this.#last, steps: news, files })
  }

  send(name: string): void {
    this.#relay?.ask(name)
  }

  drop(name: string): void {
    this.#say({ op: 'drop', name })
  }

  answered(answer: StreamAnswer): void {
    const asked = this.#asked.get(answer.id)
    this.#asked.delete(answer.id)
    const { error } = answer
    if (!error) return asked?.resolve(answer)
    const { code, message, hint } = error
    const text = `node ${this.#link.name}: ${message}`
    asked?.reject(new MillraceError(code as 'MR_TRANSFER', text, hint ? { hint } : {}))
  }

  /** The relay there has taken this many bytes. */
  taken(bytes: number): void {
    this.#relay?.taken(bytes)
  }

  /** What it was sending is not complete, and never will be. */
  cutOff(): void {
    this.#isLost = true
    this.#relay?.end()
    const error = new NodeLost()
    this.#lose(error)
    for (const { reject } of this.#asked.values()) reject(error)
    this.#asked.clear()
  }

  async #open({ tools, workflow }: BoardName): Promise<SitePlace> {
    const { node } = this.#link
    // Agents with folders of their own may be on this machine.
    const theirs = `${node}.${workflow}`.slice(0, LONGEST)
    const { place } = await this.#ask({ op: 'open', id: ++this.#last, workflow: theirs })
    this.#relay = new LiveRelay(tools, workflow, 'asked', {
      send: bytes => this.#link.outgoing.sendGrowing(bytes),
      took: bytes => this.#tell(TO_AGENT.streamsTaken, bytes),
      broken: why => this.#link.lost(why),
    })
    return place as SitePlace
  }

  #ask(order: StreamOrder & { id: number }): Promise<StreamAnswer> {
    if (this.#isLost) return Promise.reject(new NodeLost())
    return new Promise((resolve, reject) => {
      this.#asked.set(order.id, { resolve, reject })
      this.#say(order)
    })
  }

  #say(order: StreamOrder): void {
    const { writer } = this.#link
    writer.begin(TO_AGENT.streams)
    writer.block(pack(order).bytes)
    writer.end()
    this.#link.flushSoon()
  }

  #tell(type: number, bytes: number): void {
    const { writer } = this.#link
    writer.begin(type)
    writer.varint(bytes)
    writer.end()
    this.#link.flushSoon()
  }
}
