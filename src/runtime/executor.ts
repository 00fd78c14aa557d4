import { dirname } from 'node:path'
import { source } from '../core/data.ts'
import type { Access, Datum, Version } from '../core/data.ts'
import { nearestValid } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import type { TaskUsage } from '../core/events.ts'
import { isShort } from '../core/machine.ts'
import { Patience } from '../general/patience.ts'
import type { Task } from '../core/task.ts'
import { Guard } from '../execute/guard.ts'
import { ownCpus } from '../execute/own-cpus.ts'
import { Processes } from '../execute/processes.ts'
import { STATUS } from '../execute/protocol.ts'
import { SlotArgument } from '../model/call.ts'
import type { Slot } from '../model/call.ts'
import type { Decoder } from '../model/decode.ts'
import { modulePath, taskModules } from '../model/definition.ts'
import { Encoder } from '../model/encode.ts'
import { Stored, isPrimitive, keepPrimitive, shareCopy } from '../model/stored.ts'
import type { Kept } from '../model/stored.ts'
import type { CommandExtra, CommandHooks } from '../model/task.ts'
import { FileCopy, FileStore } from '../storage/file-store.ts'
import { commandLine, runCommand } from './commands.ts'
import { factsOf } from './failure.ts'
import { jobOf, liveOf } from './job.ts'
import type { Stoppable } from './job.ts'
import { Loans } from './loans.ts'
import { logPath, tailOf } from './logs.ts'
import type { Nested } from './nested.ts'
import { readResult } from './results.ts'
import type { Result } from './results.ts'
import type { Runtime, RuntimeOptions } from './runtime.ts'
import { Threads } from './threads.ts'

/** Looks after results that were not announced and after lanes that got stuck; milliseconds. */
const TICK = 10

/** A run that is older has someone who cleans up after it, should it be killed; milliseconds. */
const GUARDED_FROM = 250

/** How long to look for the results of short tasks before going to sleep; milliseconds. */
const LOOK_OUT = 0.1

/** What is known of an attempt that ended well. */
type Ending = Pick<Result, 'startedAt' | 'took' | 'outputs'> & { usage?: TaskUsage | null }

/** Carries out what the core decides: starts, stops and finishes tasks on threads and as processes. */
export class Executor {
  readonly files: FileStore
  readonly #runtime: Runtime
  readonly #options: RuntimeOptions
  readonly #nested: Nested
  readonly #guard: Guard
  readonly #processes: Processes
  readonly #cpus: readonly number[] | null
  #environment: { at: number; variables: Readonly<Record<string, string>> } | null = null
  readonly #loans = new Loans()
  readonly #threads: Threads
  /** Lanes with tasks that are sent when their turn comes. */
  readonly #queued = new Set<number>()
  readonly #running = new Map<number, Task>()
  /** Values that tasks which have ended put into shared memory, and that are not here yet. */
  readonly #late = new Map<number, Stored[]>()
  #ticking: NodeJS.Timeout | null = null
  #looksOutUntil = 0
  #looksOut = false
  readonly #patience = new Patience()
  /** Results so far. */
  #results = 0

