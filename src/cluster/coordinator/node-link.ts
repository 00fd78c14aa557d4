import type { Duplex } from 'node:stream'
import { Decoder } from '../../model/encoding/decode.ts'
import type { DecodeHooks } from '../../model/encoding/decode.ts'
import type { MachineUse } from '../../node/machine-use.ts'
import type { LaneThreadEvents } from '../../node/threads/lane-thread.ts'
import { BLOB, FROM_AGENT, TO_AGENT } from '../link/frame-types.ts'
import { FrameSplitter, FrameWriter } from '../link/frames.ts'
import type { FrameReader } from '../link/frames.ts'
import { pack, unpack } from '../link/structured.ts'
import { Incoming } from '../transfer/incoming.ts'
import { Outgoing } from '../transfer/outgoing.ts'
import type { FileAnswer } from '../files/file-orders.ts'
import type { StreamAnswer } from '../link/stream-orders.ts'
import type { AgentProbe, AgentStart, AgentView } from '../link/start.ts'
import type { NodeFolder } from './node-folder.ts'
import type { Holders } from './holders.ts'
import { NodeMemory } from './node-memory.ts'
import { RemoteProcesses } from './remote-processes.ts'
import { RemoteRanks } from './remote-ranks.ts'
import { RemoteStreams } from './remote-streams.ts'
import { RemoteThread } from './remote-thread.ts'

export interface NodeLinkEvents {
  /** Said once; all threads and programs of the node have been said to have ended before. `isLost`: without being asked to. */
  gone(reason: string, isLost: boolean): void
  note(text: string): void
  measured(use: MachineUse): void
}

/** The coordinator's end of the connections to one agent. Frames wait here until the agent has called. */
export class NodeLink {
  readonly name: string
  readonly writer = new FrameWriter()
  readonly incoming = new Incoming()
  readonly outgoing = new Outgoing(this.writer)
  readonly memory: NodeMemory
  readonly processes = new RemoteProcesses(this)
  readonly ranks = new RemoteRanks(this)
  readonly streams = new RemoteStreams(this)
  events: NodeLinkEvents | null = null
  /** Set where the agent does not see our folders. */
  folder: NodeFolder | null = null
  readonly #threads = new Map<number, RemoteThread>()
  #control: Duplex | null = null
  #willFlush = false
  #goneBecause: string | null = null
  #isEnding = false
  /** The node is given back, and the run goes on. */
  #isDismissed = false
  #decoder: { bytes: Uint8Array; decoder: Decoder } | null = null
  #whenStarted: (() => void)[] | null = []
  #probed: ((view: AgentView) => void) | null = null
  readonly #probing: ((error: Error) => void)[] = []

  /** Where other agents can call it. */
  peers: readonly string[] = []
  /** Its number among the agents of the run. */
  readonly node: number

  constructor(name: string, node: number, holders: Holders) {
    this.name = name
    this.node = node
    this.memory = new NodeMemory(this, holders)
  }

  get isGone(): boolean {
    return this.#goneBecause !== null
  }

  get isConnected(): boolean {
    return this.#control !== null
  }

