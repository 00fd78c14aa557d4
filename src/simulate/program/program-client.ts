import { ONE_CPU } from '../../model/granted.ts'
import type { Granted } from '../../model/granted.ts'
import { AsyncLocalStorage } from 'node:async_hooks'
import { statSync } from 'node:fs'
import { Datum } from '../../core/data/datum.ts'
import type { Version } from '../../core/data/datum.ts'
import type { AccessRequest } from '../../core/engine.ts'
import { MillraceError } from '../../core/errors.ts'
import { openAlready } from '../../core/tasks/group.ts'
import { Implementation } from '../../core/tasks/task.ts'
import type { Group } from '../../core/tasks/group.ts'
import type { Kind } from '../../core/tasks/task.ts'
import type { Client } from '../../model/client.ts'
import type { Slot } from '../../model/capture/call.ts'
import type { Definition } from '../../model/definition.ts'
import { addVariants, retriesOf, wishesOf } from '../../model/options/demand.ts'
import { CancelledError } from '../../model/errors.ts'
import { Future } from '../../model/future.ts'
import { Paths } from '../../model/capture/paths.ts'
import { Tracker } from '../../model/capture/tracker.ts'
import { Stream } from '../../model/value-stream.ts'
import { fetchBy, resolveInside } from '../../model/capture/wait.ts'
import type { Work } from '../execution.ts'
import { buildWork } from './program-cost.ts'
import type { Simulation, Watcher } from '../simulation.ts'
import { inputFile } from '../input/workload.ts'

/** The program's client in a simulation: calls are recorded and take virtual time, nothing is executed. */
export class ProgramClient implements Client, Watcher {
  readonly #simulation: Simulation
  readonly #tracker: Tracker
  readonly #kinds = new Map<Definition, Kind>()
  readonly #groups = new Map<string, Group>()
  readonly #group = new AsyncLocalStorage<Group>()
  readonly #results = new Map<Datum, unknown>()
  /** What generators make, by the stream of it. */
  readonly #streams = new Map<Datum, Made>()
  /** Sizes of versions that have one, by their number. */
  readonly #sizes = new Map<number, number>()
  readonly #temporary = new Set<Datum>()
  readonly #waits = new Map<Version | Group, (() => void)[]>()
  /** A wait has ended since this was last set to false: the program goes on. */
  woken = false
  #inputs = 0

  constructor(simulation: Simulation) {
    this.#simulation = simulation
    simulation.watcher = this
    // Values go nowhere, so classes need not be found again.
    const anywhere = { nameOf: () => ({ module: '', name: '' }) }
    this.#tracker = new Tracker(anywhere, (datum, value) => simulation.engine.write(datum, value, this.#now))
  }

