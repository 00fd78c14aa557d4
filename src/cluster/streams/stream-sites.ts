import { MillraceError } from '../../core/errors.ts'
import { Keeper } from '../../stream/board/keeper.ts'
import type { Kept } from '../../stream/board/keeper.ts'
import type { Plan } from '../../stream/board/plan.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import { counted } from '../../stream/board/table.ts'
import { openWorkspace, removeTemporary } from '../../stream/board/workspace.ts'
import type { Workspace } from '../../stream/board/workspace.ts'
import { readText } from '../../stream/language/load.ts'
import { durationText } from '../../stream/run/progress.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import { environmentToSend } from '../launch/environment.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import { newSecret } from '../link/secret.ts'
import { boardOf } from './by-hand.ts'
import { Deadlocks } from './deadlock.ts'
import { Links } from './links.ts'
import { PULSE, SILENCE } from './messages.ts'
import type { Begun, PlacedCommand, Sent, StreamOrders } from './messages.ts'
import { placeSteps } from './place-steps.ts'
import { readCarried } from './relay-frame.ts'
import { RemoteStreamNode } from './remote-stream-node.ts'
import type { Hello } from './remote-stream-node.ts'
import { probeSight } from './sight.ts'
import type { Sight } from './sight.ts'

export interface SitesOptions {
  readonly place: string
  /** A managed directory that all nodes see. */
  readonly dir?: string
  readonly version: string
  readonly limit?: number
  readonly keep?: boolean
  readonly reserve?: number
  /** Milliseconds after which a node that says nothing is lost. */
  readonly silence?: number
  /** Milliseconds between lines that say what is waited for. */
  readonly heartbeat?: number
  /** What the file system of `dir` promises; without it, it is tried out. */
  readonly sight?: Sight
  /** Steps are started by the user, with `stream exec` on their nodes; this is the name of the workflow there. */
  readonly byHand?: string
  /** Whether a node may call another one; without it, all try. */
  readonly mayCall?: (from: number, to: number) => boolean
}

export interface SitesEvents {
  note(text: string): void
  /** What a node knows of its files and steps has come; see `snapshot`. */
  looked(): void
  /** Steps can start on this node. */
  started?(node: number, begun: Begun): void
  /** A node was lost, with what ran there. */
  lost(node: number, reason: string): void
}

/** How the files ended. */
export interface FilesEnd {
  readonly last: Snapshot
  readonly kept: Kept
  /** Temporary files that were removed; undefined when they were left. */
  readonly removed: number | undefined
  /** For texts. */
  readonly workspace: Workspace
  /** No node was lost, and no permanent file was written on several. */
  readonly isWhole: boolean
  /** How much went between nodes, for the report. */
  readonly links: string | undefined
}

/** Live nodes have this multiple of the silence to put their files in place, before the run ends without them. */
const CLOSING = 10

/**
 * The nodes of a streaming workflow, together: each has a board, a managed directory and a relay to the others. What runs on
 * them is decided elsewhere.
 */
export class StreamSites {
  readonly nodes: RemoteStreamNode[] = []
  readonly specs: readonly NodeSpec[]
  readonly hellos: Hello[] = []
  /** Which instances of which steps run on which node. */
  placed: PlacedCommand[][] = []
  events: SitesEvents
  readonly #plan: Plan
  readonly #file: string
  readonly #options: SitesOptions
  readonly #addresses: (readonly string[])[] = []
  readonly #deadlocks = new Deadlocks()
  readonly #links: Links
  #pulse: NodeJS.Timeout | undefined
  #wake: () => void = () => {}
  #hasLost = false
  #isStarted = false
  #shared: StreamOrders['shared']
  /** Of a directory that all nodes see. */
  #files: { plan: Plan; workspace: Workspace } | undefined

  constructor(
    plan: Plan,
    file: string,
    specs: readonly NodeSpec[],
    options: SitesOptions,
    events: SitesEvents,
  ) {
    this.#plan = plan
    this.#file = file
    this.specs = specs
    this.#options = options
    this.events = events
    this.#links = new Links(specs.map(({ name }) => name))
  }

