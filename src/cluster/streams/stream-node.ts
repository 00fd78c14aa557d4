import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../../core/errors.ts'
import { Board } from '../../stream/board/board.ts'
import { Keeper } from '../../stream/board/keeper.ts'
import { planLines } from '../../stream/board/plan-lines.ts'
import type { Plan } from '../../stream/board/plan.ts'
import { holdOn, openWorkspace, removeOwn, removeTemporary } from '../../stream/board/workspace.ts'
import type { Workspace } from '../../stream/board/workspace.ts'
import { checkText } from '../../stream/language/load.ts'
import { StreamConfigError } from '../../stream/language/problems.ts'
import { Runner } from '../../stream/run/runner.ts'
import { streamTools } from '../../stream/run/toolchain.ts'
import { forgetState, writeState } from '../../stream/run/up-state.ts'
import { watchOver } from '../../stream/run/watch.ts'
import { FrameSplitter } from '../link/frames.ts'
import { FrameLink, passOn } from './frame-link.ts'
import { RELAY } from './messages.ts'
import { pathOf, wantedFrames } from './relay-frame.ts'
import type { FromStreamNode, StreamOrders, ToStreamNode } from './messages.ts'

/** Milliseconds between looks at the board. */
const INTERVAL = 250
/** Milliseconds that steps get to end after the first signal. */
const PATIENCE = 3000
const HEADER = 5

/** One node of a streaming workflow: a board, the steps that were placed here, and a relay to the other nodes. */
export class StreamNode {
  readonly #link: FrameLink<ToStreamNode, FromStreamNode>
  /** Files whose home is another node. */
  readonly #remote = new Set<string>()
  readonly #ended: () => void
  #live: Live | null = null
  /** Frames that came before the relay was there. */
  #early: Buffer[] | null = []
  #isStopping = false
  #isOver = false

  constructor(version: string, ended: () => void) {
    this.#ended = ended
    this.#link = new FrameLink(process.stdin, process.stdout, {
      message: message => void this.#hear(message),
      relayed: (type, frame, content) => {
        if (type === RELAY.begin && frame.at(-1) === 0) this.#remote.add(pathOf(content.bytes, content.at))
        if (this.#early) this.#early.push(frame)
        else if (this.#live?.relay.stdin) passOn(this.#live.relay.stdin, frame, [this.#link])
      },
    })
    process.stdin.on('end', () => void this.#abandoned())
    this.#link.say({ say: 'hello', version, cpus: availableParallelism() })
  }

  async #hear(message: ToStreamNode): Promise<void> {
    switch (message.do) {
      case 'start':
        return this.#start(message.orders).catch(error => this.#fail(error))
      case 'stop':
        return this.stop()
      default:
        return this.#finish(message.isOk).catch(error => this.#fail(error))
    }
  }