  get #now(): number {
    return this.#simulation.clock.now
  }

  get paths(): Paths {
    return this.#tracker.paths
  }

  readonly callsOneByOne = true

  /** Waits of the program that have not ended. */
  get waits(): number {
    return this.#waits.size
  }

  call(definition: Definition, args: readonly unknown[]): unknown {
    const { slots } = this.#tracker.call(definition, args)
    const results = this.submit(definition, args, slots)
    const [first] = results
    if (definition.stream) {
      const [stream, end, ...values] = results
      this.#streams.set(stream as Datum, { values, end: end as Datum })
      this.#keepResults(definition, args, values)
      return new Stream(stream as Datum)
    }
    this.#keepResults(definition, args, results)
    return definition.returns > 0 ? results.map(datum => new Future(datum)) : new Future(first as Datum)
  }

  /** `kind`: what it is one of, if that is not the definition itself. Returns what it will give back. */
  submit(
    definition: Definition,
    args: readonly unknown[],
    slots: readonly Slot[],
    kind: Definition = definition,
  ): Datum[] {
    const accesses: AccessRequest[] = slots.map(({ datum, mode }) => ({ datum, mode }))
    for (const { datum, kind, mode } of slots) if (kind !== 'value' && mode !== 'out') this.#note(datum)
    const { options } = definition
    if (options.temporary) this.#markTemporary(slots)
    const work = {
      ...buildWork(definition, args, slots, datum => this.#sizes.get(datum.current.id) ?? 0),
      ...takesOf(slots.flatMap(({ datum }) => this.#streams.get(datum) ?? [])),
    }
    // Of a generator: the stream, its end, and its values.
    const count = definition.stream ? 1 + (work.releases?.length || 1) : Math.max(1, definition.returns)
    const results = Array.from({ length: count }, () => new Datum(null, false, false))
    for (const datum of results) accesses.push({ datum, mode: 'out' })
    const task = this.#simulation.submit(
      {
        kind: this.#kind(kind),
        ...wishesOf(definition, args),
        onFailure: options.onFailure ?? 'fail',
        retries: retriesOf(definition),
        timed: definition.timeout > 0,
        group: this.#currentGroup,
      },
      accesses,
      work,
    )
    task.accesses.forEach(({ write }, i) => write && this.#sizes.set(write.id, work.bytes?.[i] ?? 0))
    return results
  }

  #markTemporary(slots: readonly Slot[]): void {
    for (const { datum, mode } of slots) {
      if (mode === 'in' || datum.path === null) continue
      datum.temporary = true
      this.#temporary.add(datum)
    }
  }

  /** No reader of a temporary file can come any more. */
  programEnded(): void {
    for (const datum of this.#temporary) {
      if (!datum.removed) this.#simulation.engine.remove(datum, this.#now)
    }
    this.#temporary.clear()
  }

  iterate({ datum }: Stream<unknown>): AsyncIterator<Future<unknown>, undefined, void> {
    const { values, end } = this.#streams.get(datum) as Made
    let next = 0
    const done = { done: true as const, value: undefined }
    return {
      next: async () => {
        const value = values[next++]
        await this.#settled(this.#simulation.engine.read(value ?? end, this.#now))
        return value ? { done: false as const, value: new Future(value) } : done
      },
      return: () => Promise.resolve(done),
    }
  }

  ready(index: number): void {
    refuse(`ready(${index}, …) was called outside a task`)
  }

  granted(): Granted {
    return ONE_CPU
  }

  committed(path: string): Promise<void> {
    return refuse(`committed('${path}') was called outside a task`)
  }

  waitOn(value: unknown): Promise<unknown> {
    const fetch = fetchBy(async datum => {
      if (datum.removed) throw new MillraceError('MR_REMOVED', 'the value was removed')
      await this.#settled(this.#simulation.engine.read(datum, this.#now))
      return { value: this.#results.get(datum), graph: null }
    })
    return resolveInside(value, this.#tracker, fetch)
  }

  async waitOnFile(path: string): Promise<string> {
    const absolute = Paths.absolute(path)
    const { paths } = this.#tracker
    const datum = paths.find(absolute) ?? paths.directoryAbove(absolute)
    if (datum) await this.#settled(this.#simulation.engine.read(datum, this.#now))
    return absolute
  }

  barrier(): Promise<void> {
    return this.#idle(this.#currentGroup)
  }

  /** Nothing is kept here. */
  snapshot(): Promise<void> {
    return Promise.resolve()
  }

  async group<T>(name: string, body: () => T | Promise<T>): Promise<T> {
    if (this.#groups.has(name)) throw openAlready(name)
    const { engine } = this.#simulation
    const group = engine.createGroup(name, this.#currentGroup)
    this.#groups.set(name, group)
    try {
      const result = await this.#group.run(group, async () => body())
      await this.#idle(group)
      return result
    } finally {
      this.#groups.delete(name)
      engine.closeGroup(group)
    }
  }

  async cancel(name: string): Promise<void> {
    const group = this.#groups.get(name)
    if (!group) throw new MillraceError('MR_GROUP', `no group is called '${name}'`)
    this.#simulation.engine.cancel(group, { kind: 'group', group: name, how: 'cancelled' }, this.#now)
    await this.#idle(group)
  }

  remove(value: unknown): void {
    const datum = this.#tracker.datumOf(value)
    if (datum && !datum.removed) this.#simulation.engine.remove(datum, this.#now)
  }

  async removeFile(path: string): Promise<void> {
    const datum = this.#tracker.paths.find(Paths.absolute(path))
    if (!datum || datum.removed) return
    await this.#settled(this.#simulation.engine.read(datum, this.#now))
    this.#simulation.engine.remove(datum, this.#now)
  }

  // --- what the engine says ---

  settled(version: Version): void {
    this.#wake(version)
  }

  idle(group: Group): void {
    this.#wake(group)
  }

  unread(): void {}

  #wake(key: Version | Group): void {
    const waiting = this.#waits.get(key)
    if (!waiting) return
    this.#waits.delete(key)
    this.woken = true
    for (const go of waiting) go()
  }

  #wait(key: Version | Group, watch: () => void): Promise<void> {
    return new Promise(resolve => {
      const waiting = this.#waits.get(key)
      if (waiting) waiting.push(resolve)
      else {
        this.#waits.set(key, [resolve])
        watch()
      }
    })
  }

  async #settled(version: Version): Promise<void> {
    const { engine } = this.#simulation
    if (!version.settled) await this.#wait(version, () => engine.watch(version))
    if (version.state === 'ready') return
    const { producer } = version
    throw new CancelledError(producer?.name ?? 'a task', producer?.reason ?? 'it never ran', null)
  }

  async #idle(group: Group): Promise<void> {
    if (group.live > 0) await this.#wait(group, () => this.#simulation.engine.watchGroup(group))
  }

  get #currentGroup(): Group {
    return this.#group.getStore() ?? this.#simulation.engine.root
  }

  #kind(definition: Definition): Kind {
    let kind = this.#kinds.get(definition)
    if (!kind) {
      const { name, form, module } = definition
      const isMoldable = form === 'mpi'
      const implementations = [new Implementation(name)]
      kind = { id: this.#kinds.size + 1, name, form, module, implementations, isMoldable }
      // Numbers of ranks to choose from.
      if (isMoldable) addVariants(kind, definition)
      this.#kinds.set(definition, kind)
      this.#simulation.define(kind)
    }
    return kind
  }

  /** A file that no task made lies where files of the platform lie; what it holds is looked up if it is here. */
  #note(datum: Datum): void {
    const { current, path } = datum
    if (current.producer || current.team || this.#sizes.has(current.id)) return
    if (this.#simulation.stores.placeOf(current.id)) return
    const bytes = statSync(path ?? '', { throwIfNoEntry: false })?.size ?? 0
    inputFile(this.#simulation, datum, bytes, this.#inputs++)
    this.#sizes.set(current.id, bytes)
  }

  #keepResults(
    { options, returns, stream }: Definition,
    args: readonly unknown[],
    results: readonly Datum[],
  ): void {
    const given = options.cost?.returns
    if (given === undefined) return
    const value: unknown = typeof given === 'function' ? (given as Function)(...args) : structuredClone(given)
    if (returns > 0 || stream)
      results.forEach((datum, i) => this.#results.set(datum, (value as unknown[])[i]))
    else this.#results.set(results[0] as Datum, value)
  }
}

/** What a generator makes. */
interface Made {
  readonly values: readonly Datum[]
  readonly end: Datum
}

/** Who takes streams computes equally long for each value, one stream after the other; then it sees the end. */
function takesOf(streams: readonly Made[]): Pick<Work, 'takes'> {
  if (streams.length === 0) return {}
  const count = streams.reduce((sum, { values }) => sum + values.length, 0)
  const takes = streams.flatMap(({ values, end }) => [
    ...values.map(({ current }) => ({ version: current, share: 1 / count })),
    { version: end.current, share: 0 },
  ])
  return { takes }
}

function refuse(why: string, hint = 'Run the program, or simulate a version without it.'): never {
  throw new MillraceError('MR_SIMULATION', why, { hint })
}