  /** Starts a process on each node, waits until all have called, and decides where the steps run. */
  async reach(commands: readonly StepCommand[]): Promise<void> {
    const { specs } = this
    this.#pulse = setInterval(() => {
      for (const node of this.nodes) node.pulse(this.#silence)
    }, PULSE)
    for (const [i, spec] of specs.entries()) {
      const node = new RemoteStreamNode(spec, {
        carried: frame => this.#carry(frame),
        note: text => this.events.note(`${spec.name}: ${text.trimEnd()}`),
        looked: () => this.events.looked(),
        started: begun => this.events.started?.(i, begun),
        gone: reason => this.#gone(i, reason),
      })
      this.nodes.push(node)
    }
    for (const node of this.nodes) {
      const hello = await node.hello.catch(unreachable(node))
      if (hello.version !== this.#options.version) {
        const message = `${node.name} has Millrace ${hello.version}, this machine ${this.#options.version}`
        throw new MillraceError('MR_NODE_VERSION', message)
      }
      this.hellos.push(hello)
    }
    const { token } = newSecret()
    const isFar = specs.some(({ by }) => by !== 'local')
    for (const [i, node] of this.nodes.entries()) node.listen(i, token, isFar)
    for (const node of this.nodes) this.#addresses.push(await node.addresses.catch(unreachable(node)))
    const { dir: named } = this.#options
    if (named !== undefined) {
      this.#files = await openWorkspace(this.#plan, named, this.#options.place, { hasLayer: false })
      const { dir } = this.#files.workspace
      this.#shared = { dir, sight: this.#options.sight ?? (await probeSight(dir, this.nodes)) }
    }
    this.placed = placeSteps(
      commands,
      this.nodes.map(({ name }, i) => ({ name, cpus: this.hellos[i]?.cpus ?? 1 })),
    )
  }

  /** Each node makes its board and its directory. `mark` is a name of the run. */
  start(mark: string): void {
    this.#isStarted = true
    const { specs } = this
    const sendsEnvironment = specs.some(({ by }) => by === 'ssh')
    const { byHand, limit, keep, reserve, place, version, mayCall = () => true } = this.#options
    const nodes = this.nodes.map(({ name }, i) => {
      const steps = (this.placed[i] ?? []).map(({ step, times, first }) => [step, times, first] as const)
      return { name, addresses: this.#addresses[i] ?? [], steps }
    })
    const text = readText(this.#file)
    for (const [i, node] of this.nodes.entries()) {
      node.start({
        version,
        mark: `${mark}.${i}`,
        file: this.#file,
        text,
        place,
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

  /** Ends what runs on the nodes. */
  stop(): void {
    for (const node of this.nodes) node.stop()
  }

  /** The processes of the nodes end. */
  close(): void {
    clearInterval(this.#pulse)
    for (const node of this.nodes) node.close()
  }

  /** All files and steps, as the nodes saw them last. Waits say on which node they are. */
  get snapshot(): Snapshot {
    return this.#joined(({ name, snapshot }) => {
      if (!snapshot) return null
      const waits = snapshot.waits.map(wait => ({ ...wait, sentence: `${wait.sentence}, on ${name}` }))
      return { ...snapshot, waits }
    })
  }

  /** Bytes that went between nodes, and how fast they go; undefined where there are none. */
  get rates(): string | undefined {
    return this.#links.rates(this.#sent, Date.now())
  }

  /** Steps that wait for each other over several nodes, in words, when that is certain. */
  deadlock(hasEnded: (step: string, number: number) => boolean): string | null {
    if (this.nodes.some(node => !node.isGone && !node.snapshot)) return null
    const seen = this.nodes.flatMap(({ name, snapshot, isGone }, i) => {
      if (isGone || !snapshot) return []
      const running = new Map<string, number>()
      for (const { step, first, times } of this.placed[i] ?? []) {
        let left = 0
        for (let number = first; number < first + times; number++) if (!hasEnded(step, number)) left++
        if (left > 0) running.set(step, (running.get(step) ?? 0) + left)
      }
      return [{ name, snapshot, running, isByHand: this.#options.byHand !== undefined }]
    })
    return this.#deadlocks.look(seen, Date.now())
  }

  /** All steps have ended: the files go to their places, and the nodes end. */
  async finish(isOk: boolean): Promise<FilesEnd> {
    await this.#letGo(isOk && !this.#hasLost)
    const last = this.#joined(node => node.result?.last ?? (this.#files ? node.snapshot : undefined))
    const files = await this.#putInPlace(last, isOk && !this.#hasLost)
    const links = this.#links.total(this.#sent)
    const isWhole = !this.#hasLost && (files.kept.contested ?? []).length === 0
    return { last, ...files, workspace: this.#workspace(), isWhole, links }
  }

  get #silence(): number {
    return this.#options.silence ?? SILENCE
  }

  get #sent(): (readonly Sent[])[] {
    return this.nodes.map(({ sent }) => sent)
  }

  /** Nodes that cannot reach each other send what they have for each other through this process. They send little ahead of what was taken. */
  #carry(frame: Buffer): void {
    const node = this.nodes[readCarried(frame).to]
    if (node && !node.isGone) node.link.pass(frame)
  }

  /** A node is lost: its steps have failed, and so have the files that it had not completed. */
  #gone(index: number, reason: string | null): void {
    this.#wake()
    if (reason === null || !this.#isStarted) return
    this.#hasLost = true
    this.events.lost(index, reason)
    for (const other of this.nodes) if (!other.isGone) other.lost(index)
  }

  #joined(of: (node: RemoteStreamNode) => Snapshot | null | undefined): Snapshot {
    const all = this.nodes.flatMap(node => of(node) ?? [])
    return {
      board: undefined,
      steps: all.flatMap(({ steps }) => steps),
      files: all.flatMap(({ files }) => files),
      processes: all.flatMap(({ processes }) => processes),
      waits: all.flatMap(({ waits }) => waits),
      events: all.flatMap(({ events }) => events),
    }
  }

  #workspace(): Workspace {
    if (this.#files) return this.#files.workspace
    const dir = this.nodes.flatMap(({ result }) => result?.dir ?? []).join(', ')
    return { dir, place: this.#options.place, layer: undefined, own: true, before: new Set() }
  }

  /** Each node has put its own files in place; those in a directory of all nodes are judged here. */
  async #putInPlace(last: Snapshot, isOk: boolean): Promise<{ kept: Kept; removed: number | undefined }> {
    if (this.#files) {
      const { plan, workspace } = this.#files
      const keeper = new Keeper(plan, workspace, text => this.events.note(text.trimEnd()))
      const kept = await keeper.finish(last, isOk, this.#options.keep)
      const isLeft = this.#options.keep === true || kept.stuck.length > 0
      return { kept, removed: isLeft ? undefined : await removeTemporary(plan, workspace) }
    }
    const results = this.nodes.flatMap(({ result }) => result ?? [])
    const isLeft = results.some(({ removed }) => removed === undefined)
    const removed = results.reduce((sum, one) => sum + (one.removed ?? 0), 0)
    return { kept: this.#kept(), removed: isLeft ? undefined : removed }
  }

  /** Waits until all nodes have put their files in place and are gone. */
  async #letGo(isOk: boolean): Promise<void> {
    for (const node of this.nodes) node.finish(isOk)
    const began = Date.now()
    for (let spoke = began; ; await this.#news()) {
      const here = this.nodes.filter(node => !node.isGone).map(({ name }) => name)
      if (here.length === 0) return
      const now = Date.now()
      const names = `${here.length === 1 ? 'node' : 'nodes'} ${here.join(', ')}`
      if (now - began > this.#silence * CLOSING) {
        const time = durationText(now - began)
        this.#hasLost = true
        this.events.note(
          `after ${time} ${names} had not put all files in place, and may go on with it without this run`,
        )
        return
      }
      if (now - spoke < (this.#options.heartbeat ?? 30_000)) continue
      spoke = now
      this.events.note(
        `waiting for ${counted(here.length, 'node')} to put files in place: ${here.join(', ')}`,
      )
    }
  }

  #news(): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, 1000)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Each node has kept its own file of that name. Those of which another node was told are refused before. */
  #contested(): { path: string; nodes: string[] }[] {
    const nodes = new Map<string, string[]>()
    for (const { name, result } of this.nodes)
      for (const path of result?.kept.kept ?? []) nodes.set(path, [...(nodes.get(path) ?? []), name])
    return [...nodes]
      .flatMap(([path, names]) => (names.length > 1 ? [{ path, nodes: names }] : []))
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
  }

  #kept(): Kept {
    const all = this.nodes.flatMap(({ result }) => result?.kept ?? [])
    const names = (of: (kept: Kept) => string[]): string[] => [...new Set(all.flatMap(of))].toSorted()
    const contested = this.#contested()
    const isContested = new Set(contested.map(({ path }) => path))
    return {
      kept: names(kept => kept.kept.filter(path => !isContested.has(path))),
      contested,
      incomplete: names(kept => kept.incomplete),
      damaged: names(kept => kept.damaged),
      stuck: all.flatMap(kept => kept.stuck),
      moved: all.reduce((sum, { moved }) => sum + moved, 0),
    }
  }
}

const unreachable =
  ({ name }: RemoteStreamNode) =>
  (error: Error): never => {
    throw new MillraceError('MR_NODE_UNREACHABLE', `${name}: ${error.message}`)
  }
