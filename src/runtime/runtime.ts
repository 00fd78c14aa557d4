import { ONE_CPU } from '../model/granted.ts'
import type { Granted } from '../model/granted.ts'
import { existsSync } from 'node:fs'
import { AsyncLocalStorage } from 'node:async_hooks'
// The global one is looked up anew each time.
import { performance } from 'node:perf_hooks'
import { Datum } from '../core/data/datum.ts'
import type { Version } from '../core/data/datum.ts'
import { Engine } from '../core/engine.ts'
import { MillraceError } from '../core/errors.ts'
import type { Group } from '../core/tasks/group.ts'
import type { Task } from '../core/tasks/task.ts'
import type { ClosedBy } from '../core/why.ts'
import { TaskModules } from '../node/threads/modules.ts'
import { clockOrigin } from '../node/threads/protocol.ts'
import type { Call } from '../model/capture/call.ts'
import type { Client } from '../model/client.ts'
import type { Definition } from '../model/definition.ts'
import { retriesOf, wishesOf } from '../model/options/demand.ts'
import { Future } from '../model/future.ts'
import type { Paths } from '../model/capture/paths.ts'
import type { Kept } from '../model/encoding/stored.ts'
import { Stream } from '../model/value-stream.ts'
import { Tracker } from '../model/capture/tracker.ts'
import { resolveInside } from '../model/capture/wait.ts'
import { bytesIn } from '../storage/location.ts'
import type { ArgumentNotes } from './argument-notes.ts'
import { Channels } from './channels.ts'
import { taskError } from './failure.ts'
import { Job, jobOf } from '../node/job.ts'
import { Groups } from './groups.ts'
import type { Keeper } from './resume/keeper.ts'
import { Kinds } from './kinds.ts'
import { LargeValues } from './large-values.ts'
import { Lineage } from './lineage.ts'
import { Loop } from './loop.ts'
import { createSession } from './session.ts'
import { Temporaries } from './temporaries.ts'
import type { Session } from './session.ts'
import { Nested } from './nested.ts'
import { FileSink } from './node-sink.ts'
import { RunNodes } from './run-nodes.ts'
import { Releases } from './releases.ts'
import { commitDirectories, commitStreams, makeRequests, makeResults } from './requests.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { RunHost } from './run-host.ts'
import { ProgramFiles } from './program-files.ts'
import { Values } from './values.ts'
import { Waits } from './waits.ts'
import { NodeFiles } from '../node/files/node-files.ts'
import { Watchdog } from '../node/processes/watchdog.ts'
import { BufferOwnership, copyOut } from '../node/threads/buffer-ownership.ts'

/** Calls of a program are looked at in bunches of this many while it does not pause; earlier where all CPUs wait for the first. */
const BUNCH = 512
const FIRST_BUNCHES = [64, 128, 256]

