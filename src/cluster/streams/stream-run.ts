import { MillraceError } from '../../core/errors.ts'
import { Keeper } from '../../stream/board/keeper.ts'
import type { Kept } from '../../stream/board/keeper.ts'
import type { Plan } from '../../stream/board/plan.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import { counted } from '../../stream/board/table.ts'
import { openWorkspace, removeTemporary } from '../../stream/board/workspace.ts'
import type { Workspace } from '../../stream/board/workspace.ts'
import { loadPlan, readText } from '../../stream/language/load.ts'
import { problemText } from '../../stream/language/problems.ts'
import { watchdog } from '../../stream/run/watchdog.ts'
import { byteText, durationText, Progress, progressLines } from '../../stream/run/progress.ts'
import type { StreamState } from '../../stream/run/progress.ts'
import { doubtText, failureText, summaryText, unseenText } from '../../stream/run/run-report.ts'
import type { Instance } from '../../stream/run/runner.ts'
import { Screen } from '../../stream/run/screen.ts'
import type { StreamIo } from '../../stream/run/screen.ts'
import { matchCommands } from '../../stream/run/step-commands.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import { environmentToSend } from '../launch/environment.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import { newSecret } from '../link/secret.ts'
import { boardOf, EndsByHand, howToStart, stepsByHand } from './by-hand.ts'
import { Deadlocks } from './deadlock.ts'
import { PULSE, SILENCE } from './messages.ts'
import { Links } from './links.ts'
import type { PlacedCommand, Sent, StreamOrders } from './messages.ts'
import { placeSteps } from './place-steps.ts'
import { RemoteStreamNode } from './remote-stream-node.ts'
import { readCarried } from './relay-frame.ts'
import { probeSight } from './sight.ts'
import type { Sight } from './sight.ts'

export interface StreamNodesOptions {
  readonly place: string
  /** A managed directory that all nodes see. */
  readonly dir?: string
  readonly version: string
  readonly limit?: number
  readonly keep?: boolean
  readonly reserve?: number
  /** Milliseconds between lines of progress when there is no terminal. */
  readonly heartbeat?: number
  /** Milliseconds after which a node that says nothing is lost. */
  readonly silence?: number
  /** What the file system of `dir` promises; without it, it is tried out. */
  readonly sight?: Sight
  /** Steps are started by the user, with `stream exec` on their nodes; this is the name of the workflow there. */
  readonly byHand?: string
  /** Whether a node may call another one; without it, all try. */
  readonly mayCall?: (from: number, to: number) => boolean
}

/** Live nodes have this multiple of the silence to put their files in place, before the run ends without them. */
const CLOSING = 10
/** Seconds after which progress tells of a wait, and of how many. */
const LONG_WAIT = 5
const MOST_WAITS = 5

/** Runs a streaming workflow whose steps are on several nodes. */
export function streamRunOnNodes(
  file: string,
  commands: readonly StepCommand[],
  specs: readonly NodeSpec[],
  options: StreamNodesOptions,
  io: StreamIo,
  signal?: AbortSignal,
): Promise<number> {
  const commandsOf = (plan: Plan): readonly StepCommand[] => {
    matchCommands(plan, commands)
    return commands
  }
  return begin(file, commandsOf, specs, options, io, signal)
}

/** The same for steps that the user starts: `at` says where, as `STEP=NODE`, and `times` how often, as `STEP=N`. */
export function streamUpOnNodes(
  file: string,
  at: readonly string[],
  times: readonly string[],
  specs: readonly NodeSpec[],
  options: StreamNodesOptions & { readonly byHand: string },
  io: StreamIo,
  signal?: AbortSignal,
): Promise<number> {
  return begin(file, plan => stepsByHand(plan, at, times), specs, options, io, signal)
}

function begin(
  file: string,
  commandsOf: (plan: Plan) => readonly StepCommand[],
  specs: readonly NodeSpec[],
  options: StreamNodesOptions,
  io: StreamIo,
  signal?: AbortSignal,
): Promise<number> {
  return watchdog(io, async () => {
    const { plan, warnings } = loadPlan(file)
    for (const warning of warnings) io.err(`${problemText(warning)}\n`)
    const commands = commandsOf(plan)
    if (signal?.aborted === true) return 130
    return new NodesRun(plan, file, commands, options, io).all(specs, signal)
  })
}