  #fail(error: unknown): void {
    const hint = error instanceof MillraceError ? error.hint : ''
    const message = error instanceof MillraceError ? error.shortMessage : String(error)
    this.#link.say({ say: 'fault', message, hint })
    void this.#abandoned()
  }

  async #start(orders: StreamOrders): Promise<void> {
    Object.assign(process.env, orders.environment)
    const { plan: checked, problems } = checkText(orders.text, orders.file)
    if (!checked) throw new StreamConfigError(problems)
    const note = (text: string): void => this.#link.say({ say: 'note', text })
    const tools = await streamTools(note)
    const { plan, workspace } = await openWorkspace(checked, undefined, orders.place)
    const board = new Board(tools, `${plan.name.replace(/[^\w.-]/g, '_').slice(0, 60)}.run${process.pid}.0`)
    const { dir, layer, place } = workspace
    try {
      const lines = planLines(plan, {
        dir,
        workflow: board.workflow,
        instances: new Map(orders.instances),
        inputs: place,
        ...(orders.limit === undefined ? {} : { limit: orders.limit }),
        ...(layer === undefined ? {} : { layer }),
      })
      await board.create(lines, process.pid)
    } catch (error) {
      await removeOwn(workspace)
      throw error
    }
    await writeState(board, { plan, workspace })
    const keeper = new Keeper(plan, workspace, note, {
      ...(orders.reserve === undefined ? {} : { reserve: orders.reserve }),
      relieve: bytes => board.spill(bytes),
      isHere: path => !this.#remote.has(path),
    })
    const runner = new Runner(board, {
      line: (step, text, to) => this.#link.say({ say: 'line', step, text, to }),
      ended: instance => this.#link.say({ say: 'ended', instance }),
    })
    const allIsWell = watchOver(board.workflow, orders.keep === true)
    const live = { orders, plan, workspace, board, keeper, runner, allIsWell, relay: this.#relay(board) }
    this.#live = live
    live.relay.stdin?.write(wantedFrames(orders.wanted))
    for (const frame of this.#early ?? []) live.relay.stdin?.write(frame)
    this.#early = null
    this.#link.say({ say: 'started' })
    if (this.#isStopping) return
    for (const command of orders.commands) {
      for (let n = 0; n < command.times; n++)
        runner.start(command, command.first + n, dir, { MILLRACE_PLACE: place })
    }
    void this.#look(live)
  }

  #relay(board: Board): ChildProcess {
    const relay = spawn(board.tools.board, ['relay', '-w', board.workflow], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const splitter = new FrameSplitter()
    const { stdout } = relay
    stdout.on('data', (chunk: Buffer) => {
      splitter.push(chunk, (_, content) =>
        this.#link.pass(content.bytes.subarray(content.at - HEADER, content.end), stdout),
      )
    })
    relay.stdin.on('error', () => undefined)
    relay.on('exit', code => {
      if (!this.#isOver) this.#fail(new Error(`its relay ended with ${code}`))
    })
    return relay
  }

  async #look(live: Live): Promise<void> {
    while (!this.#isOver) {
      const began = Date.now()
      const snapshot = await live.board.ps().catch(() => undefined)
      if (snapshot && !this.#isOver) {
        live.keeper.look(snapshot)
        const files = snapshot.files.filter(({ path }) => !this.#remote.has(path))
        this.#link.say({ say: 'look', snapshot: { ...snapshot, files, events: [] } })
      }
      await sleep(Math.max(INTERVAL, (Date.now() - began) * 20))
    }
  }

  async stop(): Promise<void> {
    if (this.#isStopping) return
    this.#isStopping = true
    const live = this.#live
    if (!live) return
    live.runner.kill('SIGTERM')
    for (let left = PATIENCE; left > 0 && live.runner.running > 0; left -= 50) await sleep(50)
    if (live.runner.running > 0) await this.#killAll(live)
  }

  async #killAll({ runner, board }: Live): Promise<void> {
    // Those that left their group are known to the board.
    const snapshot = await board.ps().catch(() => undefined)
    runner.kill('SIGKILL')
    for (const { pid } of snapshot?.processes ?? []) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended by itself.
      }
    }
  }

  async #finish(isOk: boolean): Promise<void> {
    const live = this.#live
    if (!live || this.#isOver) return
    this.#isOver = true
    const { board, keeper, workspace, plan, orders, relay, allIsWell } = live
    const last = await board.ps()
    const kept = await keeper.finish(last, isOk, orders.keep)
    const isLeft = orders.keep === true || kept.stuck.length > 0
    const all = isLeft ? undefined : await removeTemporary(plan, workspace)
    // Copies of files of other nodes are not counted twice.
    const removed = all === undefined ? undefined : Math.max(0, all - this.#remote.size)
    if (isLeft) await holdOn(workspace)
    relay.stdin?.end()
    await board.destroy(true)
    await forgetState(board)
    allIsWell()
    const files = last?.files.filter(({ path }) => !this.#remote.has(path)) ?? []
    const result = { kept, removed, dir: workspace.dir, last: last && { ...last, files } }
    this.#link.say({ say: 'result', result })
    this.#ended()
  }

  /** The coordinator is gone: what is complete is kept, the rest goes. */
  async #abandoned(): Promise<void> {
    if (this.#isOver) return
    const live = this.#live
    if (live) {
      await this.#killAll(live)
      await this.#finish(false).catch(() => undefined)
    }
    this.#isOver = true
    this.#ended()
  }
}

interface Live {
  readonly orders: StreamOrders
  readonly plan: Plan
  readonly workspace: Workspace
  readonly board: Board
  readonly keeper: Keeper
  readonly runner: Runner
  readonly relay: ChildProcess
  readonly allIsWell: () => void
}