/** Binds the core to threads, processes, files and a real clock, and is the main program's client. */
export class Runtime implements Client {
  readonly engine: Engine
  readonly modules = new TaskModules()
  readonly main: Session
  /** The folder of what tasks print. */
  readonly logs: string | null
  readonly #origin = performance.now()
  readonly #tracker: Tracker
  readonly #kinds: Kinds
  readonly nodes: RunNodes
  /** Some tasks run on other machines, which may be lost. */
  readonly hasAgents: boolean
  /** Programs are on machines that share no memory with this one: directories that they stream are read when they are complete. */
  directoriesOnCommit = false
  /** A node cannot let programs read files as they grow. */
  streamsOnCommit = false
  readonly files: NodeFiles
  readonly nested: Nested
  readonly releases: Releases
  readonly groups = new Groups(this)
  readonly values = new Values(this)
  readonly #programFiles = new ProgramFiles(this)
  readonly #buffers = new BufferOwnership()
  readonly lineage = new Lineage(this, this.#buffers)
  readonly largeValues = new LargeValues(this)
  readonly #watchdog: Watchdog
  readonly #waits: Waits
  readonly #loop: Loop
  readonly channels: Channels
  readonly temporaries = new Temporaries(this)
  /** Null where no results are kept. */
  keeper: Keeper | null = null
  /** Null where no observer wants to know what tasks are called with. */
  argumentNotes: ArgumentNotes | null = null
  readonly #group = new AsyncLocalStorage<Group>()
  #usesGroups = false
  #calls = 0
  #ended = false

  constructor(options: RuntimeOptions) {
    const { policy, observer } = options
    const nodes = options.nodes.map(({ description }) => description)
    const { mayGrow } = options
    this.engine = new Engine({ nodes, policy, observer, sizeOf: bytesIn, mayGrow, ...options.io })
    this.main = createSession(null, this.engine.root)
    this.logs = options.logs
    this.#kinds = new Kinds(this.engine, () => this.now())
    this.#tracker = new Tracker(
      this.modules,
      (datum, value) => this.engine.write(datum, value, this.now()),
      (datum, seen) => this.values.afterCancel(datum, seen),
    )
    this.channels = new Channels(this)
    this.nested = new Nested(this)
    this.releases = new Releases(this)
    this.#waits = new Waits(
      this.engine,
      () => this.schedule(),
      version => this.#hurry(version),
    )
    this.#watchdog = new Watchdog(options.id)
    const { id: run, logs, bind, stepTimes } = options
    const host = new RunHost(this)
    const watchdog = this.#watchdog
    this.files = new NodeFiles({
      run,
      engine: this.engine,
      watchdog,
      host,
      events: new FileSink(this),
      abort: task => this.nodes.of(task).abort(task),
    })
    const { files, modules } = this
    this.hasAgents = options.mayGrow || options.nodes.some(({ ports }) => ports !== null)
    const buffers = this.#buffers
    this.nodes = new RunNodes(this, { run, logs, bind, stepTimes, host, files, watchdog, buffers, modules })
    this.nodes.begin(options)
    const { engine, nested, channels } = this
    this.#loop = new Loop({
      engine,
      nodes: this.nodes,
      files,
      largeValues: this.largeValues,
      nested,
      channels,
      watchdog,
      waits: this.#waits,
      now: () => this.now(),
      keeper: () => this.keeper,
    })
  }

  note(level: 'info' | 'warning', text: string): void {
    this.engine.observer?.({ type: 'note', at: this.now(), level, text })
  }

  /** Whether the machines are measured, until the run ends. */
  measure(isWanted: boolean): void {
    this.nodes.measure(isWanted && !this.#ended)
  }

  /** The folder is removed also if this process is killed. */
  cleanUpLater(folder: string): void {
    this.#watchdog.folder(folder)
  }

  /** Milliseconds since the run began, in whole microseconds: that is as exact as it is, and journals are smaller. */
  now(): number {
    return microseconds(performance.now() - this.#origin)
  }

  /** The same for a moment on the clock of `performance.now`. */
  timeOf(moment: number): number {
    return microseconds(moment - this.#origin)
  }

  /** When the run began, on the clock that all threads share. */
  get startedAt(): number {
    return clockOrigin() + this.#origin
  }

  get paths(): Paths {
    return this.#tracker.paths
  }

  // --- what programs call ---

  call(definition: Definition, args: readonly unknown[]): unknown {
    if (this.#ended)
      throw new MillraceError('MR_ENDED', `task ${definition.name} was called after the run had ended`)
    const call = this.#tracker.call(definition, args)
    const results = makeResults(definition)
    const group = (this.#usesGroups ? this.#group.getStore() : undefined) ?? this.main.group
    try {
      this.submit(call, results, this.main, group)
    } catch (error) {
      this.#tracker.takeBack(call)
      throw error
    }
    if (++this.#calls % BUNCH === 0 || (this.#calls < BUNCH && FIRST_BUNCHES.includes(this.#calls))) {
      for (const node of this.nodes.all) node.drain()
      this.decide()
    } else this.schedule()
    if (definition.stream) return new Stream(results[0] as Datum)
    if (definition.returns > 0) return results.map(datum => new Future(datum))
    return new Future(results[0] as Datum)
  }

  submit(
    call: Call,
    results: readonly Datum[],
    caller: Session,
    group: Group,
    wishes = wishesOf(call.definition, call.given),
  ): Task {
    const { demand, priority, label, near = -1 } = wishes
    const { definition, args, slots } = call
    const job = new Job(definition, args, slots, caller)
    if (this.keeper) this.keeper.called(job, call, caller.task)
    for (const { datum } of slots) {
      if (datum.current.state === 'cancelled' || datum.current.team?.failed) this.values.afterCancel(datum)
    }
    if (this.streamsOnCommit) commitStreams(slots)
    else if (this.directoriesOnCommit) commitDirectories(slots)
    const accesses = makeRequests(slots, results)
    const streams = slots.some(({ stream }) => stream)
    if (demand.io || demand.storage) this.files.devices.locate(slots)
    if (definition.options.temporary) this.temporaries.mark(slots, caller.task)
    // A stream can be read from its first value on; its end is a datum of its own.
    if (definition.stream) accesses.push({ datum: new Datum(null, false, false), mode: 'out' })
    const task = this.engine.submit(
      {
        kind: this.#kinds.of(definition),
        group,
        parent: caller.task,
        priority,
        demand,
        onFailure: definition.options.onFailure ?? 'fail',
        retries: retriesOf(definition),
        timed: definition.timeout > 0,
        queues: !call.alone && !streams,
        label,
        near,
        payload: job,
      },
      accesses,
      this.now(),
    )
    this.argumentNotes?.called(task.id, call.given, this.now())
    // It needs no CPU: it could begin as soon as that is known.
    if (demand.io) for (const { read } of task.accesses) if (read) this.#hurry(read)
    if (this.channels.any || definition.stream) this.#withStreams(task, call)
    return task
  }

  #withStreams(task: Task, { definition, slots }: Call): void {
    const [stream, end] = task.accesses.slice(slots.length)
    if (definition.stream) {
      this.channels.open(task, stream?.write as Version, end?.write as Version, definition.stream)
    }
    this.channels.submitted(task, slots)
  }

  iterate({ datum }: Stream<unknown>): AsyncIterator<Future<unknown>, undefined, void> {
    return this.channels.iterate(datum)
  }

  ready(index: number): void {
    throw new MillraceError('MR_RELEASE', `ready(${index}, …) was called outside a task`)
  }

  granted(): Granted {
    return ONE_CPU
  }

  committed(path: string): Promise<void> {
    return Promise.reject(new MillraceError('MR_RELEASE', `committed('${path}') was called outside a task`))
  }

  waitOn(value: unknown): Promise<unknown> {
    return resolveInside(value, this.#tracker, this.values.fetch)
  }

  waitOnFile(path: string, toWrite = false): Promise<string> {
    return this.#programFiles.wait(path, toWrite)
  }

  async barrier(): Promise<void> {
    const group = (this.#usesGroups ? this.#group.getStore() : undefined) ?? this.main.group
    await this.idle(group)
    const [failed] = this.main.unhandled
    if (failed) throw this.handle(failed)
    await this.groups.allRan(group)
    await this.lineage.bringResults()
    this.files.store.tidy()
  }

  async snapshot(): Promise<void> {
    await this.keeper?.checkpoint()
  }

  async group<T>(name: string, body: () => T | Promise<T>, isCheckpoint = false): Promise<T> {
    this.#usesGroups = true
    const parent = this.#group.getStore() ?? this.main.group
    const group = this.groups.open(this.main, name, parent)
    if (isCheckpoint) this.keeper?.markGroup(group)
    try {
      const result = await this.#group.run(group, async () => body())
      await this.groups.close(this.main, group)
      if (isCheckpoint) await this.snapshot()
      return result
    } catch (error) {
      await this.groups.abandon(this.main, group, error instanceof MillraceError)
      throw error
    }
  }

  cancel(name: string): Promise<void> {
    return this.groups.cancel(this.main, name)
  }

  remove(value: unknown): void {
    if (value instanceof Stream) return this.channels.remove(value.datum)
    const datum = this.#tracker.datumOf(value)
    if (!datum || datum.removed) return
    // The tracker keeps the object, to refuse further uses.
    this.engine.remove(datum, this.now())
    this.schedule()
  }

  removeFile(path: string): Promise<void> {
    return this.#programFiles.remove(path)
  }

  // --- what programs and running tasks have in common ---

  /** A copy of a value for the program, or for a task that called the one that made it. */
  copyOut(version: Version): Kept | Promise<Kept> {
    const kept = copyOut(version, this.#buffers)
    const arrived = kept instanceof Promise ? this.lineage.arrived(version, kept) : kept
    return this.lineage.filesBeside(version)?.then(() => arrived) ?? arrived
  }

  settled(version: Version): Promise<void> {
    return this.#waits.settled(version)
  }

  #hurry({ producer }: Version): void {
    if (producer?.state === 'running') this.nodes.of(producer).hurry(producer)
  }

  onSettled(version: Version, go: () => void): void {
    this.#waits.onSettled(version, go)
  }

  unread(version: Version): Promise<void> {
    void this.lineage.free(version)
    return this.#waits.unread(version)
  }

  whenSettled(version: Version, go: () => void): void {
    this.#waits.onSettledAside(version, go)
  }

  whenUnread(version: Version, go: () => void): void {
    this.#waits.onUnreadAside(version, go)
  }

  idle(group: Group): Promise<void> {
    return this.#waits.idle(group)
  }

  /** The program sees this failure now; what it calls from now on runs again. */
  handle(task: Task): MillraceError {
    jobOf(task).caller.unhandled.delete(task)
    for (let group: Group | null = task.group; group; group = group.parent) {
      if (group.failure === task) this.engine.acknowledge(group)
    }
    return taskError(task)
  }

  // --- the loop ---

  schedule(): void {
    this.#loop.schedule()
  }

  decide(): void {
    this.#loop.decide()
  }

  get isAtRest(): boolean {
    return this.#loop.isAtRest
  }

  get isAwaited(): boolean {
    return this.#loop.isAwaited
  }

  /** The program calls nothing any more, and takes no values of streams. */
  programEnded(): void {
    this.#loop.programEnded()
    this.temporaries.programEnded()
    this.channels.programEnded()
  }

  /** Nothing more starts; what has not started is cancelled. */
  close(by: ClosedBy): void {
    this.engine.close(by, this.now())
    this.schedule()
  }

  /** Returns a sentence for each result that is not where it belongs. */
  async end(): Promise<string[]> {
    this.#ended = true
    const sentences: string[] = []
    await this.lineage.bringResults().catch((error: unknown) => {
      sentences.push(error instanceof Error ? error.message : String(error))
    })
    await this.lineage.end()
    for (const { version, path, error } of await this.#endNodes()) {
      const why = error instanceof Error ? error.message : String(error)
      const text = existsSync(path)
        ? `${version.datum.path} could not be written (${why}): it is kept as ${path}`
        : `${version.datum.path} could not be written: it was kept as ${path}, which is gone; when its device is back, the next run brings it home`
      sentences.push(text)
      this.engine.observer?.({ type: 'note', at: this.now(), level: 'warning', text })
    }
    return sentences
  }

  async #endNodes(): ReturnType<NodeFiles['end']> {
    this.measure(false)
    this.#loop.end()
    await Promise.all(this.nodes.all.map(node => node.end()))
    const stranded = await this.files.end(this.paths.all())
    this.#watchdog.end()
    return stranded
  }

  /** For the end of the process, where nothing can be waited for. */
  endNow(): void {
    for (const node of this.nodes.all) node.endNow()
    this.files.endNow()
    // Threads run to the very end and may still write, and children of commands may have left their group.
    this.#watchdog.release()
  }
}

const microseconds = (milliseconds: number): number => Math.round(milliseconds * 1000) / 1000
