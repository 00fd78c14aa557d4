import { existsSync } from 'node:fs'
import { AsyncLocalStorage } from 'node:async_hooks'
// The global one is looked up anew each time.
import { performance } from 'node:perf_hooks'
import { resolve } from 'node:path'
import { Datum, nearestValid } from '../core/data.ts'
import type { Version } from '../core/data.ts'
import { Engine } from '../core/engine.ts'
import type { AccessRequest, Instruction } from '../core/engine.ts'
import { MillraceError } from '../core/errors.ts'
import { openAlready } from '../core/group.ts'
import type { IoOptions } from '../core/io/io-core.ts'
import type { Observer } from '../core/events.ts'
import type { NodeDescription } from '../core/machine.ts'
import type { Policy } from '../core/policy.ts'
import type { Group } from '../core/group.ts'
import type { Task } from '../core/task.ts'
import { nearest } from '../general/nearest.ts'
import { TaskModules } from '../execute/modules.ts'
import { clockOrigin } from '../execute/protocol.ts'
import type { Call, Slot } from '../model/call.ts'
import type { Client } from '../model/client.ts'
import { Decoder } from '../model/decode.ts'
import type { Definition } from '../model/definition.ts'
import { buildDemand, priorityOf, retriesOf } from '../model/demand.ts'
import { Future } from '../model/future.ts'
import { Paths } from '../model/paths.ts'
import { NOTHING, Stored } from '../model/stored.ts'
import type { Kept } from '../model/stored.ts'
import { Stream } from '../model/value-stream.ts'
import { Tracker } from '../model/tracker.ts'
import { resolveInside } from '../model/wait.ts'
import type { Fetch } from '../model/wait.ts'
import { bytesIn } from '../storage/file-copy.ts'
import { Channels } from './channels.ts'
import { Executor } from './executor.ts'
import { cancelledError, taskError, versionError } from './failure.ts'
import { Job, jobOf } from './job.ts'
import { Kinds } from './kinds.ts'
import { createSession } from './session.ts'
import { Streaming } from './streaming.ts'
import type { Session } from './session.ts'
import { Nested } from './nested.ts'

export interface RuntimeOptions {
  /** Unique on this machine. */
  id: string
  node: NodeDescription
  policy: Policy
  io: IoOptions
  logs: string | null
  /** Bind commands to the CPUs of their lanes. */
  bind: boolean
  observer: Observer | null
  /** The program's own module. */
  entry: string | null
}

/** Calls of a program are looked at in bunches of this many while it does not pause; earlier where all CPUs wait for the first. */
const BUNCH = 512
const FIRST_BUNCHES = [64, 128, 256]

const RESOLVED = Promise.resolve()

