import type { DemandFacts, RunEvent } from '../../../core/events.ts'
import { controlText } from '../../control-text.ts'
import { Statistics } from '../../statistics/statistics.ts'
import { Durations, KindEdges } from './kinds.ts'
import { Lanes, outcomeNumber, type SliceOutcome } from './lanes.ts'
import { ReadyIo } from './ready-io.ts'
import { Series } from './series.ts'
import { StorageHistory } from './storage.ts'
import { StreamHistory } from './streams.ts'
import { Tasks } from './tasks.ts'
import { Versions } from './versions.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** Notes kept for the page. */
const KEPT_NOTES = 100

/** What a node did over time. */
export interface NodeHistory {
  readonly name: string
  readonly cpus: number
  readonly memory: number
  /** CPUs that tasks held. */
  readonly busy: Series
  cpusNow: number
  running: number
  done: number
  busyMs: number
  claimed: number
  hasLeft: 'lost' | 'given back' | null
  /** The last measurement; null where no page was open. */
  measured: Of<'measured'> | null
}

/**
 * All that the page shows, kept event by event. Each event costs about the same, however long the run is; queries read
 * what is here and never the journal.
 */
export class RunModel {
  readonly statistics = new Statistics()
  readonly tasks = new Tasks()
  readonly versions = new Versions()
  readonly lanes = new Lanes()
  readonly storage = new StorageHistory()
  readonly edges = new KindEdges()
  readonly durations = new Map<number, Durations>()
  readonly kinds = new Map<number, Of<'kind-defined'>>()
  readonly demands = new Map<number, DemandFacts>()
  readonly nodes: NodeHistory[] = []
  readonly running = new Series()
  readonly notes: Of<'note'>[] = []
  readonly streams = new StreamHistory()
  readonly transfers = new Map<string, { from: number; to: number; count: number; bytes: number }>()
  /** The last reason that was told for a ready task, by task. */
  readonly waits = new Map<number, string>()
  /** Ready tasks that wait for storage and not for a CPU. */
  readonly readyIo = new ReadyIo()
  /** What temporary files take, where they have a bound. */
  intermediate: { bytes: number; limit: number; readonly over: Series } | null = null
  /** Someone paused the run on the page. */
  isPaused = false
  events = 0
  #cpusOf = new Map<number, number>()

  get run(): Of<'run-started'> | null {
    return this.statistics.run
  }

  observe(event: RunEvent): void {
    this.events++
    this.statistics.observe(event)
    switch (event.type) {
      case 'run-started':
        this.#begin(event)
        break
      case 'node-joined':
        this.#node(event.node, event.name, event.cpus, event.memory)
        break
      case 'node-left': {
        const left = this.nodes[event.node]
        if (left) left.hasLeft = event.isLost ? 'lost' : 'given back'
        break
      }
      case 'measured': {
        const measured = this.nodes[event.node]
        if (measured) measured.measured = event
        break
      }
      case 'kind-defined':
        this.kinds.set(event.kind, event)
        break
      case 'demand-defined':
        this.demands.set(event.demand, event)
        break
      case 'submitted':
        this.#submit(event)
        break
      case 'ready':
        this.#leave(event.task)
        this.tasks.readyAt.set(event.task, event.at)
        this.#becomeReady(event.task)
        break
      case 'started':
        this.#leave(event.task)
        if (event.attempt > 1 || event.device !== undefined || event.implementation !== undefined)
          this.tasks.tell(event)
        this.tasks.attempts.set(event.task, event.attempt)
        this.tasks.devices.set(event.task, event.device ?? -1)
        this.#cpusOf.set(event.task, event.cpus)
        this.#occupy(event.task, event.at, event.node, event.lane)
        break
      case 'resumed':
        this.tasks.tell(event)
        this.#occupy(event.task, event.at, event.node, event.lane)
        break
      case 'blocked':
        this.tasks.tell(event)
        this.#vacate(event.task, event.at, 'blocked')
        this.tasks.setState(event.task, 'blocked')
        break
      case 'finished':
        if (event.usage || event.kept) this.tasks.tell(event)
        this.#end(event.task, event.at, 'done', 'ok')
        break
      case 'failed':
        this.tasks.tell(event)
        if (event.next === 'retry') this.#again(event.task, event.at, 'failed')
        else this.#end(event.task, event.at, event.next === 'ignore' ? 'ignored' : 'failed', 'failed')
        break
      case 'cancelled':
        this.tasks.tell(event)
        this.#end(event.task, event.at, 'cancelled', 'cancelled')
        break
      case 'returned':
        this.tasks.tell(event)
        this.#again(event.task, event.at, 'returned')
        break
      case 'released': {
        const isDeclared = this.versions.makers.get(event.version) >= 0
        if (!isDeclared) this.versions.makers.set(event.version, event.task)
        this.versions.madeAt.set(event.version, event.at)
        // A file that is complete early is no value of a generator.
        if (!this.versions.paths.has(event.version)) this.streams.released(event, isDeclared)
        break
      }
      case 'stream':
        this.streams.observe(event)
        break
      case 'committed':
      case 'found':
        this.#committed(event)
        break
      case 'waits':
        this.tasks.tell(event)
        this.waits.set(event.task, event.reason)
        this.readyIo.told(this.tasks.kinds.get(event.task), event.task, event.lacks ?? 'device')
        break
      case 'device':
      case 'device-failed':
      case 'trial':
      case 'verdict':
        this.storage.observe(event)
        break
      case 'move':
        this.storage.observe(event)
        if (event.phase === 'done') this.#moved(event)
        break
      case 'run-ended':
        this.storage.end(event.at)
        this.versions.end()
        break
      case 'kept':
        this.tasks.tell(event)
        this.#leave(event.task)
        this.#close(event.task, event.at, 'done')
        break
      case 'value':
        this.#value(event)
        break
      case 'removed':
        this.#removed(event.version)
        break
      case 'intermediate': {
        this.intermediate ??= { bytes: 0, limit: event.limit, over: new Series() }
        this.intermediate.bytes = event.bytes
        this.intermediate.over.set(event.at, event.bytes)
        break
      }
      case 'arguments':
        this.tasks.calledWith(event.task, event.text)
        break
      case 'control':
        if (event.action === 'pause') this.isPaused = true
        else if (event.action === 'go-on' || event.action === 'stop') this.isPaused = false
        if (event.action === 'priority' && event.count === undefined && event.task !== undefined)
          this.tasks.priorities.set(event.task, event.priority ?? 0)
        this.#note({ type: 'note', at: event.at, level: 'info', text: controlText(event) })
        break
      case 'note':
        this.#note(event)
        break
      default:
    }
  }