  constructor(runtime: Runtime, options: RuntimeOptions, nested: Nested) {
    this.#runtime = runtime
    this.#options = options
    this.#nested = nested
    this.#guard = new Guard(options.id)
    this.#cpus = options.bind ? ownCpus() : null
    this.#processes = new Processes(text => {
      const at = this.#runtime.now()
      this.#runtime.engine.observer?.({ type: 'note', at, level: 'warning', text })
    })
    this.files = new FileStore(options.id, folder => this.#guard.folder(folder))
    this.#threads = new Threads(options.node.cpus, this.#loans, () => this.#threadOptions(), {
      result: (decoder, end, blobs, lent) => this.#result(decoder, end, blobs, lent),
      message: (message, lane) => {
        if (message.type === 'published') this.#published(message.task, message.slot, message.blobs)
        else if (message.type === 'guarded') this.#guarded(message.task, message.target, message.backup)
        else if (message.type === 'blocking') this.#blocking(message.task)
        else if (message.type === 'given-back') this.#givenBack(this.#running.get(message.task), message.lent)
        else this.#nested.receive(message, this.#running.get('task' in message ? message.task : -1), lane)
      },
      isAlone: task => this.#isAlone(task),
      lost: (task, guilty, reason) => this.#lost(task, guilty, reason),
      refused: (task, error) => this.#failed(task, error, false),
      began: task => {
        if (task.timed) this.#limit(task)
        if (task.state === 'running' && this.#isFirst(task)) {
          runtime.engine.started(task, runtime.now())
        }
      },
      died: (lane, reason, taken) => this.#threadDied(lane, reason, taken),
    })
  }

  get threads(): Threads {
    return this.#threads
  }

  warmUp(): void {
    this.#threads.warmUp()
  }

  drain(): void {
    this.#threads.drain()
  }

  start(task: Task): void {
    this.#running.set(task.id, task)
    const { slots, definition } = jobOf(task)
    const begins = definition.form === 'command' || this.#threads.isReady(task.lane)
    if (begins && this.#isFirst(task)) this.#runtime.engine.started(task, this.#runtime.now())
    if (task.queueable && isShort(task.implementation.estimate)) this.#lookOut()
    if (slots.some(slot => slot.kind !== 'value')) void this.#startWithFiles(task)
    else this.#launch(task)
  }

  /**
   * The results of short tasks are there before a thread could wake us, and waking takes several times as long
   * as such a task: so look for them for a moment, in turn with whatever else the program does.
   */
  #lookOut(): void {
    this.#looksOutUntil = performance.now() + LOOK_OUT
    if (this.#looksOut || !this.#patience.worthIt) return
    this.#looksOut = true
    const before = this.#results
    const look = (): void => {
      this.#looksOut = performance.now() < this.#looksOutUntil
      this.#threads.drain(this.#looksOut)
      if (this.#looksOut) setImmediate(look)
      else if (this.#results > before) this.#patience.found()
      else this.#patience.foundNothing()
    }
    setImmediate(look)
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
    else if (jobOf(task).definition.form === 'function') this.#threads.stop(task, task.reason)
    // A command that has not been started yet sees that it is stopping before it starts.
  }

  discard(version: Version): void {
    if (version.readers > 0 || !version.obsolete) return
    if (version.value instanceof FileCopy) {
      void this.files
        .discard(version)
        .then(() => this.#publishLatest(version.datum))
        .catch(() => undefined)
    } else version.value = undefined
  }

  /** Brings the version to the path that the user named. */
  async publish(version: Version): Promise<void> {
    for (;;) {
      const inTheWay = await this.files.publish(version)
      if (!inTheWay) return
      await this.#runtime.unread(inTheWay)
    }
  }

  /** A copy of a value for the program: what it does with it must not reach tasks. */
  async takeOut(version: Version): Promise<Kept> {
    const kept = version.value as Kept | undefined
    if (kept instanceof Stored && this.#loans.isAway(kept)) {
      return new Promise((resolve, reject) => {
        this.#loans.whenBack(kept, () => void this.takeOut(version).then(resolve, reject))
      })
    }
    if (kept === undefined || (kept instanceof Stored && this.#loans.isLost(kept))) {
      throw new MillraceError('MR_DATA_LOST', 'the value is gone')
    }
    if (!(kept instanceof Stored) || kept.blobs.length === 0 || version.datum.inPlace) return kept
    return new Stored(
      kept.bytes,
      kept.blobs.map(blob => new Uint8Array(blob).slice().buffer),
    )
  }

  /** While tasks are alive the process must be, and someone must look after threads that forgot to call. */
  keepAlive(needed: boolean): void {
    if (needed && !this.#ticking) {
      this.#ticking = setInterval(() => {
        // Tasks may start processes of their own; a run that is over soon needs nobody to look after them.
        if (this.#runtime.now() > GUARDED_FROM) this.#guard.start()
        this.#threads.drain()
        this.#threads.takeBack(this.#runtime.engine, this.#runtime.now())
        this.#runtime.decide()
      }, TICK)
    } else if (!needed && this.#ticking) {
      clearInterval(this.#ticking)
      this.#ticking = null
    }
  }

  async end(data: Iterable<Datum>): Promise<void> {
    this.keepAlive(false)
    this.#processes.end(true)
    await this.#threads.end()
    await this.files.end(data)
    this.#guard.end()
  }

  /** For the end of the process, where nothing can be waited for. */
  endNow(): void {
    this.#processes.end(false)
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
        paths[i] = await this.#path(task, i, paths)
      }
    } catch (error) {
      return this.#failed(task, error, false)
    }
    live.handling = false
    if (task.state === 'running') {
      this.#launch(task)
      this.#threads.announce()
    } else this.#lost(task, true, task.reason)
  }

  async #path(task: Task, i: number, earlier: readonly (string | null)[]): Promise<string | null> {
    const slot = jobOf(task).slots[i] as Slot
    if (slot.kind === 'value') return null
    const access = task.accesses[i] as Access
    const { read, write, mode } = access
    if (!write) return this.files.read(read as Version)
    const directory = slot.kind === 'directory'
    if (mode === 'concurrent') return this.#sharedStage(access, directory)
    const from = mode === 'out' ? null : source(access)
    // Only a failure that is ignored does not need what was there before, and others of a team may fail.
    const isFinal = task.onFailure === 'ignore' && task.attempt > task.retries && !write.team
    const take = isFinal && from !== null && from.readers <= 1 && from.superseded
    // What a workflow makes is stamped beside its final place.
    if (hooksOf(task)) return this.files.stage(write, directory, from, take, null, besideOf(task, i, earlier))
    return this.files.stage(write, directory, from, take, task.io?.device ?? null)
  }

  /** CONCURRENT tasks write one file together. */
  async #sharedStage({ read, write }: Access, directory: boolean): Promise<string> {
    const version = write as Version
    if (version.value === undefined) {
      const made = this.files.stage(version, directory, read, false)
      version.value = made
      version.value = new FileCopy(await made, true)
    }
    if (version.value instanceof Promise) return version.value as Promise<string>
    return this.files.pathOf(version)
  }

  #launch(task: Task): void {
    if (jobOf(task).definition.form !== 'function') void this.#runCommand(task)
    else if (task.queueable && this.#headOf(task.lane) !== task && this.#threads.mustWait(task)) {
      liveOf(task).held = true
      this.#queued.add(task.lane)
    } else this.#threads.send(task)
  }

  /** Sends the tasks that waited for their turn on a lane, and have it now. */
  sendNext(): void {
    for (const lane of this.#queued) {
      const task = this.#headOf(lane)
      if (!task) this.#queued.delete(lane)
      else if (jobOf(task).live?.held) {
        liveOf(task).held = false
        this.#launch(task)
      }
    }
  }

  /** A task that waits for others keeps its thread, and can be stopped there. */
  #isAlone({ lane, demand }: Task): boolean {
    if (demand.io) return false
    for (const task of this.#running.values())
      if (task.lane === lane && task.state === 'blocked') return false
    return true
  }

  /** Values that a command reads and that a thread has at the moment. */
  async #inputsBack(task: Task): Promise<void> {
    const isAway = (access: Access): boolean => {
      const kept = source(access)?.value
      return kept instanceof Stored && this.#loans.isAway(kept)
    }
    for (let away = task.accesses.find(isAway); away; away = task.accesses.find(isAway)) {
      const kept = source(away)?.value as Stored
      await new Promise<void>(resolve => this.#loans.whenBack(kept, resolve))
    }
  }

  async #runCommand(task: Task): Promise<void> {
    if (task.accesses.length > 0) await this.#inputsBack(task)
    const starting = this.#processes.start()
    if (starting) await starting
    if (task.state !== 'running') return this.#lost(task, true, task.reason)
    this.#limit(task)
    this.#guard.start()
    try {
      const outcome = await runCommand(task, {
        processes: this.#processes,
        run: this.#options.id,
        logs: this.#options.logs,
        environment: () => this.#commandEnvironment(),
        cpusOf: one => this.#cpusOf(one),
        decode: (stored, slots) => this.#runtime.decode(stored, slots),
        valueOf: (one, slot) => source(one.accesses[slot] as Access)?.value as Kept,
      })
      const { usage } = outcome
      const startedAt = this.#runtime.timeOf(outcome.beganAt)
      const took = this.#runtime.timeOf(outcome.beganAt + outcome.took) - startedAt
      await this.#finish(task, { startedAt, took, outputs: [outcome.exitCode], usage }, outcome.kept)
    } catch (error) {
      const timedOut = liveOf(task).timedOut
      this.#failed(task, timedOut ? timeout(task) : error, (error as { printed?: boolean }).printed ?? false)
    }
  }

  /**
   * Ours, as it was after the last call: reading all of it takes as long as starting a program does here, and a
   * program that sets a variable and then calls a command sees it set there.
   */
  #commandEnvironment(): Readonly<Record<string, string>> {
    const { taskCount } = this.#runtime.engine
    if (this.#environment?.at !== taskCount) {
      const variables = { ...(process.env as Record<string, string>), MILLRACE_RUN: this.#options.id }
      this.#environment = { at: taskCount, variables }
    }
    return this.#environment.variables
  }

  /** With `bind`, the CPUs behind the lanes that the task holds. */
  #cpusOf(task: Task): readonly number[] | null {
    const cpus = this.#cpus
    const lanes = this.#runtime.engine.nodes[task.node]?.lanes
    if (!cpus || !lanes) return null
    const held = lanes.filter(lane => lane.index === task.lane || lane.lentTo === task)
    return held.flatMap(lane => cpus[lane.index % cpus.length] ?? [])
  }

  /** The time of an attempt counts from where it begins: not the start of a thread, nor the copying of files. */
  #limit(task: Task): void {
    const milliseconds = jobOf(task).definition.timeout
    if (milliseconds === 0 || this.#running.get(task.id) !== task) return
    const live = liveOf(task)
    live.timer ??= setTimeout(() => {
      if (live.handling) return
      live.timedOut = true
      this.#cancelCalled(task)
      if (live.process) this.#stopProcess(live.process)
      else this.#threads.stop(task, `it took longer than ${milliseconds} ms`)
    }, milliseconds)
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
      timeOrigin: this.#runtime.timeOrigin,
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
    this.#results++
    const { engine } = this.#runtime
    const now = this.#runtime.now()
    this.#threads.heard(task.lane, now)
    const live = liveOf(task)
    if (lent.length > 0) this.#givenBack(task, lent)
    if (live.published.length > 0) this.#expectPublished(task.id, live.published)
    const result = readResult(decoder, end, blobs)
    engine.started(task, Math.min(result.startedAt, now))
    this.#runtime.schedule()
    if (task.state === 'stopping') return this.#lost(task, true, task.reason)
    if (result.status === STATUS.failed) this.#failed(task, result.error, result.printed, result.outputs)
    else if (live.paths) void this.#finish(task, result)
    else this.#finishNow(task, result)
  }

  async #finish(task: Task, result: Ending, isKept = false): Promise<void> {
    liveOf(task).handling = true
    try {
      if (isKept) await this.#dropFiles(task)
      else await this.#commitFiles(task)
    } catch (error) {
      return this.#failed(task, error, false)
    }
    this.#finishNow(task, result)
    this.#runtime.schedule()
  }

  #finishNow(task: Task, { startedAt, took, outputs, usage }: Ending): void {
    const job = jobOf(task)
    this.#store(task, outputs, job.definition.returns || 1)
    this.#forget(task)
    this.#runtime.engine.finished(task, Math.min(startedAt + took, this.#runtime.now()), took, usage)
  }

  /** Puts the values that a task made where their readers will look. */
  #store(task: Task, outputs: readonly (Kept | undefined)[], returns: number): void {
    const { slots } = jobOf(task)
    const { accesses } = task
    for (let i = 0; i < returns; i++) {
      const version = accesses[slots.length + i]?.write
      if (version) version.value = outputs[i]
    }
    let next = returns
    for (let i = 0; i < slots.length; i++) {
      const { write, mode } = accesses[i] as Access
      if (!write || mode === 'in' || (slots[i] as Slot).kind !== 'value') continue
      const output = outputs[next++]
      if (output !== undefined) write.value = output
      else if (write.value === undefined) write.value = source(accesses[i] as Access)?.value
    }
  }

  async #commitFiles(task: Task, onlyExisting = false): Promise<void> {
    const { slots } = jobOf(task)
    const { paths } = liveOf(task)
    if (!paths) return
    const outputs: { write: Version; path: string }[] = []
    for (let i = 0; i < slots.length; i++) {
      const { write, mode } = task.accesses[i] as Access
      const path = paths[i]
      if (write && path && mode !== 'concurrent') outputs.push({ write, path })
    }
    const hooks = hooksOf(task)
    if (hooks && !onlyExisting) await hooks.beforeCommit(jobOf(task).args, paths)
    else if (!onlyExisting) {
      for (const { write, path } of outputs) await this.files.expectOutput(write, path, task.name)
    }
    // Cancelled meanwhile: then the files stay what they were.
    if (task.state === 'stopping') return
    for (const { write, path } of outputs) {
      const old = write.team ? write.value : undefined
      if (onlyExisting && !old && write.value instanceof FileCopy) {
        await this.files.drop(path)
        continue
      }
      await this.files.commit(write, path)
      if (old instanceof FileCopy && old.staged) await this.files.drop(old.path)
    }
  }

  // --- failing ---

  #failed(task: Task, error: unknown, printed: boolean, partial: readonly (Kept | undefined)[] = []): void {
    const live = liveOf(task)
    const { engine } = this.#runtime
    const next = engine.afterFailure(task)
    if (task.state === 'stopping' || (!printed && !live.paths && !live.command)) {
      if (next === 'ignore') this.#storeIgnored(task, partial)
      this.#settleFailure(task, error, undefined, undefined)
    } else void this.#failLater(task, error, printed, partial)
  }

  async #failLater(task: Task, error: unknown, printed: boolean, partial: readonly (Kept | undefined)[]) {
    liveOf(task).handling = true
    const log = printed ? logPath(this.#options.logs, task) : undefined
    const tail = log ? await tailOf(log) : undefined
    if (this.#runtime.engine.afterFailure(task) === 'ignore') {
      this.#storeIgnored(task, partial)
      await this.#defaultFiles(task).catch(() => undefined)
      await this.#commitFiles(task, true).catch(() => undefined)
    } else await this.#dropFiles(task)
    this.#settleFailure(task, error, log, tail)
  }

  #settleFailure(task: Task, error: unknown, log: string | undefined, tail: string | undefined): void {
    const { engine } = this.#runtime
    const job = jobOf(task)
    const command = job.live?.command
    const facts = factsOf(error, command ? commandLine(command.words) : undefined, command?.cwd)
    if (tail) facts.tail = tail
    const final = engine.afterFailure(task) === 'fail'
    this.#forget(task)
    if (final) job.caller.unhandled.add(task)
    engine.failed(task, facts, error, this.#runtime.now(), log)
    this.#runtime.schedule()
  }

  /** What an ignored failure leaves: what was written, and defaults where there are any. */
  #storeIgnored(task: Task, partial: readonly (Kept | undefined)[]): void {
    const { definition, slots, args } = jobOf(task)
    const { defaults } = definition.options
    const returns = definition.returns || 1
    const given =
      definition.returns > 0 ? ((defaults?.returns as unknown[] | undefined) ?? []) : [defaults?.returns]
    const outputs: (Kept | undefined)[] = Array.from({ length: returns }, (_, i) => this.#keep(given[i]))
    outputs.push(...partial)
    this.#store(task, outputs, returns)
    for (const [position, value] of Object.entries(defaults?.params ?? {})) {
      const argument = args[Number(position)]
      const index = argument instanceof SlotArgument ? argument.slot : -1
      const write = task.accesses[index]?.write
      if (write && slots[index]?.kind === 'value') write.value = this.#keep(value)
    }
    for (let i = 0; i < slots.length; i++) {
      const write = task.accesses[i]?.write
      if (!write || slots[i]?.kind !== 'value' || write.value !== undefined) continue
      write.value = slots[i]?.initial ?? keepPrimitive(undefined)
    }
  }

  async #defaultFiles(task: Task): Promise<void> {
    const { definition, slots, args } = jobOf(task)
    for (const [position, value] of Object.entries(definition.options.defaults?.params ?? {})) {
      const argument = args[Number(position)]
      const index = argument instanceof SlotArgument ? argument.slot : -1
      const slot = slots[index]
      const write = task.accesses[index]?.write
      if (!slot || !write || slot.kind === 'value' || write.value !== undefined) continue
      const path = await this.files.copyIn(write, slot.kind === 'directory', String(value))
      await this.files.commit(write, path)
    }
  }

  #keep(value: unknown): Kept {
    if (isPrimitive(value)) return keepPrimitive(value)
    const encoder = new Encoder()
    encoder.value(value, {
      classes: this.#runtime.modules,
      blob: view => ({ buffer: shareCopy(view), offset: 0 }),
    })
    return new Stored(encoder.copy(), encoder.blobs)
  }

  async #dropFiles(task: Task): Promise<void> {
    const { slots } = jobOf(task)
    const { paths } = liveOf(task)
    for (let i = 0; i < slots.length; i++) {
      const { write, mode } = task.accesses[i] as Access
      const path = paths?.[i]
      if (write && path && mode !== 'concurrent') await this.files.drop(path).catch(() => undefined)
    }
  }

  #forget(task: Task): void {
    const job = jobOf(task)
    this.#running.delete(task.id)
    if (task.demand.io) this.#threads.left(task)
    if (job.live?.timer) clearTimeout(job.live.timer)
    if (job.live?.session) this.#runtime.engine.closeGroup(job.live.session.group)
    job.live = null
  }

  // --- threads that end ---

  #threadDied(lane: number, reason: string, taken: (position: number) => boolean): void {
    const tasks = [...this.#running.values()].filter(
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
      began.find(task => liveOf(task).position !== null && taken(liveOf(task).position as number)) ??
      began.find(task => liveOf(task).position === null)
    this.#runtime.engine.observer?.({ type: 'thread-died', at: this.#runtime.now(), node: 0, lane, reason })
    for (const task of tasks) this.#lost(task, task === guilty, reason)
    this.#runtime.schedule()
  }

  #lost(task: Task, guilty: boolean, reason: string): void {
    const live = liveOf(task)
    const { engine } = this.#runtime
    for (const stored of [...live.lent, ...live.published]) {
      if (this.#loans.isAway(stored)) this.#loans.lost(stored)
    }
    for (const { target, backup } of live.backups ?? []) target.set(backup)
    live.handling = true
    this.#cancelCalled(task)
    if (task.state === 'stopping') {
      void this.#dropFiles(task).then(() => {
        this.#forget(task)
        engine.stopped(task, this.#runtime.now())
        this.#runtime.schedule()
      })
    } else if (guilty) {
      const error = live.timedOut ? timeout(task) : new MillraceError('MR_THREAD_DIED', reason)
      this.#failed(task, error, true)
    } else if (live.consumed) {
      this.#failed(
        task,
        new MillraceError('MR_DATA_LOST', `its input was in a thread that ended: ${reason}`),
        false,
      )
    } else {
      void this.#dropFiles(task).then(() => {
        this.#forget(task)
        engine.returned(task, reason, this.#runtime.now())
        this.#runtime.schedule()
      })
    }
  }

  #stopProcess(process: Stoppable): void {
    this.#guard.suspect()
    this.#processes.suspect()
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

  #blocking(id: number): void {
    const task = this.#running.get(id)
    if (task?.demand.io) this.#threads.spread(task)
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

  async #publishLatest(datum: Datum): Promise<void> {
    const version = nearestValid(datum.current)
    if (version.state === 'ready' && !version.superseded && !datum.removed) await this.files.publish(version)
  }
}

const hooksOf = (task: Task): CommandHooks | undefined =>
  (jobOf(task).definition.extra as CommandExtra | null)?.hooks

/** Programs that write several files often derive their names from one: those of one folder stay together. */
function besideOf(task: Task, i: number, earlier: readonly (string | null)[]): string | null {
  const { slots } = jobOf(task)
  const folder = dirname(slots[i]?.datum.path ?? '')
  for (let j = 0; j < i; j++) {
    const path = earlier[j]
    if (path && task.accesses[j]?.write && dirname(slots[j]?.datum.path ?? '') === folder)
      return dirname(path)
  }
  return null
}

function timeout(task: Task): MillraceError {
  return new MillraceError(
    'MR_TIMEOUT',
    `it took longer than its timeout of ${jobOf(task).definition.timeout} ms`,
  )
}
