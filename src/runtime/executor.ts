import { source } from '../core/data.ts'
import type { Access, Datum, Version } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import { MISPLACED, RECALLED } from '../core/events.ts'
import type { TaskUsage } from '../core/events.ts'
import { isShort, isTiny } from '../core/machine.ts'
import type { Task } from '../core/task.ts'
import { Guard } from '../execute/guard.ts'
import { STATUS } from '../execute/protocol.ts'
import { ById } from '../general/by-id.ts'
import type { Decoder } from '../model/decode.ts'
import { modulePath, taskModules } from '../model/definition.ts'
import { Stored } from '../model/stored.ts'
import type { Kept } from '../model/stored.ts'
import { FileCopy, FileStore } from '../storage/file-store.ts'
import { CommandRuns, isLive } from './command-runs.ts'
import { commandLine } from './commands.ts'
import { Devices } from './devices.ts'
import { EarlyFiles } from './early-files.ts'
import { factsOf, threadDied } from './failure.ts'
import { endLive, jobOf, liveOf } from './job.ts'
import type { Stoppable } from './job.ts'
import { Limits } from './limits.ts'
import { Loans } from './loans.ts'
import { logPath, tailOf } from './logs.ts'
import { LookOut } from './look-out.ts'
import type { Nested } from './nested.ts'
import { defaultFiles, storeIgnored, storeOutputs } from './outputs.ts'
import { Releases } from './releases.ts'
import { readResult } from './results.ts'
import type { Result } from './results.ts'
import type { Runtime, RuntimeOptions } from './runtime.ts'
import { Streaming, hasProgram } from './streaming.ts'
import { TaskFiles } from './task-files.ts'
import { Deletions } from './deletions.ts'
import { Threads } from './threads.ts'

/** Looks after results that were not announced and after lanes that got stuck; milliseconds. */
const TICK = 10
/** The same while nothing depends on it: waking costs what a short task does. */
const REST = 50

/** A run that is older has someone who cleans up after it, should it be killed; milliseconds. */
const GUARDED_FROM = 250

/** So often may a task lose its thread to one that it called. */
const MOST_FALLS = 3

/** What is known of an attempt that ended well. */
type Ending = Pick<Result, 'startedAt' | 'took' | 'outputs'> & { usage?: TaskUsage | null }

/** Carries out what the core decides: starts, stops and finishes tasks on threads and as processes. */
export class Executor {
  readonly files: FileStore
  readonly taskFiles: TaskFiles
  readonly deletions: Deletions
  readonly devices: Devices
  readonly #runtime: Runtime
  readonly #options: RuntimeOptions
  readonly #nested: Nested
  readonly #guard: Guard
  readonly #commands: CommandRuns
  readonly #loans = new Loans()
  readonly #threads: Threads
  readonly #streaming: Streaming
  /** Lanes with tasks that are sent when their turn comes. */
  readonly #queued = new Set<number>()
  readonly #running = new ById<Task>()
  readonly releases: Releases
  readonly limits = new Limits()
  readonly #earlyFiles: EarlyFiles
  /** Values that tasks which have ended put into shared memory, and that are not here yet. */
  readonly #late = new Map<number, Stored[]>()
  readonly #falls = new WeakMap<Task, number>()
  #ticking: NodeJS.Timeout | null = null
  #lookedAt = 0
  #willDrain = false
  readonly #lookOut = new LookOut(looksAgain => this.#threads.drain(looksAgain))