  /** CPUs that each node has given so far, in milliseconds: to tasks that have ended, and to those that run. */
  busyMs(now: number): number[] {
    const sums = this.nodes.map(node => node.busyMs)
    for (const { task, node, since, isBlocked } of this.statistics.slowest(1000))
      if (!isBlocked)
        sums[node] = (sums[node] ?? 0) + Math.max(0, now - since) * (this.#cpusOf.get(task) ?? 1)
    return sums
  }

  #note(event: Of<'note'>): void {
    if (this.notes.length === KEPT_NOTES) this.notes.shift()
    this.notes.push(event)
  }

  kindName(kind: number): string {
    return this.kinds.get(kind)?.name ?? `kind ${kind}`
  }

  taskName(task: number): string {
    return this.tasks.has(task) ? `${this.kindName(this.tasks.kinds.get(task))}#${task}` : `task#${task}`
  }

  #begin(event: Of<'run-started'>): void {
    this.storage.start(event.devices ?? [])
    event.nodes.forEach(({ name, cpus, memory }, node) => this.#node(node, name, cpus, memory))
  }

  #node(node: number, name: string, cpus: number, memory: number): void {
    const counts = { cpusNow: 0, running: 0, done: 0, busyMs: 0, claimed: 0 }
    this.nodes[node] ??= { name, cpus, memory, busy: new Series(), hasLeft: null, measured: null, ...counts }
    for (let lane = 0; lane < cpus; lane++) this.lanes.of(node, lane, cpus)
  }

  #submit(event: Of<'submitted'>): void {
    const { task, kind } = event
    this.tasks.submit(event)
    for (const version of event.writes)
      if (this.versions.makers.get(version) < 0) this.versions.makers.set(version, task)
    for (const version of event.reads) {
      this.versions.read(version, task)
      const maker = this.versions.makers.get(version)
      if (maker >= 0) this.edges.add(this.tasks.kinds.get(maker), kind)
    }
    for (const { version, path } of event.files ?? []) this.versions.name(version, path)
  }

  #becomeReady(task: number): void {
    this.tasks.setState(task, 'ready')
    this.readyIo.add(this.tasks.kinds.get(task), this.#isIo(task))
  }

  /** It is no longer ready. */
  #leave(task: number): void {
    if (this.tasks.stateOf(task) === 'ready') this.readyIo.remove(this.tasks.kinds.get(task), task)
    this.waits.delete(task)
  }

  #isIo(task: number): boolean {
    const demand = this.demands.get(this.tasks.demands.get(task))
    return demand !== undefined && (demand.io || demand.storage !== null)
  }

  #occupy(task: number, at: number, node: number, lane: number): void {
    const { tasks } = this
    tasks.setState(task, 'running')
    tasks.startedAt.set(task, at)
    tasks.nodes.set(task, node)
    tasks.lanes.set(task, lane)
    this.running.set(at, this.statistics.total.running)
    const history = this.nodes[node]
    if (!history) return
    this.lanes.of(node, lane, history.cpus)
    history.running++
    history.cpusNow += this.#cpusOf.get(task) ?? 1
    history.claimed += this.demands.get(tasks.demands.get(task))?.memory ?? 0
    history.busy.set(at, history.cpusNow)
    if (tasks.attempts.get(task) <= 1) this.#transfer(task, node)
  }

  /** Inputs that another node made are transferred. */
  #transfer(task: number, node: number): void {
    if (this.nodes.length < 2) return
    for (const version of this.tasks.readsOf(task)) {
      const from = this.tasks.nodes.get(this.versions.makers.get(version))
      if (from < 0 || from === node) continue
      const key = `${from}>${node}`
      const sum = this.transfers.get(key) ?? { from, to: node, count: 0, bytes: 0 }
      sum.count++
      sum.bytes += this.versions.bytes.get(version)
      this.transfers.set(key, sum)
    }
  }

  #vacate(task: number, at: number, outcome: SliceOutcome): number {
    const { tasks } = this
    if (tasks.stateOf(task) !== 'running') return 0
    const start = tasks.startedAt.get(task)
    const node = tasks.nodes.get(task)
    const end = Math.max(at, start)
    this.running.set(at, this.statistics.total.running)
    const history = this.nodes[node]
    const cpus = this.#cpusOf.get(task) ?? 1
    this.lanes
      .of(node, tasks.lanes.get(task), history?.cpus ?? 0)
      .push(start, end, task, tasks.kinds.get(task), outcomeNumber(outcome))
    if (!history) return end - start
    history.running--
    history.cpusNow -= cpus
    history.busyMs += (end - start) * cpus
    history.claimed -= this.demands.get(tasks.demands.get(task))?.memory ?? 0
    history.busy.set(at, history.cpusNow)
    return end - start
  }

  #end(
    task: number,
    at: number,
    state: 'done' | 'failed' | 'ignored' | 'cancelled',
    slice: SliceOutcome,
  ): void {
    this.#leave(task)
    const ran = this.#vacate(task, at, slice)
    const { tasks } = this
    if (state === 'done') {
      this.#durationsOf(tasks.kinds.get(task)).add(ran)
      const history = this.nodes[tasks.nodes.get(task)]
      if (history) history.done++
      this.#readFrom(task, at, ran)
    }
    this.#cpusOf.delete(task)
    this.#close(task, at, state)
  }

  /** Its inputs have a reader less, and its outputs are there. */
  #close(task: number, at: number, state: 'done' | 'failed' | 'ignored' | 'cancelled'): void {
    const { tasks } = this
    tasks.setState(task, state)
    tasks.endedAt.set(task, at)
    for (const version of tasks.readsOf(task)) this.versions.openReaders.add(version, -1)
    for (const version of tasks.writesOf(task))
      if (Number.isNaN(this.versions.madeAt.get(version)) && state === 'done')
        this.versions.madeAt.set(version, at)
  }

  #again(task: number, at: number, slice: SliceOutcome): void {
    this.#vacate(task, at, slice)
    this.tasks.readyAt.set(task, at)
    this.#becomeReady(task)
  }

  #durationsOf(kind: number): Durations {
    let durations = this.durations.get(kind)
    if (!durations) this.durations.set(kind, (durations = new Durations()))
    return durations
  }

  #committed({ version, at, bytes }: Of<'committed' | 'found'>): void {
    this.versions.made(version, at, bytes)
    const maker = this.versions.makers.get(version)
    const device = maker < 0 ? -1 : this.tasks.devices.get(maker)
    if (device < 0 || bytes <= 0) return
    this.versions.devices.set(version, device)
    const history = this.storage.devices[device]
    history?.hold(this.versions.paths.get(version) ?? '', bytes, 1)
    history?.written.spread(this.tasks.startedAt.get(maker), at, bytes)
  }

  #value({ version, at, bytes, stays }: Of<'value'>): void {
    const { versions, tasks } = this
    const maker = versions.makers.get(version)
    versions.value(version, at, bytes, stays && maker >= 0 ? tasks.nodes.get(maker) : -1)
  }

  /** Inputs with a known place count as read from there while the task ran. */
  #readFrom(task: number, at: number, ran: number): void {
    if (this.storage.devices.length === 0) return
    for (const version of this.tasks.readsOf(task)) {
      const bytes = this.versions.bytes.get(version)
      const device = this.versions.devices.get(version)
      if (bytes > 0 && device >= 0) this.storage.devices[device]?.readIn.spread(at - ran, at, bytes)
    }
  }

  /** The file is gone from wherever it lay. */
  #removed(version: number): void {
    const device = this.versions.devices.get(version)
    const bytes = this.versions.bytes.get(version)
    if (device >= 0) this.storage.devices[device]?.hold(this.versions.paths.get(version) ?? '', bytes, -1)
    this.versions.remove(version)
  }

  #moved({ version, from, to, bytes }: Of<'move'>): void {
    const path = this.versions.paths.get(version) ?? ''
    if (this.versions.devices.get(version) === from) this.storage.devices[from]?.hold(path, bytes, -1)
    this.storage.devices[to]?.hold(path, bytes, 1)
    this.versions.devices.set(version, to)
  }
}