/**
 * Where nothing runs any more, waiting takes no time. A program that handles what it is told and tries again would leave
 * no moment in which a signal is seen.
 */
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

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
  readonly #executor: Executor
  readonly channels: Channels
  readonly #settled = new Map<Version, (() => void)[]>()
  readonly #unread = new Map<Version, (() => void)[]>()
  /** The same for streams, which follow their values without holding anybody up. */
  readonly #settledAside = new Map<Version, (() => void)[]>()
  readonly #unreadAside = new Map<Version, (() => void)[]>()
  readonly #idle = new Map<Group, (() => void)[]>()
  readonly #group = new AsyncLocalStorage<Group>()
  #usesGroups = false
  #calls = 0
  #scheduled = false
  #deciding = false
  #ended = false

  constructor(options: RuntimeOptions) {
    const { node, policy, observer } = options
    this.engine = new Engine({ nodes: [node], policy, observer, sizeOf: bytesIn, ...options.io })
    this.main = createSession(null, this.engine.root)
    this.logs = options.logs
    this.#kinds = new Kinds(this.engine, () => this.now())
    this.#tracker = new Tracker(this.modules, (datum, value) => this.engine.write(datum, value, this.now()))
    this.channels = new Channels(this)
    this.#executor = new Executor(this, options, new Nested(this))
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

  get executor(): Executor {
    return this.#executor
  }

  // --- what programs call ---

  call(definition: Definition, args: readonly unknown[]): unknown {
    if (this.#ended)
      throw new MillraceError('MR_ENDED', `task ${definition.name} was called after the run had ended`)
    const call = this.#tracker.call(definition, args)
    const results = makeResults(definition)
    const group = (this.#usesGroups ? this.#group.getStore() : undefined) ?? this.main.group
    this.submit(call, results, this.main, group)
    if (++this.#calls % BUNCH === 0 || (this.#calls < BUNCH && FIRST_BUNCHES.includes(this.#calls))) {
      this.#executor.drain()
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
    demand = buildDemand(call.definition, call.definition.variants[0]?.options ?? {}, call.given),
    priority = priorityOf(call.definition, call.given),
  ): Task {
    const { definition, args, slots } = call
    const accesses = makeRequests(slots, results)
    const streams = slots.some(({ stream }) => stream)
    if (demand.io || demand.storage) this.#executor.devices.locate(slots)
    if (definition.options.temporary) markTemporary(slots)
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
        queues: definition.form === 'command' && !call.alone && !streams,
        payload: new Job(definition, args, slots, caller),
      },
      accesses,
      this.now(),
    )
    if (streams) Streaming.mark(task)
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

  committed(path: string): Promise<void> {
    return Promise.reject(new MillraceError('MR_RELEASE', `committed('${path}') was called outside a task`))
  }

  waitOn(value: unknown): Promise<unknown> {
    return resolveInside(value, this.#tracker, this.#fetch)
  }

  async waitOnFile(path: string, toWrite = false): Promise<string> {
    const absolute = Paths.absolute(path)
    const datum = this.paths.find(absolute) ?? this.paths.directoryAbove(absolute)
    if (datum) {
      const version = this.engine.read(datum, this.now())
      await this.settled(version)
      if (version.state !== 'ready') await this.#throwFor(version)
      await this.#executor.taskFiles.publish(version)
      if (toWrite) await this.#gone(version)
    }
    return resolve(path)
  }

  async barrier(): Promise<void> {
    const group = (this.#usesGroups ? this.#group.getStore() : undefined) ?? this.main.group
    await this.idle(group)
    const [failed] = this.main.unhandled
    if (failed) throw this.handle(failed)
    await this.allRan(group)
  }

  async group<T>(name: string, body: () => T | Promise<T>): Promise<T> {
    this.#usesGroups = true
    const parent = this.#group.getStore() ?? this.main.group
    const group = this.openGroup(this.main, name, parent)
    try {
      const result = await this.#group.run(group, async () => body())
      await this.closeGroup(this.main, group)
      return result
    } catch (error) {
      await this.abandonGroup(this.main, group, error instanceof MillraceError)
      throw error
    }
  }

  cancel(name: string): Promise<void> {
    return this.cancelGroup(this.main, name)
  }

  remove(value: unknown): void {
    if (value instanceof Stream) return this.channels.remove(value.datum)
    const datum = value instanceof Future ? value.datum : this.#tracker.find(value as object)?.datum
    if (!datum || datum.removed) return
    // The tracker keeps the object, to tell those who use it once more.
    this.engine.remove(datum, this.now())
    this.schedule()
  }

  async removeFile(path: string): Promise<void> {
    // Of a link, the link goes, and not what it leads to.
    const absolute = Paths.entry(path)
    const datum = this.paths.find(absolute)
    const version = datum && this.engine.read(datum, this.now())
    // From here on the path means another file.
    if (datum) this.engine.remove(datum, this.now())
    this.schedule()
    const gone = version ? this.#gone(version) : Promise.resolve()
    await this.#executor.files.remove(absolute, version, gone)
    if (version) await this.#executor.deletions.done(version)
    const next = this.paths.find(absolute)
    if (next) await this.#executor.taskFiles.publishLatest(next)
  }

  /** Nobody reads the version, or what is at its path, any more. */
  async #gone(version: Version): Promise<void> {
    await this.settled(version)
    await this.unread(version)
    const { files } = this.#executor
    for (let at = files.readAt(version.datum); at; at = files.readAt(version.datum)) await this.unread(at)
  }

  // --- what programs and running tasks have in common ---

  openGroup(session: Session, name: string, parent: Group): Group {
    if (session.groups.has(name)) throw openAlready(name)
    const group = this.engine.createGroup(name, parent)
    session.groups.set(name, group)
    return group
  }

  /** The barrier of a group: throws its failure. */
  async closeGroup(session: Session, group: Group): Promise<void> {
    await this.idle(group)
    session.groups.delete(group.name)
    this.engine.closeGroup(group)
    if (group.failure) throw this.handle(group.failure)
    await this.allRan(group)
  }

  /** Throws if the run was closed and tasks never ran because of that: nobody is to go on as if they had. */
  async allRan({ missing }: Group): Promise<void> {
    if (!missing) return
    await turn()
    throw cancelledError(missing)
  }

  /** The body of a group failed: what is left of it is cancelled. `isTold`: with an error of ours, perhaps that of the group. */
  async abandonGroup(session: Session, group: Group, isTold: boolean): Promise<void> {
    if (group.live > 0) {
      this.engine.cancel(group, `group ${group.name} failed`, this.now())
      this.schedule()
      await this.idle(group)
    }
    session.groups.delete(group.name)
    this.engine.closeGroup(group)
    if (group.failure && isTold) this.handle(group.failure)
  }

  async cancelGroup(session: Session, name: string): Promise<void> {
    const group = session.groups.get(name)
    if (!group) {
      const close = nearest(name, session.groups.keys())
      throw new MillraceError(
        'MR_GROUP',
        `no group is called '${name}'${close ? `; did you mean '${close}'?` : ''}`,
        {
          hint: 'A group can be cancelled from its call until its barrier.',
        },
      )
    }
    this.engine.cancel(group, `group ${name} was cancelled`, this.now())
    this.schedule()
    await this.idle(group)
  }

  /** The value of a datum as a task that called others may have it. */
  fetchKept(datum: Datum): Promise<Kept> {
    return new Promise(resolve => this.#takeOut(datum, null, resolve))
  }

  readonly #fetch: Fetch = (datum, seen, take, fail) => {
    this.#takeOut(datum, seen, kept => {
      if (kept instanceof Promise || kept instanceof Stored) {
        void Promise.resolve(kept)
          .then(it => take(this.#valueOf(it, datum)))
          .catch(fail)
      } else take(this.#valueOf(kept, datum))
    })
  }

  #valueOf(kept: Kept, datum: Datum): unknown {
    if (!(kept instanceof Stored)) return kept === NOTHING ? undefined : kept
    return datum.inPlace ? undefined : this.decode(kept, [])
  }

  #takeOut(datum: Datum, seen: Version | null, take: (kept: Kept | Promise<Kept>) => void): void {
    if (datum.removed) return take(Promise.reject(new MillraceError('MR_REMOVED', 'the value was removed')))
    const version = this.engine.read(datum, this.now())
    // Taken at the very moment: a task that writes the next version may be given the memory right after.
    const go = (): void => {
      const isKept = version.state === 'ready' && !datum.inPlace
      take(isKept ? this.#executor.takeOut(version) : this.#nothingOf(version, seen))
    }
    if (version.settled) go()
    else this.#when(this.#settled, version, () => this.#watch(version), go)
  }

  async #nothingOf(version: Version, seen: Version | null): Promise<Kept> {
    // The program may fall back to what was before, which is not to happen amidst instructions.
    await RESOLVED
    if (version.state !== 'ready') await this.#throwFor(version, seen)
    // The memory itself is the value; a later version of it may have taken over meanwhile.
    await this.unread(version)
    return NOTHING
  }

  decode(stored: Stored, slots: unknown[]): unknown {
    const decoder = new Decoder(stored.bytes, {
      findClass: (module, name) => this.modules.findClass(module, name),
      slot: index => slots[index],
    })
    decoder.beside(stored.blobs)
    return decoder.value()
  }

  settled(version: Version): Promise<void> {
    if (version.settled) return Promise.resolve()
    return this.#wait(this.#settled, version, () => this.#watch(version))
  }

  #watch(version: Version): void {
    this.engine.watch(version)
    this.#hurry(version)
  }

  #hurry({ producer }: Version): void {
    if (producer?.state === 'running') this.#executor.hurry(producer)
  }

  unread(version: Version): Promise<void> {
    if (version.readers === 0) return Promise.resolve()
    return this.#wait(this.#unread, version, () => this.engine.watchReaders(version))
  }

  whenSettled(version: Version, go: () => void): void {
    if (version.settled) go()
    else this.#when(this.#settledAside, version, () => this.#watch(version), go)
  }

  whenUnread(version: Version, go: () => void): void {
    if (version.readers === 0) go()
    else this.#when(this.#unreadAside, version, () => this.engine.watchReaders(version), go)
  }

  idle(group: Group): Promise<void> {
    if (group.live === 0) return Promise.resolve()
    return this.#wait(this.#idle, group, () => this.engine.watchGroup(group))
  }

  /** The program is told of this failure now: what it calls from now on runs again. */
  handle(task: Task): MillraceError {
    jobOf(task).caller.unhandled.delete(task)
    for (let group: Group | null = task.group; group; group = group.parent) {
      if (group.failure === task) this.engine.acknowledge(group)
    }
    return taskError(task)
  }

  // --- the loop ---

  schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    // Half the price of queueMicrotask, which makes a resource for async_hooks each time.
    void RESOLVED.then(this.#decideNow)
  }

  readonly #decideNow = (): void => {
    this.#scheduled = false
    this.decide()
  }

  /** Carries out what the core decides until there is nothing more to do at once. */
  decide(): void {
    if (this.#deciding) return
    this.#deciding = true
    try {
      for (;;) {
        const instructions = this.engine.decide(this.now())
        if (instructions.length === 0) break
        for (const instruction of instructions) this.#carryOut(instruction)
      }
    } finally {
      this.#deciding = false
    }
    this.#executor.sendNext()
    // A program that only has a generator which is held, and takes no value, is at its end.
    const isHeld = this.channels.any && this.channels.look() && !this.isAwaited
    this.#executor.keepAlive(this.engine.root.live > 0 && !isHeld)
  }

  /** No task runs or could start: the program, or a value that is taken, has to come first. */
  get isAtRest(): boolean {
    return this.engine.readyCount === 0 && this.#executor.isAtRest
  }

  /** Someone waits for a task. */
  get isAwaited(): boolean {
    const waits = this.#settled.size + this.#unread.size + this.#idle.size
    return waits > 0 || this.channels.isAwaited
  }

  /** The program takes no values of streams any more. */
  programEnded(): void {
    this.channels.programEnded()
  }

  /** Nothing more starts; what has not started is cancelled. */
  close(reason: string): void {
    this.engine.close(reason, this.now())
    this.schedule()
  }

  /** Returns a sentence for each result that is not where it belongs. */
  async end(): Promise<string[]> {
    this.#ended = true
    const sentences: string[] = []
    for (const { version, path, error } of await this.#executor.end(this.paths.all())) {
      const why = error instanceof Error ? error.message : String(error)
      const text = existsSync(path)
        ? `${version.datum.path} could not be written (${why}): it is kept as ${path}`
        : `${version.datum.path} could not be written: it was kept as ${path}, which is gone; when its device is back, the next run brings it home`
      sentences.push(text)
      this.engine.observer?.({ type: 'note', at: this.now(), level: 'warning', text })
    }
    return sentences
  }

  #carryOut(instruction: Instruction): void {
    switch (instruction.type) {
      case 'start':
        return this.#executor.start(instruction.task)
      case 'resume':
        return this.#executor.resume(instruction.task)
      case 'stop':
        return this.#executor.stop(instruction.task)
      case 'discard':
        return this.#executor.discard(instruction.version)
      case 'move':
        return this.#executor.devices.move(instruction.move)
      case 'pace':
        // Whoever moves looks at the rate all the time.
        return
      case 'settled':
        wake(this.#settledAside, instruction.version)
        return wake(this.#settled, instruction.version)
      case 'unread':
        wake(this.#unreadAside, instruction.version)
        return wake(this.#unread, instruction.version)
      case 'idle':
        return wake(this.#idle, instruction.group)
    }
  }

  async #throwFor(version: Version, seen: Version | null = null): Promise<never> {
    if (this.engine.isClosed) await turn()
    // What comes before may be on its way; until it is settled, it is not known what to fall back to.
    for (let at = nearestValid(version); !at.settled; at = nearestValid(version)) await this.settled(at)
    const error = versionError(version)
    const { cause } = version
    if (cause) this.handle(cause)
    const { datum } = version
    const valid = nearestValid(datum.current)
    const isKept =
      !valid.settled || valid.value !== undefined || valid === seen || datum.path !== null || datum.inPlace
    // A result was nothing before, and memory may have gone into the attempt that failed: the error stays.
    if (isKept) this.engine.fallBack(datum)
    throw error
  }

  #wait<K>(map: Map<K, (() => void)[]>, key: K, watch: () => void): Promise<void> {
    return new Promise(resolve => this.#when(map, key, watch, resolve))
  }

  #when<K>(map: Map<K, (() => void)[]>, key: K, watch: () => void, go: () => void): void {
    const waiting = map.get(key)
    if (waiting) waiting.push(go)
    else {
      map.set(key, [go])
      watch()
    }
    this.schedule()
  }
}

const microseconds = (milliseconds: number): number => Math.round(milliseconds * 1000) / 1000

function wake<K>(map: Map<K, (() => void)[]>, key: K): void {
  const waiting = map.get(key)
  if (!waiting) return
  map.delete(key)
  for (const go of waiting) go()
}

/** Literals are as long as they have to be; arrays that are pushed to have room for a dozen more. */
function makeRequests(slots: readonly Slot[], results: readonly Datum[]): AccessRequest[] {
  if (slots.length === 0 && results.length === 1) return [{ datum: results[0] as Datum, mode: 'out' }]
  const out = results.map((datum): AccessRequest => ({ datum, mode: 'out' }))
  return [...slots.map(({ datum, mode }) => ({ datum, mode })), ...out]
}

function markTemporary(slots: readonly Slot[]): void {
  for (const { datum, mode } of slots) if (mode !== 'in' && datum.path !== null) datum.temporary = true
}

function makeResults({ returns }: Definition): Datum[] {
  const results = [new Datum(null, false, false)]
  for (let i = 1; i < returns; i++) results.push(new Datum(null, false, false))
  return results
}
