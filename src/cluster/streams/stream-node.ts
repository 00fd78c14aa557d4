import { availableParallelism, totalmem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../../core/errors.ts'
import type { Board } from '../../stream/board/board.ts'
import { Keeper } from '../../stream/board/keeper.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import type { Plan } from '../../stream/board/plan.ts'
import { holdOn, removeTemporary } from '../../stream/board/workspace.ts'
import type { Workspace } from '../../stream/board/workspace.ts'
import { checkText } from '../../stream/language/load.ts'
import { StreamConfigError } from '../../stream/language/problems.ts'
import { openRunBoard } from '../../stream/run/run-board.ts'
import type { RunBoard } from '../../stream/run/run-board.ts'
import { streamTools } from '../../stream/run/toolchain.ts'
import { FrameSplitter } from '../link/frames.ts'
import { Around } from './around.ts'
import { Carried } from './carried.ts'
import { Channels } from './channel.ts'
import { FrameLink } from './frame-link.ts'
import { PacedOutput } from './paced-output.ts'
import { Incoming } from './incoming.ts'
import { Outgoing } from './outgoing.ts'
import { Relay } from './relay.ts'
import {
  againFrame,
  aroundFrame,
  carriedId,
  carryFrame,
  holdFrame,
  readCarried,
  readNumber,
} from './relay-frame.ts'
import { takenFrame, wantedFrames } from './relay-frame.ts'
import { Routes } from './routes.ts'
import { PULSE, SILENCE_OF_COORDINATOR, TAKEN_FRAME } from './messages.ts'
import type { FromStreamNode, NodeOfRun, NodeResult, Sent, StreamOrders, ToStreamNode } from './messages.ts'
import { Prober } from './sight.ts'
import { StepPrograms } from './step-programs.ts'
import { within } from './within.ts'

/** Milliseconds between looks at the board. */
const INTERVAL = 250
/** Milliseconds to get a board and a directory; the library may have to be compiled. */
const START_LIMIT = 300_000
/** Milliseconds for one question to the board. */
const BOARD_LIMIT = 60_000
/** Milliseconds in which the ends of steps come from other nodes. */
const ENDS_LIMIT = 20_000
const HEADER = 5

/** One node of a streaming workflow: a board, the steps that were placed here, and a relay to the other nodes. */
export class StreamNode {
  readonly #link: FrameLink<ToStreamNode, FromStreamNode>
  readonly #channels = new Channels()
  readonly #splitter = new FrameSplitter()
  readonly #ended: () => void
  readonly #pulse: NodeJS.Timeout
  readonly #prober = new Prober()
  #live: Live | null = null
  #starting: Promise<void> | null = null
  #stopping: Promise<void> | null = null
  #leaving: Promise<void> | null = null
  /** Frames that came by the coordinator before the relay was there. */
  #early: Buffer[] | null = []
  /** Nodes that were lost before the relay was there. */
  readonly #lost: number[] = []
  #heard = 0
  #isOver = false

  constructor(version: string, ended: () => void) {
    this.#ended = ended
    this.#link = new FrameLink(process.stdin, process.stdout, {
      message: message => this.#hear(message),
      relayed: (_, frame) => {
        if (this.#live) this.#carried(this.#live, frame)
        else this.#early?.push(Buffer.from(frame))
      },
    })
    process.stdin.on('end', () => void this.#leave('killed'))
    this.#link.say({ say: 'hello', version, cpus: availableParallelism(), memory: totalmem() })
    this.#pulse = setInterval(() => this.#beat(), PULSE)
  }

  /** Both sides say that they live. A cut network ends no connection: without this they would wait for ever. */
  #beat(): void {
    this.#link.say({ say: 'pulse' })
    this.#heard++
    if (this.#heard > SILENCE_OF_COORDINATOR / PULSE) void this.#leave('killed')
  }

  #hear(message: ToStreamNode): void {
    this.#heard = 0
    switch (message.do) {
      case 'listen':
        this.#channels.listen(message.node, message.token, message.isFar).then(
          addresses => this.#link.say({ say: 'listening', addresses }),
          error => this.#fail(error),
        )
        return
      case 'lost':
        if (this.#live) this.#lose(this.#live, message.node)
        else this.#lost.push(message.node)
        return
      case 'start': {
        const start = this.#start(message.orders)
        this.#starting = within(START_LIMIT, start, 'a board and a directory').catch(error =>
          this.#fail(error),
        )
        return
      }
      case 'run':
        void this.#live?.programs.run(message.id, message.request)
        return
      case 'end':
        this.#live?.programs.end(message.id)
        return
      case 'probe':
        void this.#prober.obey(message.order).then(isWell => this.#link.say({ say: 'probed', isWell }))
        return
      case 'stop':
        void this.stop()
        return
      case 'finish':
        void this.#leave(message.isOk ? 'well' : 'failed')
        return
      case 'pulse':
        return
    }
  }

  #fail(error: unknown): void {
    this.#sayFault(error)
    void this.#leave('killed', false)
  }

  #sayFault(error: unknown): void {
    const hint = error instanceof MillraceError ? error.hint : ''
    const message = error instanceof MillraceError ? error.shortMessage : String(error)
    this.#link.say({ say: 'fault', message, hint })
  }

  async #start(orders: StreamOrders): Promise<void> {
    Object.assign(process.env, orders.environment)
    const { plan: checked, problems } = checkText(orders.text, orders.file)
    if (!checked) throw new StreamConfigError(problems)
    const note = (text: string): void => this.#link.say({ say: 'note', text })
    const tools = await streamTools(note)
    const { shared } = orders
    const { place: home, limit, keep, node, nodes } = orders
    const open = await openRunBoard(checked, tools, {
      dir: shared?.dir,
      place: home,
      instances: instancesOf(nodes),
      limit,
      keep,
      isShared: shared !== undefined,
      ...(orders.board === undefined
        ? {}
        : { name: orders.board, steps: orders.nodes[node]?.steps.map(([step]) => step) ?? [] }),
    })
    const { board, plan, workspace } = open
    const { dir, place } = workspace
    const how = shared === undefined ? [] : [shared.sight === 'synced' ? '--synced' : '--shared']
    const relay = await Relay.start(board, how, (type, content) =>
      outgoing.take(type, content.bytes.subarray(content.at - HEADER, content.end), content),
    )
    relay.onExit(code => {
      if (!this.#isOver) this.#fail(new Error(`its relay ended with ${code}`))
    })
    const toRelay = new PacedOutput(relay.stdin)
    const nameOf = (index: number): string => nodes[index]?.name ?? `${index}`
    const incoming = new Incoming(node, {
      toRelay: (frame, from) => toRelay.write(frame, from ? [from] : []),
      nameOf,
      placedOn: index => instancesOf(nodes.slice(index, index + 1)),
    })
    const routes = new Routes(plan, nodes)
    const outgoing = new Outgoing(node, routes, this.#channels, relay.source, {
      again: () => void relay.stdin.write(againFrame()),
      hold: (path, isHeld) => void relay.stdin.write(holdFrame(path, isHeld)),
      note,
      nameOf,
      isTold: path => incoming.isTold(path),
      byCoordinator: this.#link,
    })
    relay.stdin.write(wantedFrames(routes.wantedFrom(node)))
    const own = new Set<string>()
    const keeper = new Keeper(plan, workspace, note, {
      ...(orders.reserve === undefined ? {} : { reserve: orders.reserve }),
      relieve: bytes => board.spill(bytes),
      isHere: path => (shared ? own.has(path) : !incoming.isRemote(path)),
    })
    const programs = new StepPrograms({
      mark: orders.mark,
      board,
      dir,
      place,
      say: message => this.#link.say(message),
      note,
    })
    const live: Live = {
      orders,
      plan,
      workspace,
      board,
      keeper,
      programs,
      open,
      relay,
      toRelay,
      incoming,
      outgoing,
      own,
      carried: new Map(),
      around: new Around(node, nodes),
    }
    this.#live = live
    const addresses = nodes.map(one => one.addresses)
    this.#channels.take(addresses, incoming)
    for (const frame of this.#early ?? []) this.#carried(live, frame)
    this.#early = null
    for (const lost of this.#lost) this.#lose(live, lost)
    this.#link.say({ say: 'started', begun: { dir, library: tools.library } })
    if (this.#stopping || this.#leaving) return programs.stop()
    void this.#look(live)
  }

  /** A frame that came by the coordinator. */
  #carried({ incoming, outgoing, carried }: Live, whole: Buffer): void {
    const { source, frame } = readCarried(whole)
    if (frame[4] === TAKEN_FRAME) return outgoing.taken(source, readNumber(frame))
    let from = carried.get(source)
    if (!from) {
      const tell = (bytes: number): void =>
        this.#link.pass(carryFrame(incoming.me, source, takenFrame(bytes)))
      carried.set(source, (from = new Carried(tell)))
    }
    const holds = from
    this.#splitter.push(frame, (type, content) =>
      incoming.frame(source, carriedId(incoming.me), type, frame, content, holds),
    )
    holds.took(whole.length)
  }

  #lose({ incoming, outgoing }: Live, node: number): void {
    outgoing.lost(node)
    void incoming.lost(node)
  }

  async #look(live: Live): Promise<void> {
    while (!this.#isOver) {
      const began = Date.now()
      const line = live.around.line(sentBy(live), began)
      if (line !== undefined) live.relay.stdin.write(aroundFrame(line))
      const snapshot = await live.board.ps().catch(() => undefined)
      if (snapshot && !this.#isOver) {
        // Nothing moves out of a directory that other nodes read.
        if (!live.orders.shared) live.keeper.look(snapshot)
        const files = snapshot.files.filter(({ path }) => !live.incoming.isRemote(path))
        this.#link.say({
          say: 'look',
          snapshot: { ...snapshot, files, events: [], nodes: undefined },
          sent: sentBy(live),
        })
      }
      await sleep(Math.max(INTERVAL, (Date.now() - began) * 20))
    }
  }

  /** Ends the steps, and starts none that were not started yet. */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop())
  }

  async #stop(): Promise<void> {
    const live = this.#live
    if (!live) return
    await live.programs.stop()
    await this.#killRest(live)
  }

  /** Programs that left their group are known to the board. */
  async #killRest({ board }: Live): Promise<void> {
    const snapshot = await within(BOARD_LIMIT, board.ps(), 'the list of processes').catch(() => undefined)
    for (const { pid } of snapshot?.processes ?? []) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended by itself.
      }
    }
  }

  /**
   * The end of this node, once, whatever asks for it first: the coordinator, its loss, or a fault here. The end may be asked
   * for while the node still starts; what was begun is then finished and taken back.
   */
  #leave(how: 'well' | 'failed' | 'killed', waitsForStart = true): Promise<void> {
    return (this.#leaving ??= this.#leaveNow(how, waitsForStart))
  }

  async #leaveNow(how: 'well' | 'failed' | 'killed', waitsForStart: boolean): Promise<void> {
    if (how === 'killed') this.#stopping ??= this.#stop()
    if (waitsForStart) await this.#starting
    await this.#stopping
    const live = this.#live
    try {
      if (live && how === 'killed') await this.#killRest(live)
      if (live) this.#link.say({ say: 'result', result: await this.#finish(live, how) })
    } catch (error) {
      this.#sayFault(error)
    }
    this.#isOver = true
    clearInterval(this.#pulse)
    this.#channels.end()
    this.#ended()
  }

  /** In a directory of several nodes that is up to the coordinator, unless it is lost. */
  async #putInPlace(
    { keeper, workspace, plan, orders, incoming, own }: Live,
    last: Snapshot | undefined,
    how: 'well' | 'failed' | 'killed',
  ): Promise<Pick<NodeResult, 'kept' | 'removed'>> {
    const isShared = orders.shared !== undefined
    if (isShared && how !== 'killed')
      return { kept: { kept: [], incomplete: [], damaged: [], stuck: [], moved: 0 }, removed: 0 }
    const kept = await keeper.finish(last, how === 'well', orders.keep)
    if (orders.keep === true || kept.stuck.length > 0) {
      await holdOn(workspace)
      return { kept, removed: undefined }
    }
    const removed = await removeTemporary(plan, workspace, path => !isShared || own.has(path))
    // Copies of files of other nodes are not counted twice.
    return { kept, removed: isShared ? removed : Math.max(0, removed - incoming.remoteCount) }
  }

  /**
   * All steps have ended well, on all nodes. What tells this board of the ends elsewhere may still be on its way, and files are
   * complete with it.
   */
  async #hearOfEnds({ board, orders }: Live): Promise<void> {
    const all = instancesOf(orders.nodes)
    for (const until = Date.now() + ENDS_LIMIT; Date.now() < until; await sleep(20)) {
      const seen = await within(BOARD_LIMIT, board.ps(), 'the state of the steps')
      const ended = new Map(seen?.steps.map(one => [one.name, one.endedOk + one.endedFailed]))
      if ([...all].every(([step, count]) => (ended.get(step) ?? 0) >= count)) return
    }
  }

  async #finish(live: Live, how: 'well' | 'failed' | 'killed'): Promise<NodeResult> {
    this.#isOver = true
    const { board, workspace, relay, toRelay, open, incoming, outgoing } = live
    if (how === 'well') await this.#hearOfEnds(live)
    const last = await within(BOARD_LIMIT, board.ps(), 'the state of the files')
    // Why a file failed here, and not where it was made, is told here.
    const files = last?.files.filter(({ path, reason }) => !incoming.isRemote(path) || hasCode(reason)) ?? []
    for (const { path } of files) if (!incoming.isRemote(path)) live.own.add(path)
    const { kept, removed } = await this.#putInPlace(live, last, how)
    outgoing.end()
    toRelay.flush()
    relay.stdin.end()
    await live.programs.leave()
    await within(BOARD_LIMIT, open.end(), 'the end of the board')
    return { sent: sentBy(live), kept, removed, dir: workspace.dir, last: last && { ...last, files } }
  }
}

const hasCode = (reason: string | undefined): boolean => reason?.startsWith('MR_') === true

interface Live {
  readonly orders: StreamOrders
  readonly plan: Plan
  readonly workspace: Workspace
  readonly board: Board
  readonly keeper: Keeper
  readonly programs: StepPrograms
  readonly relay: Relay
  readonly toRelay: PacedOutput
  readonly incoming: Incoming
  /** Files in a shared directory that steps of this node have made; known at the end. */
  readonly own: Set<string>
  readonly outgoing: Outgoing
  /** What comes by the coordinator, by its node. */
  readonly carried: Map<number, Carried>
  readonly open: RunBoard
  readonly around: Around
}

/** Bytes that went to other nodes: none where all see one directory. */
const sentBy = ({ orders, outgoing }: Live): Sent[] => (orders.shared ? [] : outgoing.sent)

/** Of all nodes together. */
function instancesOf(nodes: readonly NodeOfRun[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { steps } of nodes)
    for (const [step, count] of steps) counts.set(step, (counts.get(step) ?? 0) + count)
  return counts
}
