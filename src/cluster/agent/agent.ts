import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Duplex } from 'node:stream'
import { modulePath } from '../../model/definition.ts'
import type { LocalSiteParts, RankFacts } from '../../node/mpi/local-site.ts'
import { UseMeter } from '../../node/machine-use.ts'
import { Watchdog } from '../../node/processes/watchdog.ts'
import { BLOB, FROM_AGENT, TO_AGENT } from '../link/frame-types.ts'
import { FrameReader, FrameSplitter, FrameWriter } from '../link/frames.ts'
import { millraceCommand } from '../launch/agent-command.ts'
import { bootId, monotonic } from '../link/machine-clock.ts'
import type { FileOrder } from '../files/file-orders.ts'
import type { AgentProbe, AgentStart } from '../link/start.ts'
import { pack, unpack } from '../link/structured.ts'
import type { StreamOrder } from '../link/stream-orders.ts'
import type { Incoming } from '../transfer/incoming.ts'
import { Outgoing } from '../transfer/outgoing.ts'
import type { Peers } from '../transfer/peers.ts'
import { AgentFiles } from './agent-files.ts'
import { AgentMemory } from './agent-memory.ts'
import { AgentProcesses } from './agent-processes.ts'
import { AgentRanks } from './agent-ranks.ts'
import { AgentStreams } from './agent-streams.ts'
import { AgentThread } from './agent-thread.ts'
import { ParcelCache } from './parcel-cache.ts'
import { lookAround } from './probe.ts'

/** Looks after results that no thread announces; milliseconds. */
const TICK = 10

export interface AgentOptions {
  readonly control: Duplex
  readonly data: Duplex
  readonly incoming: Incoming
  /** Other agents, from which it gets large buffers. */
  readonly peers: Peers
  /** Whether its lease is over: the coordinator may have given it up, and nothing more may begin. */
  isExpired(): boolean
  /** Called once, when nothing of the run is left on this machine. */
  ended(reason: string): void
}

/** Runs tasks of a coordinator on this machine: threads, programs, and memory. It decides nothing. */
export class Agent {
  readonly writer = new FrameWriter()
  readonly #outgoing = new Outgoing(this.writer)
  readonly memory: AgentMemory
  readonly #files: AgentFiles
  readonly #options: AgentOptions
  readonly #threads = new Map<number, AgentThread>()
  #processes: AgentProcesses | null = null
  readonly #ranks = new AgentRanks(this)
  readonly #streams: AgentStreams
  readonly #meter = new UseMeter(use => this.#tellPacked(FROM_AGENT.measured, use))
  #watchdog: Watchdog | null = null
  #start: AgentStart | null = null
  #clockShift = 0
  #willFlush = false
  #isOver = false
  #spilled: string | null = null
  /** What has to wait until the program is there. */
  #held: { type: number; bytes: Buffer }[] | null = null
  #moduleRoot: string | null = null
  #ticking: NodeJS.Timeout | null = null