  /** The agent has called, and is who it says. */
  attach(control: Duplex, rest: Buffer): void {
    this.#control = control
    const splitter = new FrameSplitter()
    const take = (chunk: Buffer): void => {
      try {
        splitter.push(chunk, (type, content) => this.#receive(type, content))
      } catch (error) {
        this.lost(`it said something that cannot be read: ${(error as Error).message}`)
      }
    }
    control.on('data', take)
    control.on('error', () => undefined)
    control.on('close', () => this.lost('its connection was closed'))
    if (rest.length > 0) take(rest)
    this.flush()
  }

  /** Its second connection, for large buffers. */
  attachBulk(bulk: Duplex, rest: Buffer): void {
    const take = (chunk: Buffer): void => {
      try {
        this.incoming.push(chunk)
      } catch (error) {
        this.lost((error as Error).message)
      }
    }
    bulk.on('data', take)
    bulk.on('error', () => undefined)
    bulk.on('close', () => this.lost('its connection for data was closed'))
    if (rest.length > 0) take(rest)
    this.outgoing.connect(bulk)
    this.incoming.trees.connect(bulk)
  }

  start(start: AgentStart): void {
    const { bytes } = pack(start)
    this.writer.begin(TO_AGENT.start)
    this.writer.block(bytes)
    this.writer.end()
    this.flush()
  }

  /** The agent has taken the facts of the run. */
  whenStarted(go: () => void): void {
    if (this.#whenStarted) this.#whenStarted.push(go)
    else go()
  }

  /** Asks what the agent sees; one question at a time. */
  probe(probe: AgentProbe): Promise<AgentView> {
    this.writer.begin(TO_AGENT.probe)
    this.writer.block(pack(probe).bytes)
    this.writer.end()
    this.flush()
    return new Promise((resolve, reject) => {
      this.#probed = resolve
      this.#probing.push(reject)
      if (this.isGone) reject(new Error(this.#goneBecause ?? ''))
    })
  }

  /** Whether the agent is to tell how loaded its machine is. */
  measure(isWanted: boolean): void {
    this.writer.begin(TO_AGENT.measure)
    this.writer.byte(isWanted ? 1 : 0)
    this.writer.end()
    this.flush()
  }

  openThread(lane: number, isIo: boolean, events: LaneThreadEvents): RemoteThread {
    const thread = new RemoteThread(this, lane, isIo, events)
    if (this.#goneBecause !== null) {
      const reason = this.#goneBecause
      setImmediate(() => thread.cutOff(reason))
    } else this.#threads.set(lane, thread)
    return thread
  }

  closed(lane: number, thread: RemoteThread): void {
    if (this.#threads.get(lane) === thread) this.#threads.delete(lane)
  }

  /** A decoder for a record in a chunk, of which there are many in one chunk. */
  decoderOf(bytes: Uint8Array, at: number, hooks: DecodeHooks): Decoder {
    if (this.#decoder?.bytes !== bytes) this.#decoder = { bytes, decoder: new Decoder(bytes, hooks) }
    const { decoder } = this.#decoder
    decoder.hooks = hooks
    decoder.at = at
    return decoder
  }

  flushSoon(): void {
    if (this.#willFlush) return
    this.#willFlush = true
    process.nextTick(() => {
      this.#willFlush = false
      this.flush()
    })
  }

  flush(): void {
    if (!this.#control || this.#goneBecause !== null) return
    this.memory.sendWords()
    if (!this.writer.isEmpty) this.#control.write(this.writer.take())
  }

  /** Lets the agent end by itself: the run is over, or its node is given back. */
  end(isRunOver = true): void {
    if (this.#isEnding || this.isGone) return
    this.#isEnding = true
    this.#isDismissed = !isRunOver
    this.writer.begin(TO_AGENT.end)
    this.writer.end()
    this.flush()
    this.#control?.end()
  }

  /** No answer, no connection, no process: the node is gone, and one that comes back is a new one. */
  lost(reason: string): void {
    if (this.#goneBecause !== null) return
    this.#goneBecause = reason
    this.#control?.destroy()
    this.folder?.cutOff()
    this.memory.cutOff()
    this.streams.cutOff()
    for (const refuse of this.#probing.splice(0)) refuse(new Error(reason))
    const text = `node ${this.name} was lost: ${reason}`
    if (this.#isEnding) {
      for (const thread of this.#threads.values()) thread.cutOff('the run ended')
      if (this.#isDismissed) this.events?.gone('it was given back', false)
      return
    }
    for (const thread of this.#threads.values()) thread.cutOff(text)
    this.processes.cutOff()
    this.ranks.cutOff(text)
    // Programs that wait for its start find out that it is gone.
    this.#haveStarted()
    this.events?.gone(reason, true)
  }

  #haveStarted(): void {
    const waiting = this.#whenStarted ?? []
    this.#whenStarted = null
    for (const go of waiting) go()
  }

  #receive(type: number, content: FrameReader): void {
    switch (type) {
      case BLOB:
        return this.incoming.frame(content)
      case FROM_AGENT.note:
        return this.events?.note(content.text())
      case FROM_AGENT.measured:
        return this.events?.measured(unpack(content.block()) as MachineUse)
      case FROM_AGENT.ran:
      case FROM_AGENT.refused:
        return this.processes.receive(type, content)
      case FROM_AGENT.ranks:
        return this.ranks.heard(content)
      case FROM_AGENT.fromRank:
        return this.ranks.data(content)
      case FROM_AGENT.started:
        return this.#haveStarted()
      case FROM_AGENT.probed:
        return this.#probed?.(unpack(content.block()) as AgentView)
      case FROM_AGENT.fetched:
        return this.memory.fetched(content.varint(), content.byte() === 1)
      case FROM_AGENT.streams:
        return this.streams.answered(unpack(content.block()) as StreamAnswer)
      case FROM_AGENT.streamsTaken:
        return this.streams.taken(content.varint())
      case FROM_AGENT.filed:
        return this.folder?.answered(unpack(content.block()) as FileAnswer)
      case FROM_AGENT.printed: {
        const stream = content.byte() === 1 ? process.stdout : process.stderr
        stream.write(Buffer.from(content.block()))
        return
      }
      case FROM_AGENT.cannotStart:
        return this.lost(content.text())
      default:
        this.#threads.get(content.varint())?.receive(type, content)
    }
  }
}
