import { ONE_CPU } from '../../model/granted.ts'
import type { Granted } from '../../model/granted.ts'
import { AsyncLocalStorage } from 'node:async_hooks'
import { statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import type { MessagePort } from 'node:worker_threads'
import { Datum } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import { openAlready } from '../../core/tasks/group.ts'
import { extraKeyOf, wishesOf } from '../../model/options/demand.ts'
import type { Client } from '../../model/client.ts'
import { Decoder } from '../../model/encoding/decode.ts'
import type { DecodeHooks } from '../../model/encoding/decode.ts'
import type { Definition } from '../../model/definition.ts'
import { Future } from '../../model/future.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import { Stream } from '../../model/value-stream.ts'
import { Tracker } from '../../model/capture/tracker.ts'
import { fetchBy, resolveInside } from '../../model/capture/wait.ts'
import type { Fetch } from '../../model/capture/wait.ts'
import type { TaskModules } from './modules.ts'
import type { CallRequest, FromThread, Question, ToThread } from './protocol.ts'
import { TakenStream } from './taken-stream.ts'
import type { RawAnswer } from './taken-stream.ts'
import { argumentToWire, keptToWire } from './wire.ts'

/** How many futures of a stream a task asks for at a time, at most. */
const BATCH = 32

interface Caller {
  id: number
  readonly grant: Granted | null
}

export interface ClientEvents {
  blocked(task: Caller): void
  resumed(task: Caller): void
  ready(task: Caller | null, index: number, value: unknown): void
}

interface Pending {
  task: Caller
  /** The task holds its CPU meanwhile. */
  isQuick: boolean
  /** The answer is not a single value; the caller decodes it. */
  isRaw: boolean
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

interface Scope {
  tracker: Tracker
  /** Questions that have no answer yet: while there are any, the task holds no CPU. */
  open: number
  called: boolean
  /** Names of groups that are open. */
  groups: Set<string>
  /** Releases of files that are under way. */
  commits: Set<Promise<unknown>>
}

/** Carries out what a running task asks for, by asking the coordinator. */
export class ThreadClient implements Client {
  readonly #port: MessagePort
  readonly #modules: TaskModules
  readonly #caller: () => Caller | null
  readonly #changed: ClientEvents
  readonly #scopes = new WeakMap<Caller, Scope>()
  readonly #requests = new Map<number, Pending>()
  /** Items of streams that no loop can reach any more: the coordinator need not keep them for this task. */
  readonly #forgotten = new FinalizationRegistry<{ task: number; id: number }>(({ task, id }) =>
    this.#post({ type: 'forget', task, id }),
  )
  readonly #group = new AsyncLocalStorage<string>()
  readonly #ids = new WeakMap<Datum, { id: number; version: object | null }>()
  #lastRequest = 0
  #lastId = 0

  constructor(port: MessagePort, modules: TaskModules, caller: () => Caller | null, changed: ClientEvents) {
    this.#port = port
    this.#modules = modules
    this.#caller = caller
    this.#changed = changed
  }

  /** Whether the task called others and so cannot simply end. */
  hasCalled(task: Caller): boolean {
    return this.#scopes.get(task)?.called ?? false
  }

  granted(): Granted {
    const { cpus, bound, gpus } = this.#caller()?.grant ?? ONE_CPU
    return { cpus, bound, gpus }
  }

  /** A task ends after the tasks that it called. */
  async finish(task: Caller): Promise<void> {
    for (const commit of this.#scopes.get(task)?.commits ?? []) await commit
    if (this.hasCalled(task)) await this.#ask({ ask: 'barrier', isEnd: true }, task)
  }

  call(definition: Definition, args: readonly unknown[]): unknown {
    const task = this.#task(`task ${definition.name} was called`)
    const scope = this.#scope(task)
    scope.called = true
    const call = scope.tracker.call(definition, args)
    const results = Array.from({ length: definition.returns || 1 }, () => new Datum())
    const request: CallRequest = {
      type: 'call',
      task: task.id,
      key: definition.key,
      module: definition.module,
      args: call.args.map(argumentToWire),
      slots: call.slots.map(slot => {
        const { datum, kind, mode, initial, stream, named, hasParts, holds } = slot
        const known = this.#ids.get(datum)
        const { id } = known ?? this.#number(datum)
        const fresh =
          datum.path === null && datum.current.value !== undefined && known?.version !== datum.current
        this.#ids.set(datum, { id, version: datum.current })
        const value = fresh ? keptToWire(datum.current.value as Kept) : undefined
        const shape = initial && { bytes: initial.bytes, blobs: initial.blobs }
        const sent = {
          id,
          kind,
          mode,
          initial: shape,
          path: datum.path,
          inPlace: datum.inPlace,
          value,
          fresh,
        }
        return {
          ...sent,
          ...(stream && { stream }),
          ...(named && { named }),
          ...(hasParts && { hasParts }),
          ...(holds && { holds }),
        }
      }),
      results: results.map(datum => this.#number(datum).id),
      group: this.#group.getStore() ?? null,
      ...wishesOf(definition, args),
      ...(definition.options.key === undefined ? {} : { extraKey: extraKeyOf(definition, args) }),
    }
    this.#post(request)
    if (definition.stream) return new Stream(results[0] as Datum)
    const futures = results.map(datum => new Future(datum))
    return definition.returns > 0 ? futures : futures[0]
  }

  async waitOn(value: unknown): Promise<unknown> {
    if (typeof value !== 'object' || value === null) return value
    const task = this.#task('waitOn was called')
    const { tracker } = this.#scope(task)
    return resolveInside(value, tracker, this.#fetchFor(task))
  }

  /**
   * A task's result is complete when what it called is: the objects in it are what called tasks made of them, and so are
   * those that it was given.
   */
  async complete(task: Caller, values: readonly unknown[], known: readonly object[]): Promise<void> {
    const scope = this.#scopes.get(task)
    if (!scope?.called) return
    const { tracker } = scope
    // These first: others may be views of the same memory.
    for (const object of known) {
      if (tracker.objects.own(object)?.dirty) await resolveInside(object, tracker, this.#fetchFor(task), true)
    }
    for (const value of values) await resolveInside(value, tracker, this.#fetchFor(task), true)
  }

  /** What is released is captured as it is: called tasks must not be writing it. */
  rejectBusy(task: Caller, value: unknown): void {
    const scope = this.#scopes.get(task)
    if (scope?.called) scope.tracker.rejectBusy(value)
  }

  #fetchFor(task: Caller): Fetch {
    return fetchBy(async datum => {
      const known = this.#ids.get(datum)
      if (!known) return { value: undefined, graph: null }
      const { bytes, blobs } = (await this.#ask(
        { ask: 'value', id: known.id },
        task,
        false,
        true,
      )) as RawAnswer
      const decoder = new Decoder(bytes, this.#hooks)
      decoder.beside(blobs)
      return { value: decoder.value(), graph: decoder.graph }
    })
  }

  async waitOnFile(path: string): Promise<string> {
    return (await this.#ask({ ask: 'file', path }, this.#task('waitOnFile was called'))) as string
  }

  async barrier(): Promise<void> {
    await this.#ask({ ask: 'barrier', isEnd: false }, this.#task('barrier was called'))
  }

  snapshot(): Promise<void> {
    return Promise.reject(
      new MillraceError('MR_OPTION', 'snapshot() was called inside a task', { hint: 'Call it in main.' }),
    )
  }

  async group<T>(name: string, body: () => T | Promise<T>): Promise<T> {
    const task = this.#task(`group ${name} was opened`)
    const scope = this.#scope(task)
    if (scope.groups.has(name)) throw openAlready(name)
    scope.groups.add(name)
    this.#post({ type: 'group', task: task.id, name, parent: this.#group.getStore() ?? null })
    scope.called = true
    const close = (failed: 'told' | 'itself' | null): Promise<unknown> =>
      this.#ask({ ask: 'group-end', name, failed }, task).finally(() => scope.groups.delete(name))
    let result: T
    try {
      result = await this.#group.run(name, async () => body())
    } catch (error) {
      await close(error instanceof MillraceError ? 'told' : 'itself')
      throw error
    }
    await close(null)
    return result
  }

  async cancel(name: string): Promise<void> {
    await this.#ask({ ask: 'cancel', name }, this.#task('cancel was called'))
  }

  remove(value: unknown): void {
    const task = this.#task('remove was called')
    if (value instanceof Stream) {
      const stream = this.#ids.get(value.datum)?.id ?? -1
      return this.#post({ type: 'close-stream', task: task.id, stream, isPassed: false })
    }
    const datum = this.#scope(task).tracker.datumOf(value)
    const known = datum && this.#ids.get(datum)
    if (!datum || !known) return
    datum.removed = true
    this.#post({ type: 'remove', task: task.id, id: known.id })
  }

  async removeFile(path: string): Promise<void> {
    await this.#ask({ ask: 'remove-file', path }, this.#task('removeFile was called'))
  }

  // --- early release and streams ---

  ready(index: number, value: unknown): void {
    this.#changed.ready(this.#caller(), index, value)
  }

  async committed(path: string): Promise<void> {
    const task = this.#caller()
    if (!task) throw new MillraceError('MR_RELEASE', `committed('${path}') was called outside a task`)
    const { ino: file, size, mtimeMs: modified } = outputAt(path)
    // A task that does not wait for it must not end before it.
    this.#scope(task).called = true
    const { commits } = this.#scope(task)
    const done = this.#ask({ ask: 'committed', path, file, size, modified }, task)
    commits.add(done)
    const settled = (): void => void commits.delete(done)
    done.then(settled, settled)
    await done
  }

  /** The number of what a called task will make. */
  numberOf({ datum }: Future<unknown>): number | null {
    return this.#ids.get(datum)?.id ?? null
  }

  waitForRoom(task: Caller, items: number, bytes: number): Promise<unknown> {
    return this.#ask({ ask: 'room', items, bytes }, task)
  }

  /** A stream that a task on this thread was given. */
  takeStream(id: number, memory: ArrayBufferLike): TakenStream {
    return new TakenStream(id, memory, {
      hooks: this.#hooks,
      take: (stream, isThere) => {
        const task = this.#task('a stream was read')
        const question: Question = { ask: 'take', stream, isThere }
        return this.#ask(question, task, isThere, true) as Promise<RawAnswer>
      },
      close: stream => {
        const task = this.#task('a loop over a stream ended')
        this.#post({ type: 'close-stream', task: task.id, stream, isPassed: true })
      },
    })
  }

  /** A stream that a task on this thread called for. */
  iterate({ datum }: Stream<unknown>): AsyncIterator<Future<unknown>, undefined, void> {
    const task = this.#task('a stream was read')
    const stream = this.#ids.get(datum)?.id ?? -1
    const done = { done: true as const, value: undefined }
    let fresh: Datum[] = []
    let given: Datum[] = []
    return {
      next: async () => {
        if (given.length === 0) {
          while (fresh.length < BATCH) {
            const item = new Datum()
            const { id } = this.#number(item)
            this.#forgotten.register(item, { task: task.id, id })
            fresh.push(item)
          }
          const items = fresh.map(item => this.#ids.get(item)?.id as number)
          const count = (await this.#ask({ ask: 'next', stream, items }, task)) as number
          if (count === 0) return done
          given = fresh.slice(0, count)
          fresh = fresh.slice(count)
        }
        return { done: false as const, value: new Future(given.shift() as Datum) }
      },
      return: () => {
        given = []
        this.#post({ type: 'close-stream', task: task.id, stream, isPassed: false })
        return Promise.resolve(done)
      },
    }
  }

  readonly #hooks: DecodeHooks = {
    findClass: (module, name) => this.#modules.findClass(module, name),
    slot: () => undefined,
  }

  answer({ request, ok, bytes, blobs }: Extract<ToThread, { type: 'answer' }>): void {
    const pending = this.#requests.get(request)
    if (!pending) return
    this.#requests.delete(request)
    if (!pending.isQuick && --this.#scope(pending.task).open === 0) this.#changed.resumed(pending.task)
    if (ok && pending.isRaw) return pending.resolve({ bytes, blobs })
    const decoder = new Decoder(bytes, this.#hooks)
    decoder.beside(blobs)
    try {
      const value = decoder.value()
      if (ok) pending.resolve(value)
      else pending.reject(value)
    } catch (error) {
      pending.reject(error)
    }
  }

  /** The task is abandoned: its questions get no answer. */
  abandon(task: number): void {
    for (const [request, pending] of this.#requests) {
      if (pending.task.id === task) this.#requests.delete(request)
    }
  }

  #task(what: string): Caller {
    const task = this.#caller()
    if (task) return task
    throw new MillraceError(
      'MR_CALL_AT_LOAD',
      `${what} while its module was being loaded by a compute thread`,
    )
  }

  #scope(task: Caller): Scope {
    let scope = this.#scopes.get(task)
    if (!scope) {
      const tracker = new Tracker(this.#modules, (datum, value) => {
        // A new version object marks the value as not yet sent.
        const { current } = datum
        datum.current = Object.assign(
          Object.create(Object.getPrototypeOf(current) as object) as typeof current,
          current,
        )
        datum.current.value = value
      })
      this.#scopes.set(
        task,
        (scope = { tracker, open: 0, called: false, groups: new Set(), commits: new Set() }),
      )
    }
    return scope
  }

  #number(datum: Datum): { id: number; version: object | null } {
    const entry = { id: ++this.#lastId, version: null }
    this.#ids.set(datum, entry)
    return entry
  }

  #post(message: FromThread): void {
    this.#port.postMessage(message)
  }

  #ask(question: Question, task: Caller, isQuick = false, isRaw = false): Promise<unknown> {
    const request = ++this.#lastRequest
    const scope = this.#scope(task)
    if (!isQuick) scope.open++
    return new Promise((resolve, reject) => {
      this.#requests.set(request, { task, isQuick, isRaw, resolve, reject })
      this.#post({ type: 'ask', request, task: task.id, question })
      if (!isQuick && scope.open === 1) this.#changed.blocked(task)
    })
  }
}

function outputAt(path: string): Stats {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats) return stats
  throw new MillraceError('MR_OUTPUT_MISSING', `committed('${path}'): there is nothing at this path`)
}