class NodesRun {
  readonly #plan: Plan
  readonly #file: string
  readonly #commands: readonly StepCommand[]
  readonly #options: StreamNodesOptions
  readonly #screen: Screen
  readonly #progress: Progress
  readonly #nodes: RemoteStreamNode[] = []
  readonly #addresses: (readonly string[])[] = []
  readonly #instances: Instance[] = []
  readonly #begun = Date.now()
  #placed: PlacedCommand[][] = []
  #expected = 0
  #spoke = Date.now()
  #lost: string[] = []
  #wake: () => void = () => {}
  #isCut = false
  #isDeadlocked = false
  readonly #deadlocks = new Deadlocks()
  readonly #byHand = new EndsByHand()
  #links = new Links([])
  #shared: StreamOrders['shared']
  /** Of a directory that all nodes see. */
  #files: { plan: Plan; workspace: Workspace } | undefined

  constructor(
    plan: Plan,
    file: string,
    commands: readonly StepCommand[],
    options: StreamNodesOptions,
    io: StreamIo,
  ) {
    this.#plan = plan
    this.#file = file
    this.#commands = commands
    this.#options = options
    this.#screen = new Screen(io)
    this.#progress = new Progress(plan)
  }

  async all(specs: readonly NodeSpec[], signal?: AbortSignal): Promise<number> {
    const stop = (): void => {
      this.#isCut = true
      this.#screen.print(`stopping ${counted(this.#running, 'step')} …\n`)
      for (const node of this.#nodes) node.stop()
      this.#wake()
    }
    signal?.addEventListener('abort', stop)
    const pulse = setInterval(() => {
      for (const node of this.#nodes) node.pulse(this.#silence)
    }, PULSE)
    try {
      await this.#reach(specs)
      this.#start(specs)
      while (!this.#isCut && this.#running > 0) await this.#news()
      // A node that was cut off in mid-stop has told of its steps by then.
      for (let rounds = 0; this.#running > 0 && rounds < 40; rounds++) await this.#news(100)
      return await this.#close()
    } finally {
      signal?.removeEventListener('abort', stop)
      clearInterval(pulse)
      for (const node of this.#nodes) node.close()
      this.#screen.clear()
    }
  }

  get #silence(): number {
    return this.#options.silence ?? SILENCE
  }

  get #sent(): (readonly Sent[])[] {
    return this.#nodes.map(({ sent }) => sent)
  }

  get #running(): number {
    return this.#expected - this.#instances.length
  }

  #news(most = 1000): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, most)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Starts a process on each node and waits until all have called. */
  async #reach(specs: readonly NodeSpec[]): Promise<void> {
    const width = Math.max(...this.#plan.steps.map(step => step.name.length))
    for (const [i, spec] of specs.entries()) {
      const node = new RemoteStreamNode(spec, {
        carried: frame => this.#carry(frame),
        line: (step, text, to) =>
          this.#screen.print(`${step.padEnd(width)} | ${text}\n`, to === 'stdout' ? 'out' : 'err'),
        note: text => this.#screen.print(`${spec.name}: ${text}`),
        ended: instance => this.#ended(instance, spec.name),
        looked: () => {
          this.#show()
          if (this.#options.byHand === undefined) this.#watchForDeadlock()
          else this.#lookForEnds()
        },
        started: begun => {
          const { byHand } = this.#options
          if (byHand === undefined) return
          this.#screen.print(howToStart(spec, byHand, this.#placed[i] ?? [], begun))
        },
        gone: reason => this.#gone(i, reason),
      })
      this.#nodes.push(node)
    }
    const cpus: number[] = []
    for (const node of this.#nodes) {
      const hello = await node.hello.catch(unreachable(node))
      if (hello.version !== this.#options.version) {
        const message = `${node.name} has Millrace ${hello.version}, this machine ${this.#options.version}`
        throw new MillraceError('MR_NODE_VERSION', message)
      }
      cpus.push(hello.cpus)
    }
    this.#links = new Links(this.#nodes.map(({ name }) => name))
    const { token } = newSecret()
    const isFar = specs.some(({ by }) => by !== 'local')
    for (const [i, node] of this.#nodes.entries()) node.listen(i, token, isFar)
    for (const node of this.#nodes) this.#addresses.push(await node.addresses.catch(unreachable(node)))
    const { dir: named } = this.#options
    if (named !== undefined) {
      this.#files = await openWorkspace(this.#plan, named, this.#options.place, {
        hasLayer: false,
      })
      const { dir } = this.#files.workspace
      this.#shared = { dir, sight: this.#options.sight ?? (await probeSight(dir, this.#nodes)) }
    }
    this.#placed = placeSteps(
      this.#commands,
      this.#nodes.map(({ name }, i) => ({ name, cpus: cpus[i] ?? 1 })),
    )
  }

  #start(specs: readonly NodeSpec[]): void {
    const sendsEnvironment = specs.some(({ by }) => by === 'ssh')
    const { byHand } = this.#options
    if (byHand !== undefined) {
      const nodes = counted(specs.length, 'node')
      this.#screen.print(
        `${this.#plan.name} comes up on ${nodes}; start each step on its node, in any order and at once:\n`,
      )
    }
    const { limit, keep, reserve, place, version, mayCall = () => true } = this.#options
    const nodes = this.#nodes.map(({ name }, i) => {
      const steps = (this.#placed[i] ?? []).map(({ step, times, first }) => [step, times, first] as const)
      return { name, addresses: this.#addresses[i] ?? [], steps }
    })
    for (const commands of this.#placed) for (const { times } of commands) this.#expected += times
    const text = readText(this.#file)
    for (const [i, node] of this.#nodes.entries()) {
      node.start({
        version,
        file: this.#file,
        text,
        place,
        commands: byHand === undefined ? (this.#placed[i] ?? []) : [],
        ...(byHand === undefined ? {} : { board: boardOf(byHand, specs[i] as NodeSpec) }),
        ...(this.#shared === undefined ? {} : { shared: this.#shared }),
        node: i,
        nodes: nodes.map((one, to) => (mayCall(i, to) ? one : { ...one, addresses: [] })),
        environment: sendsEnvironment ? environmentToSend(process.env) : {},
        ...(limit === undefined ? {} : { limit }),
        ...(keep === undefined ? {} : { keep }),
        ...(reserve === undefined ? {} : { reserve }),
      })
    }
  }

  /** Nodes that cannot reach each other send what they have for each other through this process. They send little ahead of what was taken. */
  #carry(frame: Buffer): void {
    const node = this.#nodes[readCarried(frame).to]
    if (node && !node.isGone) node.link.pass(frame)
  }

  #ended(instance: Instance, node: string): void {
    this.#instances.push(instance)
    const time = durationText((instance.ended ?? 0) - instance.started)
    const state = instance.code === 0 ? 'ended' : 'FAILED'
    const count = `[${this.#instances.length}/${this.#expected}]`
    this.#screen.print(`${count} ${state} ${instance.step} on ${node} (exit code ${instance.code}) ${time}\n`)
    this.#wake()
  }

  /** Steps that the user has started. */
  #lookForEnds(): void {
    const snapshots = this.#nodes.flatMap(({ snapshot }) => snapshot ?? [])
    for (const instance of this.#byHand.news(snapshots, this.#instances, Date.now())) {
      const index = this.#placed.findIndex(placed =>
        placed.some(
          ({ step, first, times }) =>
            step === instance.step && instance.number >= first && instance.number < first + times,
        ),
      )
      this.#ended(instance, this.#nodes[index]?.name ?? '?')
    }
  }

