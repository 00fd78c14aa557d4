import { MillraceError } from '../../core/errors.ts'
import type { Kept } from '../../stream/board/keeper.ts'
import type { Plan } from '../../stream/board/plan.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import { counted } from '../../stream/board/table.ts'
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
import { StreamError } from '../../stream/stream-error.ts'
import { environmentToSend } from '../launch/environment.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import type { FrameReader } from '../link/frames.ts'
import { endedFrame, Homes } from './homes.ts'
import { PULSE, RELAY } from './messages.ts'
import type { PlacedCommand } from './messages.ts'
import { placeSteps } from './place-steps.ts'
import { RemoteStreamNode } from './remote-stream-node.ts'
import { Routes } from './routes.ts'
import { pathOf } from './relay-frame.ts'

export interface StreamNodesOptions {
  readonly place: string
  readonly version: string
  readonly limit?: number
  readonly keep?: boolean
  readonly reserve?: number
  /** Milliseconds between lines of progress when there is no terminal. */
  readonly heartbeat?: number
  /** Milliseconds after which a node that says nothing is lost. */
  readonly silence?: number
}

/** Nodes that live get so many times the silence to put their files in place, before the run ends without them. */
const CLOSING = 10

/** Runs a streaming workflow whose steps are on several nodes. */
export function streamRunOnNodes(
  file: string,
  commands: readonly StepCommand[],
  specs: readonly NodeSpec[],
  options: StreamNodesOptions,
  io: StreamIo,
  signal?: AbortSignal,
): Promise<number> {
  return watchdog(io, async () => {
    const { plan, warnings } = loadPlan(file)
    for (const warning of warnings) io.err(`${problemText(warning)}\n`)
    matchCommands(plan, commands)
    if (signal?.aborted === true) return 130
    const run = new NodesRun(plan, file, commands, options, io)
    return run.all(specs, signal)
  })
}

