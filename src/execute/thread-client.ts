import { AsyncLocalStorage } from 'node:async_hooks'
import type { MessagePort } from 'node:worker_threads'
import { Datum } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import { buildDemand, priorityOf } from '../model/demand.ts'
import type { Client } from '../model/client.ts'
import { Decoder } from '../model/decode.ts'
import type { Definition } from '../model/definition.ts'
import { Future } from '../model/future.ts'
import type { Kept } from '../model/stored.ts'
import { Tracker } from '../model/tracker.ts'
import { resolveInside } from '../model/wait.ts'
import type { TaskModules } from './modules.ts'
import type { CallRequest, FromThread, Question, ToThread } from './protocol.ts'
import { argumentToWire, keptToWire } from './wire.ts'

interface Caller {
  id: number
}

interface Scope {
  tracker: Tracker
  /** Questions that have no answer yet: while there are any, the task holds no CPU. */
  open: number
  called: boolean
}

/** Carries out what a running task asks for, by asking the coordinator. */
export class ThreadClient implements Client {
  readonly #port: MessagePort
  readonly #modules: TaskModules
  readonly #caller: () => Caller | null
  readonly #changed: { blocked(task: Caller): void; resumed(task: Caller): void }
  readonly #scopes = new WeakMap<Caller, Scope>()
  readonly #requests = new Map<
    number,
    { task: Caller; resolve: (value: unknown) => void; reject: (error: unknown) => void }
  >()
  readonly #group = new AsyncLocalStorage<string>()
  readonly #ids = new WeakMap<Datum, { id: number; version: object | null }>()
  #lastRequest = 0
  #lastId = 0

  constructor(
    port: MessagePort,
    modules: TaskModules,
    caller: () => Caller | null,
    changed: { blocked(task: Caller): void; resumed(task: Caller): void },
  ) {
    this.#port = port
    this.#modules = modules
    this.#caller = caller
    this.#changed = changed
  }

  /** Whether the task called others and so cannot simply end. */
  hasCalled(task: Caller): boolean {
    return this.#scopes.get(task)?.called ?? false
  }

  /** A task ends after the tasks that it called. */
  async finish(task: Caller): Promise<void> {
    if (this.hasCalled(task)) await this.#ask({ ask: 'barrier' }, task)
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
        const { datum, kind, mode, initial } = slot
        const known = this.#ids.get(datum)
        const { id } = known ?? this.#number(datum)
        const fresh =
          datum.path === null && datum.current.value !== undefined && known?.version !== datum.current
        this.#ids.set(datum, { id, version: datum.current })
        const value = fresh ? keptToWire(datum.current.value as Kept) : undefined
        const shape = initial && { bytes: initial.bytes, blobs: initial.blobs }
        return { id, kind, mode, initial: shape, path: datum.path, inPlace: datum.inPlace, value, fresh }
      }),
      results: results.map(datum => this.#number(datum).id),
      group: this.#group.getStore() ?? null,
      demand: buildDemand(definition, definition.variants[0]?.options ?? {}, args),
      priority: priorityOf(definition, args),
    }
    this.#post(request)
    const futures = results.map(datum => new Future(datum))
    return definition.returns > 0 ? futures : futures[0]
  }

  async waitOn(value: unknown): Promise<unknown> {
    if (typeof value !== 'object' || value === null) return value
    const task = this.#task('waitOn was called')
    const { tracker } = this.#scope(task)
    return resolveInside(value, tracker, async datum => {
      const known = this.#ids.get(datum)
      if (!known) return undefined
      return this.#ask({ ask: 'value', id: known.id }, task)
    })
  }

  async waitOnFile(path: string): Promise<string> {
    return (await this.#ask({ ask: 'file', path }, this.#task('waitOnFile was called'))) as string
  }

  async barrier(): Promise<void> {
    await this.#ask({ ask: 'barrier' }, this.#task('barrier was called'))
  }

  async group<T>(name: string, body: () => T | Promise<T>): Promise<T> {
    const task = this.#task(`group ${name} was opened`)
    this.#post({ type: 'group', task: task.id, name, parent: this.#group.getStore() ?? null })
    this.#scope(task).called = true
    try {
      return await this.#group.run(name, async () => body())
    } finally {
      await this.#ask({ ask: 'group-end', name }, task)
    }
  }

  async cancel(name: string): Promise<void> {
    await this.#ask({ ask: 'cancel', name }, this.#task('cancel was called'))
  }

  remove(value: unknown): void {
    const task = this.#task('remove was called')
    const datum =
      value instanceof Future ? value.datum : this.#scope(task).tracker.find(value as object)?.datum
    const known = datum && this.#ids.get(datum)
    if (!datum || !known) return
    datum.removed = true
    this.#post({ type: 'remove', task: task.id, id: known.id })
  }

  async removeFile(path: string): Promise<void> {
    await this.#ask({ ask: 'remove-file', path }, this.#task('removeFile was called'))
  }

  answer({ request, ok, bytes, blobs }: Extract<ToThread, { type: 'answer' }>): void {
    const pending = this.#requests.get(request)
    if (!pending) return
    this.#requests.delete(request)
    const scope = this.#scope(pending.task)
    if (--scope.open === 0) this.#changed.resumed(pending.task)
    const decoder = new Decoder(bytes, {
      findClass: (module, name) => this.#modules.findClass(module, name),
      slot: () => undefined,
    })
    decoder.beside(blobs)
    try {
      const value = decoder.value()
      if (ok) pending.resolve(value)
      else pending.reject(value)
    } catch (error) {
      pending.reject(error)
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
      this.#scopes.set(task, (scope = { tracker, open: 0, called: false }))
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

  #ask(question: Question, task: Caller): Promise<unknown> {
    const request = ++this.#lastRequest
    const scope = this.#scope(task)
    scope.open++
    return new Promise((resolve, reject) => {
      this.#requests.set(request, { task, resolve, reject })
      this.#post({ type: 'ask', request, task: task.id, question })
      if (scope.open === 1) this.#changed.blocked(task)
    })
  }
}
