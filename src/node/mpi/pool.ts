import { MillraceError } from '../../core/errors.ts'
import { FrameReader, frame } from './frames.ts'
import type { EndHeader, FromRank, ReleasedHeader, ToRank, WireBlob } from './frames.ts'
import { hostFile, launchWords, launchWordsOver, siteOf } from './launcher.ts'
import { readPlace } from './places.ts'
import type { Place } from './places.ts'
import type { RankSite, SiteEvents, SiteFacts } from './site.ts'

/** A site, and how many ranks are to be there. */
export interface SiteShare {
  readonly site: RankSite
  readonly count: number
}

/** Buffers that a rank has put into files, by the place of the blob. */
export type Fetched = ReadonlyMap<WireBlob, SharedArrayBuffer>

export interface PoolEvents {
  ended(header: EndHeader, bytes: Buffer, fetched: Fetched): void
  released(header: ReleasedHeader, bytes: Buffer, fetched: Fetched): void
  /** The ranks are gone; `rank` is the one that died first, if it is known. `isMachine`: with their machine. */
  gone(reason: string, rank: number | null, isMachine: boolean): void
}

/** A connection to a process on a site: of a rank, or of a launcher that wants a process there. */
interface Channel {
  readonly site: number
  readonly number: number
  readonly reader: FrameReader<FromRank>
  rank: number | null
}

/** What mpirun said is kept up to this length, for the message. */
const KEPT_OUTPUT = 4000
/** Milliseconds until all ranks have to be there. */
const JOIN_TIMEOUT = 60_000
/** mpirun; the programs with which it reaches other sites have the numbers behind it. */
const LAUNCHER = 0

/** The processes of ranks, started by one mpirun: on one machine or on several. */
export class RankPool {
  readonly size: number
  readonly ready: Promise<void>
  readonly #sites: readonly RankSite[]
  readonly #counts: readonly number[]
  readonly #events: PoolEvents
  readonly #channels = new Map<string, Channel>()
  /** By rank. */
  readonly #ranks: (Channel | null)[]
  readonly #pids: (readonly [site: number, pid: number])[] = []
  /** By site: where its ranks were when it was last asked. */
  readonly #places: (Buffer | null)[]
  /** For a launcher: who asked for a program. */
  readonly #starters = new Map<number, Channel>()
  #programs = 0
  #output = ''
  #reason: string | null = null
  #died: number | null = null
  #isGone = false
  /** The launcher or one of its daemons crashed before all ranks were there. */
  hasCrashed = false
  #settle: ((error: MillraceError | null) => void) | null = null
  #whenGone: (() => void)[] = []
  /** What has to be fetched from another machine is taken in its turn. */
  #fetching: Promise<void> | null = null
  #made = 0