  /** A node is lost: its steps have failed, and so have the files that it had not completed. */
  #gone(index: number, reason: string | null): void {
    this.#wake()
    const node = this.#nodes[index]
    if (reason === null || !node || this.#expected === 0) return
    this.#lost.push(`node ${node.name} was lost: ${reason}`)
    this.#screen.print(`node ${node.name} was lost: ${reason}\n`)
    const why = `node ${node.name} was lost`
    for (const other of this.#nodes) if (!other.isGone) other.lost(index)
    const now = Date.now()
    for (const { step, run, first, times } of this.#placed[index] ?? []) {
      const isKnown = (number: number): boolean =>
        this.#instances.some(one => one.step === step && one.number === number)
      const missing = Array.from({ length: times }, (_, n) => first + n).filter(number => !isKnown(number))
      if (missing.length === 0) continue
      for (const number of missing) {
        const command = typeof run === 'string' ? run : run.join(' ')
        const instance = { step, number, command, started: this.#begun, ended: now, code: 137, tail: [why] }
        this.#ended(instance, node.name)
      }
    }
  }

  /** Steps that wait for each other on several nodes would do so for ever. */
  #watchForDeadlock(): void {
    if (this.#isCut || this.#nodes.some(node => !node.isGone && !node.snapshot)) return
    const seen = this.#nodes.flatMap(({ name, snapshot, isGone }, i) => {
      if (isGone || !snapshot) return []
      const running = new Map<string, number>()
      for (const { step, first, times } of this.#placed[i] ?? []) {
        const ended = this.#instances.filter(
          one => one.step === step && one.number >= first && one.number < first + times,
        ).length
        if (ended < times) running.set(step, (running.get(step) ?? 0) + times - ended)
      }
      return [{ name, snapshot, running }]
    })
    const circle = this.#deadlocks.look(seen, Date.now())
    if (circle === null || this.#isDeadlocked) return
    this.#isDeadlocked = true
    this.#screen.print(`error: these steps wait for each other and are stopped: ${circle}\n`)
    for (const node of this.#nodes) node.stop()
  }

  #snapshot(of: (node: RemoteStreamNode) => Snapshot | null | undefined): Snapshot {
    const all = this.#nodes.flatMap(node => of(node) ?? [])
    return {
      board: undefined,
      steps: all.flatMap(({ steps }) => steps),
      files: all.flatMap(({ files }) => files),
      processes: all.flatMap(({ processes }) => processes),
      waits: all.flatMap(({ waits }) => waits),
      events: all.flatMap(({ events }) => events),
    }
  }