  constructor(runtime: Runtime, options: RuntimeOptions, nested: Nested) {
    this.#runtime = runtime
    this.#options = options
    this.#nested = nested
    this.releases = new Releases(runtime)
    this.#guard = new Guard(options.id)
    this.files = new FileStore(options.id, folder => this.#guard.folder(folder))
    if (runtime.engine.observer) {
      this.files.found = ({ id }, bytes) => {
        runtime.engine.observer?.({ type: 'found', at: runtime.now(), version: id, bytes })
      }
    }
    this.#earlyFiles = new EarlyFiles(this.files, (task, version) => {
      runtime.engine.release(task, version, runtime.now(), runtime.now())
    })
    this.#streaming = new Streaming(runtime, options.id, {
      files: this.files,
      announce: folder => this.#guard.folder(folder),
      stop: task => {
        const { process } = liveOf(task)
        if (process && hasProgram(task)) this.#stopProcess(process)
      },
    })
    const parts = { loans: this.#loans, streaming: this.#streaming, guard: this.#guard }
    this.#commands = new CommandRuns(runtime, options, parts, {
      limit: task => this.#limit(task),
      finish: (task, ending, isKept) => {
        if (jobOf(task).live?.paths) void this.#finish(task, ending, isKept)
        else this.#finishNow(task, ending)
        runtime.schedule()
      },
      failed: (task, error, printed) => {
        this.#failed(task, liveOf(task).timedOut ? timeout(task) : error, printed)
      },
      lost: (task, guilty, reason) => this.#lost(task, guilty, reason),
    })
    this.taskFiles = new TaskFiles(this.files, runtime, this.#streaming, this.#earlyFiles)
    this.deletions = new Deletions(runtime, this.taskFiles)
    this.devices = new Devices(
      runtime.engine,
      this.files,
      () => runtime.now(),
      () => runtime.schedule(),
    )
    this.#threads = new Threads(options.node.cpus, this.#loans, () => this.#threadOptions(), {
      result: (decoder, end, blobs, lent) => this.#result(decoder, end, blobs, lent),
      message: (message, lane) => {
        if (message.type === 'published') this.#published(message.task, message.slot, message.blobs)
        else if (message.type === 'guarded') this.#guarded(message.task, message.target, message.backup)
        else if (message.type === 'blocking') this.#blocking(message.task, message.milliseconds)
        else if (message.type === 'given-back') this.#givenBack(this.#running.get(message.task), message.lent)
        else {
          const task = this.#running.get('task' in message ? message.task : -1)
          // One that is to stop, and was given time to end by itself, waits instead.
          if (message.type === 'ask' && task?.state === 'stopping' && !liveOf(task).handling) {
            this.#threads.stop(task, task.reason, true)
          } else this.#nested.receive(message, task, lane)
        }
      },
      findClass: (module, name) => runtime.modules.findClass(module, name),
      isAlone: task => this.#isAlone(task),
      sparesOthers: task => this.#sparesOthers(task),
      lost: (task, guilty, reason) => this.#lost(task, guilty, reason),
      gaveBack: (task, reason) => this.#gaveBack(task, reason),
      // Having been woken for one thread, we look at all of them.
      announced: () => this.#threads.drain(this.#lookOut.isOn),
      refused: (task, error) => this.#failed(task, error, false),
      began: task => {
        if (task.timed) this.#limit(task)
        if (task.state === 'running' && this.#isFirst(task)) {
          runtime.engine.started(task, runtime.now())
        }
      },
      died: (lane, reason, taken, last, isHopeless) => {
        this.#threadDied(lane, reason, taken, last, isHopeless)
      },
    })
  }

  /** Everything that was started waits for something else. */
  get isAtRest(): boolean {
    for (const task of this.#running) if (task.state !== 'blocked') return false
    return true
  }

  get threads(): Threads {
    return this.#threads
  }

  /** Starts ahead what the first tasks will need; gives what is worth waiting for. */
  warmUp(has: { functions: boolean; commands: boolean }): Promise<void> | null {
    if (has.functions) this.#threads.warmUp()
    return has.commands ? this.#commands.warmUp() : null
  }

  /** Takes results that are there already, while the program does not let the event loop run. */
  drain(): void {
    this.#threads.drain()
    this.#commands.processes.drain()
  }

  /** Someone waits for what comes of a task that runs. */
  hurry(task: Task): void {
    if (jobOf(task).definition.form === 'function' && this.#threads.hurry(task)) this.#drainSoon()
  }

  /** Takes results that nobody will tell us of; not amidst others. */
  #drainSoon(): void {
    if (this.#willDrain || this.#lookOut.isOn) return
    this.#willDrain = true
    setImmediate(() => {
      this.#willDrain = false
      this.#threads.drain()
    })
  }

  start(task: Task): void {
    this.#running.add(task)
    const { slots, definition } = jobOf(task)
    if (definition.stream || definition.returns > 0) liveOf(task).early = this.releases.startOf(task)
    const begins = definition.form !== 'function' || this.#threads.isReady(task.lane)
    if (begins && this.#isFirst(task)) this.#runtime.engine.started(task, this.#runtime.now())
    const { form } = definition
    if (task.queueable && form === 'function' && this.#isWorthLooking(task)) this.#lookOut.keep()
    if (slots.some(slot => slot.kind !== 'value')) void this.#startWithFiles(task)
    else this.#launch(task)
  }

  /** Where all CPUs are at work, to look out for results takes time from the tasks: unless these take next to none, sleep. */
  #isWorthLooking({ implementation: { estimate } }: Task): boolean {
    return isTiny(estimate) || (isShort(estimate) && (this.#runtime.engine.nodes[0]?.freeLanes ?? 0) > 0)
  }

  /** The task that runs on a lane of a CPU, if there is one. */
  #headOf(lane: number): Task | undefined {
    return this.#runtime.engine.nodes[0]?.lanes[lane]?.queue.peek()
  }

  /** It is what runs on its lane, and not second there; lanes of I/O tasks have no second. */
  #isFirst(task: Task): boolean {
    return task.demand.io || this.#headOf(task.lane) === task
  }

  /** The task has its lane back: the answers that it waited for may go. */
  resume(task: Task): void {
    const session = liveOf(task).session
    const answers = session?.answers ?? []
    if (session) session.answers = []
    for (const answer of answers) answer()
  }

  stop(task: Task): void {
    const live = liveOf(task)
    this.#cancelCalled(task)
    if (live.handling) return
    if (live.process) this.#stopProcess(live.process)
    else if (jobOf(task).definition.form === 'function') {
      // A blocked one has no place any more. One that is second on its lane may run there: the end of the first is not heard of yet.
      this.#threads.stop(task, task.reason, !task.demand.io && task.node < 0)
    }
    // A command that has not been started yet sees that it is stopping before it starts.
  }

  discard(version: Version): void {
    if (version.readers > 0 || !version.obsolete) return
    if (version.value instanceof FileCopy) this.deletions.begin(version)
    else version.value = undefined
  }

  /** A running task says that an output file is complete. */
  async commitEarly(task: Task, facts: Parameters<EarlyFiles['commit']>[1]): Promise<void> {
    await this.#earlyFiles.commit(task, facts)
  }

  /** A copy of a value for the program: what it does with it must not reach tasks. */
  takeOut(version: Version): Kept | Promise<Kept> {
    const kept = version.value as Kept | undefined
    if (kept instanceof Stored && this.#loans.isAway(kept)) {
      return new Promise((resolve, reject) => {
        this.#loans.whenBack(kept, () => void Promise.resolve(this.takeOut(version)).then(resolve, reject))
      })
    }
    if (kept === undefined || (kept instanceof Stored && this.#loans.isLost(kept))) {
      return Promise.reject(new MillraceError('MR_DATA_LOST', 'the value is gone'))
    }
    if (!(kept instanceof Stored) || kept.blobs.length === 0 || version.datum.inPlace) return kept
    return new Stored(
      kept.bytes,
      kept.blobs.map(blob => new Uint8Array(blob).slice().buffer),
    )
  }

  /** While tasks are alive the process must be, and someone must look after threads that forgot to call. */
  keepAlive(needed: boolean): void {
    if (needed) this.#ticking ??= setTimeout(this.#tick, TICK)
    else if (this.#ticking) {
      clearTimeout(this.#ticking)
      this.#ticking = null
    }
  }

  readonly #tick = (): void => {
    // Tasks may start processes of their own; a run that is over soon needs nobody to look after them.
    if (this.#runtime.now() > GUARDED_FROM) this.#guard.start()
    this.#threads.drain()
    this.#threads.tellBegun(this.#runtime.engine, this.#runtime.now())
    const isHeld = this.#threads.freeHeld()
    const isBehind = this.#takeBack() || isHeld
    this.devices.sample()
    this.#ticking = setTimeout(this.#tick, isBehind || this.devices.any ? TICK : REST)
    this.#runtime.decide()
  }

  /** Tasks that wait behind one that takes long, while others could run them; returns whether any wait so. */
  #takeBack(): boolean {
    const { engine } = this.#runtime
    const [node] = engine.nodes
    if (!node) return false
    if (node.freeLanes > 0) this.#threads.takeBack(engine, this.#runtime.now())
    this.#commands.takeBack(node, this.#runtime.now())
    return node.freeLanes > 0 && node.lanes.some(lane => lane.queue.size > 1)
  }

  /** Returns the files that could not be brought to their places, and where they are. */
  async end(data: Iterable<Datum>): ReturnType<FileStore['end']> {
    this.keepAlive(false)
    this.#commands.processes.end(true)
    await this.#threads.end()
    await this.#streaming.end()
    await this.devices.end()
    const { engine } = this.#runtime
    const stranded = await this.files.end(data, text =>
      engine.observer?.({ type: 'note', at: this.#runtime.now(), level: 'warning', text }),
    )
    this.#guard.end()
    return stranded
  }

  /** For the end of the process, where nothing can be waited for. */
  endNow(): void {
    this.#commands.processes.end(false)
    this.#streaming.endNow()
    this.files.endNow()
    // Threads run to the very end and may still write, and children of commands may have left their group.
    this.#guard.release()
  }

  // --- starting ---

  async #startWithFiles(task: Task): Promise<void> {
    const { slots } = jobOf(task)
    const live = liveOf(task)
    live.handling = true
    try {
      const paths: (string | null)[] = []
      live.paths = paths
      for (let i = 0; i < slots.length; i++) {
        paths[i] = await this.taskFiles.pathOf(task, i, paths)
      }
    } catch (error) {
      return this.#failed(task, error, false)
    }
    live.handling = false
    if (isLive(task)) {
      this.#launch(task)
      this.#threads.announce()
    } else this.#lost(task, true, task.reason)
  }

  #launch(task: Task): void {
    const isCommand = jobOf(task).definition.form === 'command'
    const head = task.queueable ? this.#headOf(task.lane) : task
    if (head !== task && this.#mustWait(task, head, isCommand)) {
      liveOf(task).held = true
      this.#queued.add(task.lane)
    } else if (isCommand) this.#commands.launch(task)
    else this.#threads.send(task)
  }

  /** It cannot wait for its turn where it runs. */
  #mustWait(task: Task, head: Task | undefined, isCommand: boolean): boolean {
    return isCommand ? !this.#commands.processes.hasLanes : this.#threads.mustWait(task, head)
  }

  /** Sends the tasks that waited for their turn on a lane, and have it now, and lets go what was started. */
  sendNext(): void {
    this.#sendHeld()
    this.#useIdle()
    this.#threads.announce()
    this.#commands.processes.flush()
  }

  /** No CPU waits for results that are there, nor for tasks that wait on others. */
  #useIdle(): void {
    const { engine } = this.#runtime
    const [node] = engine.nodes
    if (!node) return
    let isChanged = this.#threads.move(node.takeRecalled(), RECALLED)
    if (node.freeLanes > 0 && this.#threads.hurryAll()) this.#drainSoon()
    else if (this.#threads.move(node.misplaced(), MISPLACED)) isChanged = true
    if (isChanged) this.#runtime.schedule()
  }

  /** It was taken back from its lane before it began, and is ready as before. */
  #gaveBack(task: Task, reason: string): void {
    // What was made ready for one with files goes first.
    if (liveOf(task).paths) return this.#lost(task, false, reason)
    this.#forget(task)
    this.#runtime.engine.returned(task, reason, this.#runtime.now())
  }

  #sendHeld(): void {
    for (const lane of this.#queued) {
      const task = this.#headOf(lane)
      if (!task) this.#queued.delete(lane)
      else if (jobOf(task).live?.held) {
        liveOf(task).held = false
        this.#launch(task)
      }
    }
  }

  /** Others in the same thread have taken values of streams, or memory, which nobody has any more. */
  #sparesOthers(task: Task): boolean {
    const { thread } = liveOf(task)
    for (const other of this.#running) {
      const live = other === task ? null : jobOf(other).live
      if (live?.consumed && live.thread === thread && other.state !== 'stopping') return true
    }
    return false
  }

  /** A task that waits for others keeps its thread, and can be stopped there. */
  #isAlone({ lane, demand }: Task): boolean {
    if (demand.io) return false
    for (const task of this.#running) if (task.lane === lane && task.state === 'blocked') return false
    return true
  }

  /** The time of an attempt counts from where it begins: not the start of a thread, nor the copying of files. */
  #limit(task: Task): void {
    const milliseconds = jobOf(task).definition.timeout
    if (milliseconds === 0 || this.#running.get(task.id) !== task) return
    const live = liveOf(task)
    live.timer ??= this.limits.start(live, milliseconds, () => {
      if (live.handling) return
      live.timedOut = true
      this.#cancelCalled(task)
      if (live.process) this.#stopProcess(live.process)
      else {
        // One that only waits, and will not be tried again, is left where it is: others are in its thread.
        const isWaiting = task.state === 'blocked' && task.attempt > task.retries
        this.#threads.stop(task, `it took longer than ${milliseconds} ms`, isWaiting)
      }
    })
  }

  #threadOptions() {
    const modules = [...taskModules()]
    const all = this.#options.entry ? [...modules, this.#options.entry] : modules
    const throughTsx = process.execArgv.some(argument => /[\\/]tsx[\\/]|^tsx\b/.test(argument))
    return {
      typescript: throughTsx || all.some(module => /\.[cm]?tsx?$/.test(modulePath(module))),
      modules,
      entry: this.#options.entry,
      logs: this.#options.logs,
      startedAt: this.#runtime.startedAt,
      run: this.#options.id,
    }
  }

  // --- finishing ---

  #result(
    decoder: Decoder,
    end: number,
    blobs: readonly ArrayBufferLike[],
    lent: readonly ArrayBuffer[],
  ): void {
    const task = this.#running.get(decoder.varint())
    if (!task) return
    if (decoder.peek() === STATUS.released) {
      decoder.byte()
      return this.releases.receive(task, decoder, blobs)
    }
    this.#lookOut.found()
    const { engine } = this.#runtime
    const live = liveOf(task)
    if (lent.length > 0) this.#givenBack(task, lent)
    if (live.published.length > 0) this.#expectPublished(task.id, live.published)
    const result = readResult(decoder, end, blobs)
    // Results come in bunches, and most of a bunch were there when the clock was looked at for the first of them.
    if (result.startedAt + result.took > this.#lookedAt) this.#lookedAt = this.#runtime.now()
    const now = this.#lookedAt
    this.#threads.heard(task.lane, now, Math.min(result.startedAt + result.took, now))
    engine.started(task, Math.min(result.startedAt, now))
    this.#runtime.schedule()
    if (task.state === 'stopping' || live.timedOut) return this.#lost(task, true, task.reason)
    if (result.status === STATUS.failed) this.#failed(task, result.error, result.printed, result.outputs)
    else if (live.paths) void this.#finish(task, result)
    else this.#finishNow(task, result, now)
  }

  async #finish(task: Task, result: Ending, isKept = false): Promise<void> {
    liveOf(task).handling = true
    try {
      if (task.io && !isKept) await this.devices.measure(task)
      if (isKept) await this.taskFiles.drop(task)
      else await this.taskFiles.commit(task)
    } catch (error) {
      return this.#failed(task, error, false)
    }
    this.#finishNow(task, result)
    if (task.io) this.devices.settle(task)
    this.#runtime.schedule()
  }

  #finishNow(task: Task, { startedAt, took, outputs, usage }: Ending, now = this.#runtime.now()): void {
    const { returns } = jobOf(task).definition
    storeOutputs(task, outputs, returns || 1)
    if (returns > 0) this.releases.finishing(task)
    this.#forget(task)
    this.#runtime.engine.finished(
      task,
      Math.max(task.startedAt, Math.min(startedAt + took, now)),
      took,
      usage,
    )
  }

  // --- failing ---

  /** A task that failed because of its device is not to blame: it starts again on another one. */
  #failed(task: Task, error: unknown, printed: boolean, partial: readonly (Kept | undefined)[] = []): void {
    const live = liveOf(task)
    if (!task.io?.device || task.state === 'stopping' || live.timedOut) {
      return this.#failNow(task, error, printed, partial)
    }
    live.handling = true
    void this.devices.trouble(task, error).then(trouble => {
      if (trouble === null) this.#failNow(task, error, printed, partial)
      else this.#lost(task, false, trouble)
    })
  }

  #failNow(task: Task, error: unknown, printed: boolean, partial: readonly (Kept | undefined)[]): void {
    const live = liveOf(task)
    const { engine } = this.#runtime
    const next = engine.afterFailure(task)
    if (task.state === 'stopping' || (!printed && !live.paths && !live.command)) {
      if (next === 'ignore') storeIgnored(task, partial, this.#runtime)
      this.#settleFailure(task, error, undefined, undefined)
    } else void this.#failLater(task, error, printed, partial)
  }

  async #failLater(task: Task, error: unknown, printed: boolean, partial: readonly (Kept | undefined)[]) {
    liveOf(task).handling = true
    const log = printed ? logPath(this.#options.logs, task) : undefined
    const tail = log ? await tailOf(log) : undefined
    if (this.#runtime.engine.afterFailure(task) === 'ignore') {
      storeIgnored(task, partial, this.#runtime)
      await defaultFiles(task, this.files).catch(() => undefined)
      await this.taskFiles.commit(task, true).catch(() => undefined)
    } else await this.taskFiles.drop(task)
    this.#settleFailure(task, error, tail === undefined ? undefined : log, tail)
  }

  #settleFailure(task: Task, error: unknown, log: string | undefined, tail: string | undefined): void {
    const { engine } = this.#runtime
    const job = jobOf(task)
    const command = job.live?.command
    const usage = job.live?.usage ?? null
    const facts = factsOf(error, command ? commandLine(command.words, task) : undefined, command?.cwd)
    if (tail) facts.tail = tail
    const next = engine.afterFailure(task)
    this.#streaming.spoil(task)
    this.#forget(task)
    // One that was told to stop is cancelled, and whoever cancelled it knows.
    if (next === 'fail' && task.state !== 'stopping') job.caller.unhandled.add(task)
    if (next !== 'retry' && task.state !== 'stopping') this.#runtime.channels.madeBy(task)?.fails()
    engine.failed(task, facts, error, this.#runtime.now(), log, usage)
    this.#runtime.schedule()
  }

  #forget(task: Task): void {
    const job = jobOf(task)
    this.#running.delete(task.id)
    if (task.demand.io || (job.live?.thread ?? -1) >= this.#options.node.cpus) this.#threads.left(task)
    if (job.live?.timer) clearTimeout(job.live.timer)
    if (job.live?.paths) void this.files.tiers.unuse(job.live.paths).catch(() => undefined)
    if (job.live?.session) this.#runtime.engine.closeGroup(job.live.session.group)
    endLive(job)
    if (task.kind.form === 'command') this.#streaming.over(task)
  }

  // --- threads that end ---

  #threadDied(
    lane: number,
    reason: string,
    taken: (position: number) => boolean,
    last: number,
    isHopeless: boolean,
  ): void {
    const tasks = [...this.#running].filter(
      task =>
        jobOf(task).live?.thread === lane &&
        jobOf(task).live?.sent &&
        !jobOf(task).live?.handling &&
        jobOf(task).definition.form === 'function',
    )
    // Not in the order of starting: files may have had to be prepared first.
    tasks.sort((a, b) => liveOf(a).order - liveOf(b).order)
    const began = tasks.filter(task => task.state !== 'blocked')
    const guilty =
      tasks.find(task => liveOf(task).guilty) ??
      began.find(task => (task.id | 0) === last) ??
      began.find(task => liveOf(task).position !== null && taken(liveOf(task).position as number)) ??
      began.find(task => liveOf(task).position === null)
    this.#runtime.engine.observer?.({ type: 'thread-died', at: this.#runtime.now(), node: 0, lane, reason })
    for (const task of tasks) {
      if (isHopeless) task.retries = 0
      if (guilty && task !== guilty && task.state === 'blocked') {
        guilty.kind.endsThreads = true
        if (this.#fellTooOften(task, guilty)) {
          const why = `${guilty.name}, which it called, ended its thread again and again: ${reason}`
          this.#lost(task, true, why)
          continue
        }
      }
      this.#lost(task, isHopeless || task === guilty, isHopeless ? `no thread can begin: ${reason}` : reason)
    }
    this.#runtime.schedule()
  }

  /** A task that begins anew calls anew what ended its thread: not for ever. */
  #fellTooOften(task: Task, guilty: Task): boolean {
    let caller = guilty.parent
    while (caller && caller !== task) caller = caller.parent
    if (!caller) return false
    const falls = (this.#falls.get(task) ?? 0) + 1
    this.#falls.set(task, falls)
    return falls >= MOST_FALLS
  }

  #lost(task: Task, guilty: boolean, reason: string): void {
    const live = liveOf(task)
    const { engine } = this.#runtime
    for (const stored of [...live.lent, ...live.published]) {
      if (this.#loans.isAway(stored)) this.#loans.lost(stored)
    }
    for (const { target, backup } of live.backups ?? []) target.set(backup)
    live.handling = true
    // It keeps its place on the lane until its files are gone, and is neither sent from there nor given back once more.
    live.held = false
    this.#cancelCalled(task)
    if (task.state === 'stopping') {
      void this.taskFiles.drop(task).then(() => {
        this.#forget(task)
        engine.stopped(task, this.#runtime.now())
        this.#runtime.schedule()
      })
    } else if (guilty) {
      const error = live.timedOut ? timeout(task) : threadDied(reason)
      this.#failed(task, error, true)
    } else if (live.consumed) {
      this.#failed(
        task,
        new MillraceError('MR_DATA_LOST', `its input was in a thread that ended: ${reason}`),
        false,
      )
    } else {
      void this.taskFiles.drop(task).then(() => {
        this.#forget(task)
        engine.returned(task, reason, this.#runtime.now())
        this.#runtime.schedule()
      })
    }
  }

  #stopProcess(process: Stoppable): void {
    this.#guard.suspect()
    this.#commands.processes.suspect()
    process.stop()
  }

  /** A task that ends takes with it what it called. */
  #cancelCalled(task: Task): void {
    const session = jobOf(task).live?.session
    if (!session || session.group.live === 0) return
    this.#runtime.engine.cancel(session.group, `${task.name}, which called it, ended`, this.#runtime.now())
    this.#runtime.schedule()
  }

  // --- memory and files that others wait for ---

  #published(id: number, slot: number, blobs: SharedArrayBuffer[]): void {
    const late = this.#late.get(id)
    const task = this.#running.get(id)
    const version = task ? source(task.accesses[slot] as Access) : null
    const stored = late ? late.shift() : version?.value
    if (late?.length === 0) this.#late.delete(id)
    if (stored instanceof Stored) this.#loans.back(stored, blobs)
    this.#runtime.schedule()
  }

  /** A result goes through the ring, and may be here before the message with memory that was published. */
  #expectPublished(id: number, published: readonly Stored[]): void {
    const late = published.filter(stored => this.#loans.isAway(stored))
    if (late.length > 0) this.#late.set(id, late)
  }

  #blocking(id: number, milliseconds: number): void {
    const task = this.#running.get(id)
    if (task?.demand.io) this.#threads.blocked(task, milliseconds)
  }

  #givenBack(task: Task | undefined, lent: readonly ArrayBuffer[]): void {
    if (!task) return
    const live = liveOf(task)
    const returned: ArrayBufferLike[] = [...lent]
    for (const stored of live.lent) this.#loans.back(stored, returned)
    live.lent = []
  }

  #guarded(id: number, target: Uint8Array, backup: Uint8Array): void {
    const task = this.#running.get(id)
    if (task) (liveOf(task).backups ??= []).push({ target, backup })
  }
}

function timeout(task: Task): MillraceError {
  return new MillraceError(
    'MR_TIMEOUT',
    `it took longer than its timeout of ${jobOf(task).definition.timeout} ms`,
  )
}