class NodesRun {
  readonly #plan: Plan
  readonly #file: string
  readonly #commands: readonly StepCommand[]
  readonly #options: StreamNodesOptions
  readonly #screen: Screen
  readonly #progress: Progress
  readonly #homes = new Homes()
  readonly #nodes: RemoteStreamNode[] = []
  readonly #instances: Instance[] = []
  readonly #begun = Date.now()
  #routes: Routes | null = null
  #placed: PlacedCommand[][] = []
  #expected = 0
  #spoke = Date.now()
  #lost: string[] = []
  #wake: () => void = () => {}
  #isCut = false

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
      this.#start(specs.some(({ by }) => by === 'ssh'))
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
    return this.#options.silence ?? 60_000
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
        relayed: (type, frame, content) => this.#pass(i, type, frame, content),
        line: (step, text, to) =>
          this.#screen.print(`${step.padEnd(width)} | ${text}\n`, to === 'stdout' ? 'out' : 'err'),
        note: text => this.#screen.print(`${spec.name}: ${text}`),
        ended: instance => this.#ended(instance, spec.name),
        looked: () => this.#show(),
        gone: reason => this.#gone(i, reason),
      })
      this.#nodes.push(node)
    }
    const cpus: number[] = []
    for (const node of this.#nodes) {
      const hello = await node.hello.catch((error: Error) => {
        throw new MillraceError('MR_NODE_UNREACHABLE', `${node.name}: ${error.message}`)
      })
      if (hello.version !== this.#options.version) {
        const message = `${node.name} has Millrace ${hello.version}, this machine ${this.#options.version}`
        throw new MillraceError('MR_NODE_VERSION', message)
      }
      cpus.push(hello.cpus)
    }
    this.#placed = placeSteps(
      this.#commands,
      this.#nodes.map(({ name }, i) => ({ name, cpus: cpus[i] ?? 1 })),
    )
  }

  #start(sendsEnvironment: boolean): void {
    const { limit, keep, reserve, place, version } = this.#options
    const counts = new Map<string, number>()
    const on = new Map<string, number[]>()
    for (const [i, commands] of this.#placed.entries()) {
      for (const { step, times } of commands) {
        counts.set(step, (counts.get(step) ?? 0) + times)
        on.set(step, [...(on.get(step) ?? []), i])
        this.#expected += times
      }
    }
    this.#routes = new Routes(this.#plan, step => on.get(step) ?? [])
    const text = readText(this.#file)
    for (const [i, node] of this.#nodes.entries()) {
      node.start({
        version,
        file: this.#file,
        text,
        place,
        commands: this.#placed[i] ?? [],
        instances: [...counts],
        wanted: this.#routes.wantedFrom(i),
        environment: sendsEnvironment ? environmentToSend(process.env) : {},
        ...(limit === undefined ? {} : { limit }),
        ...(keep === undefined ? {} : { keep }),
        ...(reserve === undefined ? {} : { reserve }),
      })
    }
  }

  /** A frame of a relay goes to the nodes that read the file. */
  #pass(from: number, type: number, frame: Buffer, content: FrameReader): void {
    const source = this.#nodes[from]
    if (!source || !this.#routes) return
    if (type === RELAY.ended) return this.#toOthers(from, frame)
    const path = pathOf(content.bytes, content.at)
    this.#homes.heard(type, path, from)
    const isDirectory = type === RELAY.begin && frame.at(-1) === 1
    for (const i of this.#routes.of(path, isDirectory)) {
      const node = this.#nodes[i]
      if (i !== from && node && !node.isGone) node.link.pass(frame, source.link)
    }
  }

  #toOthers(from: number, frame: Buffer): void {
    for (const [i, node] of this.#nodes.entries()) if (i !== from && !node.isGone) node.link.pass(frame)
  }

  #ended(instance: Instance, node: string): void {
    this.#instances.push(instance)
    const time = durationText((instance.ended ?? 0) - instance.started)
    const state = instance.code === 0 ? 'ended' : 'FAILED'
    const count = `[${this.#instances.length}/${this.#expected}]`
    this.#screen.print(`${count} ${state} ${instance.step} on ${node} (exit code ${instance.code}) ${time}\n`)
    this.#wake()
  }

  /** A node is lost: its steps have failed, and so have the files that it had not completed. */
  #gone(index: number, reason: string | null): void {
    this.#wake()
    const node = this.#nodes[index]
    if (reason === null || !node || this.#expected === 0) return
    this.#lost.push(`node ${node.name} was lost: ${reason}`)
    this.#screen.print(`node ${node.name} was lost: ${reason}\n`)
    const why = `node ${node.name} was lost`
    for (const { path, frame } of this.#homes.lost(index, why)) {
      for (const i of this.#routes?.of(path) ?? []) {
        const other = this.#nodes[i]
        if (i !== index && other && !other.isGone) other.link.pass(frame)
      }
    }
    const now = Date.now()
    for (const { step, run, first, times } of this.#placed[index] ?? []) {
      const isKnown = (number: number): boolean =>
        this.#instances.some(one => one.step === step && one.number === number)
      const missing = Array.from({ length: times }, (_, n) => first + n).filter(number => !isKnown(number))
      if (missing.length === 0) continue
      this.#toOthers(index, endedFrame(step, missing.length, why))
      for (const number of missing) {
        const command = typeof run === 'string' ? run : run.join(' ')
        const instance = { step, number, command, started: this.#begun, ended: now, code: 137, tail: [why] }
        this.#ended(instance, node.name)
      }
    }
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
    return [
      `${this.#plan.name}  ${elapsed}  ${nodes}  ${done}  ${byteText(bytes)} written`,
      ...progressLines(states, this.#screen.width, this.#screen.height - 2),
    ]
  }

  async #close(): Promise<number> {
    const failed = this.#instances.filter(({ code }) => code !== 0)
    const isOk = failed.length === 0 && !this.#isCut && this.#lost.length === 0
    await this.#letGo(isOk)
    this.#screen.clear()
    const last = this.#snapshot(node => node.result?.last)
    const kept = this.#kept()
    const states = new Progress(this.#plan).look(last, Date.now())
    if (failed.length > 0 && !this.#isCut) this.#screen.print(failureText(this.#plan, this.#instances, last))
    const doubt = doubtText(last)
    if (doubt !== '') this.#screen.print(doubt)
    const unseen = unseenText(last)
    if (unseen !== '') this.#screen.print(unseen)
    const results = this.#nodes.flatMap(({ result }) => result ?? [])
    const isLeft = results.some(({ removed }) => removed === undefined)
    const dirs = results.map(({ dir }) => dir).join(', ')
    this.#screen.print(
      summaryText({
        plan: this.#plan,
        instances: this.#instances,
        states,
        kept,
        removed: isLeft ? undefined : results.reduce((sum, { removed = 0 }) => sum + removed, 0),
        elapsed: Date.now() - this.#begun,
        cut: this.#isCut,
        doubtful: doubt !== '',
        workspace: { dir: dirs, place: this.#options.place, layer: undefined, own: true, before: new Set() },
      }),
    )
    if (this.#isCut) return 130
    return isOk && this.#lost.length === 0 && kept.stuck.length === 0 && doubt === '' ? 0 : 1
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

/** Options that make no sense with several nodes. */
export function refuseDir(dir: string | undefined): void {
  if (dir === undefined) return
  throw new StreamError(
    'MR_STREAM_DIR',
    '--dir names one directory, and each node has one of its own',
    'leave out --dir; results go to --place, a folder that all nodes see',
  )
}