  #show(): void {
    const isDue = Date.now() - this.#spoke >= (this.#options.heartbeat ?? 30_000)
    if (!this.#screen.live && !isDue) return
    const states = this.#progress.look(
      this.#snapshot(node => node.snapshot),
      Date.now(),
    )
    const lines = this.#block(states)
    if (this.#screen.live) return this.#screen.paint(lines)
    this.#spoke = Date.now()
    this.#screen.print(`${lines.join('\n')}\n`)
  }

  #block(states: StreamState[]): string[] {
    const bytes = states.reduce((sum, state) => sum + state.bytes, 0)
    const elapsed = durationText(Date.now() - this.#begun)
    const done = `[${this.#instances.length}/${this.#expected}] steps ended`
    const nodes = counted(this.#nodes.length, 'node')
    const rates = this.#links.rates(this.#sent, Date.now())
    const waits = this.#nodes.flatMap(({ name, snapshot }) =>
      (snapshot?.waits ?? []).flatMap(({ sentence, at, for: what, seconds }) =>
        (seconds ?? 0) < LONG_WAIT
          ? []
          : [`${name}: ${sentence}${what === 'data' ? `, from byte ${at}` : ''}`],
      ),
    )
    const more = [...waits.slice(0, MOST_WAITS), ...(rates === undefined ? [] : [rates])]
    return [
      `${this.#plan.name}  ${elapsed}  ${nodes}  ${done}  ${byteText(bytes)} written`,
      ...progressLines(states, this.#screen.width, this.#screen.height - 2 - more.length),
      ...more,
    ]
  }

  async #close(): Promise<number> {
    const failed = this.#instances.filter(({ code }) => code !== 0)
    const isOk = failed.length === 0 && !this.#isCut && !this.#isDeadlocked && this.#lost.length === 0
    await this.#letGo(isOk)
    this.#screen.clear()
    const last = this.#snapshot(node => node.result?.last ?? (this.#files ? node.snapshot : undefined))
    const { kept, removed } = await this.#putInPlace(last, isOk)
    const states = new Progress(this.#plan).look(last, Date.now())
    if (failed.length > 0 && !this.#isCut) this.#screen.print(failureText(this.#plan, this.#instances, last))
    const doubt = doubtText(last)
    if (doubt !== '') this.#screen.print(doubt)
    const unseen = unseenText(last)
    if (unseen !== '') this.#screen.print(unseen)
    this.#screen.print(
      summaryText({
        plan: this.#plan,
        instances: this.#instances,
        states,
        kept,
        removed,
        elapsed: Date.now() - this.#begun,
        cut: this.#isCut,
        doubtful: doubt !== '',
        workspace: this.#workspace(),
      }),
    )
    const links = this.#links.total(this.#sent)
    if (links !== undefined) this.#screen.print(`${links}\n`)
    if (this.#isCut) return 130
    return isOk && this.#lost.length === 0 && kept.stuck.length === 0 && doubt === '' ? 0 : 1
  }

  /** For the summary. */
  #workspace(): Workspace {
    if (this.#files) return this.#files.workspace
    const dir = this.#nodes.flatMap(({ result }) => result?.dir ?? []).join(', ')
    return { dir, place: this.#options.place, layer: undefined, own: true, before: new Set() }
  }

  /** Each node has put its own files in place; those in a directory of all nodes are judged here. */
  async #putInPlace(last: Snapshot, isOk: boolean): Promise<{ kept: Kept; removed: number | undefined }> {
    if (this.#files) {
      const { plan, workspace } = this.#files
      const keeper = new Keeper(plan, workspace, text => this.#screen.print(text))
      const kept = await keeper.finish(last, isOk, this.#options.keep)
      const isLeft = this.#options.keep === true || kept.stuck.length > 0
      return { kept, removed: isLeft ? undefined : await removeTemporary(plan, workspace) }
    }
    const results = this.#nodes.flatMap(({ result }) => result ?? [])
    const isLeft = results.some(({ removed }) => removed === undefined)
    const removed = results.reduce((sum, one) => sum + (one.removed ?? 0), 0)
    return { kept: this.#kept(), removed: isLeft ? undefined : removed }
  }

  /** Waits until all nodes have put their files in place and are gone. */
  async #letGo(isOk: boolean): Promise<void> {
    for (const node of this.#nodes) node.finish(isOk)
    const began = Date.now()
    for (let spoke = began; ; await this.#news()) {
      const here = this.#nodes.filter(node => !node.isGone).map(({ name }) => name)
      if (here.length === 0) return
      const now = Date.now()
      const names = `${here.length === 1 ? 'node' : 'nodes'} ${here.join(', ')}`
      if (now - began > this.#silence * CLOSING) {
        const time = durationText(now - began)
        this.#lost.push(`${names} did not end`)
        this.#screen.print(
          `error: after ${time} ${names} had not put all files in place, and may go on with it alone\n`,
        )
        return
      }
      if (now - spoke < (this.#options.heartbeat ?? 30_000)) continue
      spoke = now
      this.#screen.print(`waiting for ${names} to put files in place\n`)
    }
  }

  #kept(): Kept {
    const all = this.#nodes.flatMap(({ result }) => result?.kept ?? [])
    const names = (of: (kept: Kept) => string[]): string[] => [...new Set(all.flatMap(of))].toSorted()
    const stuck = all.flatMap(kept => kept.stuck)
    return {
      kept: names(kept => kept.kept),
      incomplete: names(kept => kept.incomplete),
      damaged: names(kept => kept.damaged),
      stuck,
      moved: all.reduce((sum, { moved }) => sum + moved, 0),
    }
  }
}

const unreachable =
  ({ name }: RemoteStreamNode) =>
  (error: Error): never => {
    throw new MillraceError('MR_NODE_UNREACHABLE', `${name}: ${error.message}`)
  }