  constructor(options: AgentOptions) {
    this.#options = options
    const { control, data, incoming } = options
    this.memory = new AgentMemory(incoming, this.#outgoing)
    this.#files = new AgentFiles(incoming, this.#outgoing, options.peers, answer =>
      this.#tellPacked(FROM_AGENT.filed, answer),
    )
    this.#streams = new AgentStreams({
      announce: folder => this.#watchdog?.folder(folder),
      answer: answer => this.#tellPacked(FROM_AGENT.streams, answer),
      send: bytes => this.#outgoing.sendGrowing(bytes),
      took: bytes => this.#tellNumber(FROM_AGENT.streamsTaken, bytes),
      broken: why => this.end(why),
    })
    incoming.growing = bytes => this.#streams.take(bytes)
    const splitter = new FrameSplitter()
    control.on('data', (chunk: Buffer) => {
      // After a stop, what was sent long ago comes before the lease is looked at.
      if (options.isExpired()) return this.end('it had no answer from the coordinator')
      splitter.push(chunk, (type, content) => this.#receive(type, content))
      for (const thread of this.#threads.values()) thread.announce()
      this.#processes?.flush()
    })
    data.on('data', (chunk: Buffer) => this.memory.incoming.push(chunk))
    for (const stream of [control, data]) {
      stream.on('error', () => undefined)
      stream.on('close', () => this.end('the coordinator is gone'))
    }
    this.#outgoing.connect(data)
    this.memory.incoming.trees.connect(data)
  }

  get mark(): string {
    return this.#start?.mark ?? ''
  }

  get isApart(): boolean {
    return this.#start?.root != null
  }

  get clockShift(): number {
    return this.#clockShift
  }

  /** Something was written: it leaves when all that happens now has been written. */
  changed(): void {
    if (this.#willFlush) return
    this.#willFlush = true
    setImmediate(() => {
      this.#willFlush = false
      this.#flush()
    })
  }

  ended(lane: number): void {
    this.#threads.delete(lane)
  }

  note(text: string): void {
    this.#tell(FROM_AGENT.note, text)
  }

  /** Ends all that runs here, at once, and then itself. */
  end(reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#ticking) clearInterval(this.#ticking)
    this.#meter.want(false)
    this.#processes?.end(false)
    this.#ranks.end()
    this.#streams.endNow()
    for (const thread of this.#threads.values()) thread.kill(reason)
    // What tasks have started, and what left its process group, is the watchdog's as soon as this process has ended.
    this.#watchdog?.release()
    this.#options.peers.end()
    this.#options.control.destroy()
    this.#options.data.destroy()
    this.#options.ended(reason)
  }

  #flush(): void {
    if (!this.writer.isEmpty && !this.#isOver) this.#options.control.write(this.writer.take())
  }

  #tell(type: number, text: string): void {
    this.writer.begin(type)
    this.writer.text(text)
    this.writer.end()
    this.changed()
  }

  #tellPacked(type: number, facts: unknown): void {
    this.writer.begin(type)
    this.writer.block(pack(facts).bytes)
    this.writer.end()
    this.changed()
  }

  #tellNumber(type: number, value: number): void {
    this.writer.begin(type)
    this.writer.varint(value)
    this.writer.end()
    this.changed()
  }

  /** What would be printed here is printed by the coordinator. */
  printed(isOutput: boolean, bytes: Uint8Array): void {
    this.writer.begin(FROM_AGENT.printed)
    this.writer.byte(isOutput ? 1 : 0)
    this.writer.block(bytes)
    this.writer.end()
    this.changed()
  }

  #receive(type: number, content: FrameReader): void {
    if (this.#isOver) return
    if (this.#held && !AT_ONCE.includes(type)) {
      this.#held.push({ type, bytes: Buffer.from(content.rest()) })
      return
    }
    switch (type) {
      case TO_AGENT.start:
        return this.#begin(unpack(content.block()) as AgentStart)
      case TO_AGENT.open:
        return this.#open(content.varint(), content.byte() === 1)
      case TO_AGENT.words:
        return this.memory.words(content)
      case TO_AGENT.forget:
        return this.memory.incoming.forget(content.varint())
      case BLOB:
        return this.memory.incoming.frame(content)
      case TO_AGENT.run:
        return this.#programs().run(content)
      case TO_AGENT.stopProgram:
        this.#watchdog?.suspect()
        return this.#programs().stop(content.varint())
      case TO_AGENT.callBack:
        return this.#programs().callBack(content.varint())
      case TO_AGENT.probe:
        return this.#tellPacked(FROM_AGENT.probed, lookAround(unpack(content.block()) as AgentProbe))
      case TO_AGENT.file:
        return this.#files.order(content.varint(), unpack(content.block()) as FileOrder)
      case TO_AGENT.streams:
        return this.#streams.order(unpack(content.block()) as StreamOrder)
      case TO_AGENT.streamsTaken:
        return this.#streams.taken(content.varint())
      case TO_AGENT.fetch:
        return this.#fetch(content)
      case TO_AGENT.ranks:
        return this.#ranks.order(content)
      case TO_AGENT.toRank:
        return this.#ranks.write(content)
      case TO_AGENT.bring:
        return this.memory.bring(content.varint())
      case TO_AGENT.measure:
        return this.#meter.want(content.byte() === 1)
      case TO_AGENT.end:
        return void this.#leave()
      default:
        return this.#toThread(type, content)
    }
  }

  #fetch(content: FrameReader): void {
    const [number, node, theirs] = [content.varint(), content.varint(), content.varint()]
    const addresses: string[] = []
    for (let left = content.varint(); left > 0; left--) addresses.push(content.text())
    void this.#options.peers.fetch(node, addresses, theirs, number).then(isHere => {
      this.writer.begin(FROM_AGENT.fetched)
      this.writer.varint(number)
      this.writer.byte(isHere ? 1 : 0)
      this.writer.end()
      this.changed()
    })
  }

  #toThread(type: number, content: FrameReader): void {
    const thread = this.#threads.get(content.varint())
    if (!thread) return
    switch (type) {
      case TO_AGENT.task:
        this.#ticking ??= setInterval(() => this.#tick(), TICK)
        return thread.task(content)
      case TO_AGENT.message:
        return thread.message(content)
      case TO_AGENT.revoke:
        return thread.revoke(content.varint())
      case TO_AGENT.hurry:
        return thread.hurry()
      case TO_AGENT.kill:
        return thread.kill(content.text())
    }
  }

  #begin(start: AgentStart): void {
    this.#start = start
    this.#watchdog = new Watchdog(start.mark)
    this.#watchdog.start()
    try {
      if (start.root !== null) this.#makeRoot(start.root, start)
      process.chdir(join(start.root ?? '/', start.cwd))
    } catch (error) {
      const what = start.root === null ? `there is no folder ${start.cwd}` : (error as Error).message
      return this.#tell(FROM_AGENT.cannotStart, what)
    }
    if (start.isSent) return this.#awaitProgram(start)
    const paths = [...start.modules, ...(start.entry ? [start.entry] : [])].map(modulePath)
    const missing = paths.find(path => !existsSync(path))
    if (missing) return this.#tell(FROM_AGENT.cannotStart, `there is no file ${missing}`)
    this.#goOn(start)
  }

  #awaitProgram(start: AgentStart): void {
    this.#held = []
    this.#files.cache = new ParcelCache(dirname(dirname(millraceCommand())), start.root ?? '/', folder =>
      this.#watchdog?.folder(folder),
    )
    this.#files.program = {
      isAt: folder => {
        this.#moduleRoot = folder
        const held = this.#held ?? []
        this.#held = null
        this.#goOn(start)
        for (const { type, bytes } of held) this.#receive(type, readerOf(bytes))
        for (const thread of this.#threads.values()) thread.announce()
        this.#processes?.flush()
      },
      cannotBe: why => this.#tell(FROM_AGENT.cannotStart, `the program could not be sent: ${why}`),
    }
  }

  #goOn(start: AgentStart): void {
    this.#spill(start)
    if (start.boot !== bootId()) this.#clockShift = start.now - monotonic()
    process.argv = [...start.argv]
    process.execArgv = [...start.execArgv]
    if (start.environment) Object.assign(process.env, start.environment)
    const warm = start.commands ? this.#programs().start() : null
    void Promise.resolve(warm).then(() => {
      this.writer.begin(FROM_AGENT.started)
      this.writer.end()
      this.changed()
    })
  }

  /** What does not fit into memory goes to the folder of the agent, or to one for this run alone. */
  #spill({ root, memory, mark }: AgentStart): void {
    const own = join(tmpdir(), `millrace-${mark}.spilled`)
    const folder = root === null ? own : join(root, '.spilled')
    this.memory.incoming.spillTo({
      folder,
      limit: memory,
      began: () => {
        if (root === null) this.#watchdog?.folder(folder)
        this.#spilled = folder
        const size = `${Math.round(memory / 1e6)} MB`
        this.note(`what tasks made takes more than ${size} of memory: the rest is in ${folder}`)
      },
      failed: error => this.end(`a value in ${folder} could not be read: ${error.message}`),
    })
  }

  /** A folder for this run and this user alone, which goes with the agent. */
  #makeRoot(root: string, { cwd, logs }: AgentStart): void {
    mkdirSync(dirname(root), { recursive: true })
    this.#watchdog?.folder(root)
    mkdirSync(root, { mode: 0o700 })
    mkdirSync(join(root, cwd), { recursive: true })
    if (logs !== null) mkdirSync(join(root, logs), { recursive: true })
  }

  #programs(): AgentProcesses {
    return (this.#processes ??= new AgentProcesses(this))
  }

  /** What threads and ranks here have to know of the program. */
  #facts() {
    const { typescript, modules, entry, logs, root, startedAt } = this.#start as AgentStart
    return {
      moduleRoot: this.#moduleRoot,
      typescript,
      modules: [...modules],
      entry,
      logs: logs === null ? null : join(root ?? '/', logs),
      startedAt: startedAt - this.#clockShift,
    }
  }

  siteParts(): LocalSiteParts {
    const facts = (): RankFacts => ({ ...this.#facts(), cwd: process.cwd() })
    return { node: hostname(), run: this.mark, watchdog: this.#watchdog as Watchdog, facts }
  }

  #open(lane: number, io: boolean): void {
    const thread = new AgentThread({ ...this.#facts(), lane, io, run: this.mark }, this)
    this.#threads.set(lane, thread)
  }

  #tick(): void {
    let isBusy = false
    for (const thread of this.#threads.values()) {
      thread.drain()
      thread.tellBegun()
      isBusy ||= thread.isBusy
    }
    if (isBusy || !this.#ticking) return
    clearInterval(this.#ticking)
    this.#ticking = null
  }

  /** The run is over: what tasks have printed goes out first. */
  async #leave(): Promise<void> {
    this.#processes?.end(true)
    await Promise.all([...this.#threads.values()].map(thread => thread.end()))
    await this.#files.end()
    this.#streams.end()
    const root = this.#start?.root ?? null
    for (const folder of [root, this.#spilled])
      if (folder !== null) rmSync(folder, { recursive: true, force: true })
    this.#watchdog?.end()
    this.#watchdog = null
    this.end('the run ended')
  }
}

/** What does not need the program, and what brings it. */
const AT_ONCE: readonly number[] = [TO_AGENT.file, TO_AGENT.fetch, TO_AGENT.end, TO_AGENT.probe, BLOB]

function readerOf(bytes: Buffer): FrameReader {
  const reader = new FrameReader()
  return Object.assign(reader, { bytes, at: 0, end: bytes.length })
}