  constructor(shares: readonly SiteShare[], nodes: readonly string[], events: PoolEvents) {
    this.#sites = shares.map(({ site }) => site)
    this.#counts = shares.map(({ count }) => count)
    this.size = this.#counts.reduce((sum, count) => sum + count, 0)
    this.#events = events
    this.#ranks = Array.from({ length: this.size }, () => null)
    this.#places = this.#sites.map(() => null)
    this.ready = new Promise((resolve, reject) => {
      this.#settle = error => (error ? reject(error) : resolve())
    })
    this.ready.catch(() => undefined)
    void this.#begin(nodes).catch((error: unknown) => {
      this.#settled(
        error instanceof MillraceError ? error : new MillraceError('MR_MPI', (error as Error).message),
      )
      this.#ended('the ranks could not be started')
    })
    setTimeout(() => {
      if (this.#settle) this.kill(`the ranks were not there after ${JOIN_TIMEOUT / 1000} s`)
    }, JOIN_TIMEOUT).unref()
  }

  async #begin(nodes: readonly string[]): Promise<void> {
    const opening = this.#sites.map((site, i) => site.open({ size: this.size, nodes }, this.#eventsOf(i)))
    const facts = await Promise.all(opening)
    if (this.#reason !== null) return this.#ended(this.#reason)
    const [head] = this.#sites as [RankSite]
    const [first] = facts as [SiteFacts]
    if (facts.length === 1) {
      return head.run(LAUNCHER, [...launchWords(first, this.size, true), ...first.rank], true)
    }
    const other = facts.findIndex(({ kind }) => kind !== first.kind)
    if (other >= 0) {
      const [one, two] = [head.node, this.#sites[other]?.node]
      throw new MillraceError(
        'MR_MPI',
        `node ${one} has ${first.kind} and node ${two} has ${facts[other]?.kind}: ranks of both cannot talk`,
      )
    }
    head.share('hosts', Buffer.from(hostFile(first.kind, this.#counts)), true)
    const isOneMachine = new Set(facts.map(({ machine }) => machine)).size < facts.length
    const hosts = `${first.folder}/hosts`
    head.run(LAUNCHER, launchWordsOver(first, this.size, hosts, isOneMachine), false)
  }

  get isGone(): boolean {
    return this.#isGone || this.#reason !== null
  }

  /** Ranks are on other machines, which have copies of what they map. */
  get isFar(): boolean {
    return this.#sites.length > 1
  }

  /** By rank, the number of its machine. */
  siteOf(rank: number): number {
    return this.#ranks[rank]?.site ?? 0
  }

  /** Ranks in the order of the sites, also where the launcher has mixed them. */
  get inOrder(): number[] {
    return Array.from(this.#ranks.keys()).sort((a, b) => this.siteOf(a) - this.siteOf(b) || a - b)
  }

  send(rank: number, header: ToRank, parts: readonly Uint8Array[] = []): void {
    this.#say(this.#ranks[rank], header, parts)
  }

  #say(channel: Channel | null | undefined, header: ToRank, parts: readonly Uint8Array[] = []): void {
    if (channel) this.#sites[channel.site]?.write(channel.number, frame(header, parts))
  }

  /** Memory with these bytes that all ranks map, by a name. It is there before what is sent next. */
  share(bytes: Uint8Array, changes: boolean): string {
    const name = `t${++this.#made}`
    for (const site of this.#sites) site.share(name, bytes, changes)
    return name
  }

  make(size: number): string {
    const name = `t${++this.#made}`
    for (const site of this.#sites) site.make(name, size)
    return name
  }

  /** Fills `into` from memory of this rank; at once where it is on this machine. */
  read(rank: number, name: string, from: number, into: Uint8Array): Promise<void> | null {
    return (this.#sites[this.siteOf(rank)] as RankSite).read(name, from, into)
  }

  remove(names: readonly string[]): void {
    if (names.length > 0) for (const site of this.#sites) site.remove(names)
  }

  /** Where these ranks are now; null until all of their machines have said so anew. */
  placesOf(ranks: readonly number[]): Place[] | null {
    this.#sites.forEach((site, i) => (this.#places[i] = site.places() ?? this.#places[i] ?? null))
    if (this.#places.includes(null)) return null
    const places = ranks.map(rank => readPlace(this.#places[this.siteOf(rank)] as Buffer, rank))
    this.#places.fill(null)
    return places
  }

  kill(reason: string): void {
    if (this.isGone) return
    this.#reason = reason
    this.#killAll()
  }

  #killAll(): void {
    this.#sites.forEach((site, i) => site.kill(this.#pids.flatMap(([at, pid]) => (at === i ? [pid] : []))))
  }

  /** No task runs any more. */
  async end(): Promise<void> {
    if (this.#isGone) return
    // With it comes the last of what tasks printed.
    const over = new Promise<void>(resolve => this.#whenGone.push(resolve))
    this.#reason ??= 'the run ended'
    for (const channel of this.#ranks) this.#say(channel, { type: 'end' })
    const timer = setTimeout(() => this.#killAll(), 2000)
    for (const site of this.#sites) site.hold()
    await over
    clearTimeout(timer)
  }

  endNow(): void {
    this.#reason ??= 'the run ended'
    if (!this.#isGone) this.#killAll()
    this.#clean()
  }

  #eventsOf(site: number): SiteEvents {
    return {
      data: (number, chunk) => this.#channelOf(site, number).reader.take(chunk),
      closed: number => this.#closed(site, number),
      printed: (isOutput, chunk) => this.#printed(isOutput, chunk),
      exited: (program, code, reason) => this.#exited(program, code, reason),
      lost: (reason, error) => {
        this.#reason ??= reason
        this.#settled(error)
        this.#ended(reason, true)
      },
    }
  }

  #channelOf(site: number, number: number): Channel {
    const key = `${site} ${number}`
    let channel = this.#channels.get(key)
    if (!channel) {
      const reader = new FrameReader<FromRank>((header, bytes) => this.#heard(own, header, bytes))
      const own: Channel = { site, number, reader, rank: null }
      this.#channels.set(key, (channel = own))
    }
    return channel
  }

  #heard(channel: Channel, header: FromRank, bytes: Buffer): void {
    switch (header.type) {
      case 'ended':
        return this.#fetch(channel, header, fetched => this.#events.ended(header, bytes, fetched))
      case 'released':
        return this.#fetch(channel, header, fetched => this.#events.released(header, bytes, fetched))
      case 'refused':
        return this.#fail(header.reason)
      case 'start':
        return this.#startThere(channel, siteOf(header.host), header.line)
      case 'hello':
        return this.#came(channel, header)
    }
  }

  #came(channel: Channel, { rank, size, pid, mpi }: FromRank & { type: 'hello' }): void {
    channel.rank = rank
    this.#pids.push([channel.site, pid])
    if (size !== this.size) {
      return this.#fail(
        `mpirun and mpicc are not of the same MPI: each process is alone (${mpi.split('\n')[0]})`,
      )
    }
    this.#ranks[rank] = channel
    if (this.#ranks.every(Boolean)) this.#settled(null)
  }

  #startThere(channel: Channel, index: number, line: string): void {
    const site = this.#sites[index]
    if (!site || this.isGone) return this.#say(channel, { type: 'over', code: 1 })
    const program = ++this.#programs
    this.#starters.set(program, channel)
    site.run(program, ['/bin/sh', '-c', `cd /; ${line}`], true)
  }

  /** Gets what the rank has put into files, and then says so: all in the order in which it came. */
  #fetch({ site }: Channel, { blobs }: EndHeader | ReleasedHeader, then: (fetched: Fetched) => void): void {
    const fetched = new Map<WireBlob, SharedArrayBuffer>()
    const names: string[] = []
    const waits: Promise<void>[] = []
    const from = this.#sites[site] as RankSite
    for (const blob of blobs) {
      if (!('path' in blob)) continue
      const memory = new SharedArrayBuffer(blob.size)
      fetched.set(blob, memory)
      names.push(blob.path)
      const wait = from.read(blob.path, 0, new Uint8Array(memory))
      if (wait) waits.push(wait)
    }
    if (names.length > 0) from.remove(names)
    if (waits.length === 0 && !this.#fetching) return then(fetched)
    const all = Promise.all([this.#fetching, ...waits]).then(
      () => then(fetched),
      () => undefined,
    )
    this.#fetching = all
    void all.then(() => {
      if (this.#fetching === all) this.#fetching = null
    })
  }

  #closed(site: number, number: number): void {
    const key = `${site} ${number}`
    const own = this.#channels.get(key)?.rank ?? null
    this.#channels.delete(key)
    if (own === null) return
    this.#died ??= own
    // The others wait for it in vain.
    if (this.#reason === null) setTimeout(() => this.#killAll(), 50).unref()
  }

  #printed(isOutput: boolean, chunk: Uint8Array): void {
    if (isOutput) return void process.stdout.write(chunk)
    this.#output = (this.#output + Buffer.from(chunk).toString('utf8')).slice(-KEPT_OUTPUT)
    // What tasks print comes this way too.
    if (this.#settle === null && this.#reason === null) process.stderr.write(chunk)
  }

  #exited(program: number, code: number | null, reason: string): void {
    if (program === LAUNCHER) {
      this.hasCrashed = this.#settle !== null && this.#reason === null && isCrash(code, this.#output)
      return this.#ended(`mpirun ${reason}`)
    }
    this.#say(this.#starters.get(program), { type: 'over', code: code ?? 1 })
    this.#starters.delete(program)
  }

  #settled(error: MillraceError | null): void {
    const settle = this.#settle
    this.#settle = null
    settle?.(error)
  }

  #fail(reason: string): void {
    this.#settled(new MillraceError('MR_MPI', reason))
    this.kill(reason)
  }

  #ended(reason: string, isMachine = false): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#killAll()
    const said = this.#output.trim().split('\n').slice(-3).join(' ')
    this.#settled(
      new MillraceError('MR_MPI', `the ranks could not be started: ${reason}${said ? `: ${said}` : ''}`),
    )
    this.#clean()
    this.#events.gone(this.#reason ?? reason, this.#reason === null ? this.#died : null, isMachine)
    for (const go of this.#whenGone.splice(0)) go()
  }

  #clean(): void {
    for (const site of this.#sites) site.close()
  }
}

/** By a signal, to which launchers add 128 for a program of theirs; or a daemon of MPICH gave itself up. */
const isCrash = (code: number | null, said: string): boolean =>
  code === null || code > 128 || /\bHYD\w+ \(.*: assert \(/.test(said)
