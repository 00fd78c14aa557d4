import type { Version } from '../data/datum.ts'
import { MillraceError } from '../errors.ts'
import type { Kind, Task } from '../tasks/task.ts'
import { Profile } from './profile.ts'
import { bytesText } from './words.ts'

/** A task that reads or writes temporary data. */
interface Entry {
  readonly task: Task
  readonly position: number
  /** Bytes that it takes when it starts. */
  taken: number
  /** Bytes that go when it ends: it is the last in program order, of those that have not started, to read them. */
  given: number
  started: boolean
}

/** Temporary data that are there or will be made. */
interface Intermediate {
  bytes: number
  /** Tasks that read it and have not ended. */
  unfinished: number
  /** Those of them that have not started, in program order; others may be among them until they come last. */
  readonly unstarted: Entry[]
  /** Who is counted for its end: a task that has not started; running tasks; none. */
  owner: Entry | 'running' | null
  /** Its producer has started, so that it is counted. */
  alive: boolean
  readonly producer: Entry
  /** It goes after the tasks that are known to read it now, or at once: some read it, or it was removed. */
  isTransient: boolean
  /** Bytes that its task wrote, once they are known. */
  measured: number | null
  /** It could not be deleted. */
  stays: boolean
}

/**
 * Holds tasks back so that temporary data never take more than a bound, and so that work never comes to a stop.
 *
 * The rule. Suppose that the tasks which run now end, and that the others then run one at a time in program
 * order. A task may start if its output fits now, and if after that no task that comes before it in program
 * order would find less room in that order than the bound leaves it. docs/io.md proves that this suffices.
 */
export class Bound {
  readonly limit: number
  /** Bytes of temporary data that are there or being written. */
  alive = 0
  /** Of these, what goes when the tasks that run have ended. */
  #ending = 0
  readonly #profile = new Profile()
  readonly #entries = new Map<Task, Entry>()
  readonly #data = new Map<Version, Intermediate>()
  /** By position; those that have started or ended are null. */
  #order: (Entry | null)[] = []
  #first = 0
  readonly #again = new Set<Task>()
  /** Tasks that start beyond the bound: without them the run would stop. */
  readonly #exempt = new Set<Task>()
  /** The most that a task of the kind has written; where no device is known, nothing else knows it. */
  readonly #sizes = new Map<Kind, number>()
  readonly #sizeOf: (task: Task) => number | null
  /** Tasks of unknown size: they count as much as the largest of their kind so far. */
  readonly #unsized = new Map<Kind, Set<Entry>>()
  /** Kinds of which nothing is known yet, and of which one task runs to find out. */
  readonly #scouts = new Set<Kind>()

  constructor(limit: number, sizeOf: (task: Task) => number | null) {
    this.limit = limit
    this.#sizeOf = task => sizeOf(task) ?? this.#sizes.get(task.kind) ?? null
  }

  /** Throws if the task could never start; comes before anything is changed. */
  check(name: string, size: number | null): void {
    if (size === null || size <= this.limit) return
    throw new MillraceError(
      'MR_CONSTRAINT',
      `task ${name} writes ${bytesText(size)} of temporary data, but all of them together may take ${bytesText(this.limit)}`,
    )
  }

  submitted(task: Task): void {
    const outputs = temporaryOutputs(task)
    const inputs = task.accesses.flatMap(({ read }) => (read && this.#data.has(read) ? [read] : []))
    if (outputs.length === 0 && inputs.length === 0) return
    const taken = outputs.length === 0 ? 0 : (this.#sizeOf(task) ?? 0)
    const entry: Entry = { task, position: this.#order.length, taken, given: 0, started: false }
    this.#entries.set(task, entry)
    this.#order.push(entry)
    if (outputs.length > 0 && task.demand.storage?.size == null) this.#expect(entry)
    for (const version of outputs) {
      const bytes = taken / outputs.length
      this.#data.set(version, {
        bytes,
        unfinished: 0,
        unstarted: [],
        owner: null,
        alive: false,
        producer: entry,
        isTransient: false,
        measured: null,
        stays: false,
      })
    }
    for (const version of new Set(inputs)) {
      const datum = this.#data.get(version) as Intermediate
      datum.unfinished++
      datum.isTransient = true
      datum.unstarted.push(entry)
      this.#assign(datum, entry)
    }
    this.#update(entry)
  }

  /** Whether the task may start now, as far as the bound goes. */
  allows(task: Task): boolean {
    const entry = this.#entries.get(task)
    if (!entry || entry.started || this.#exempt.has(task)) return true
    if (this.#scouts.has(task.kind) && this.#sizeOf(task) === null) return false
    if (entry.taken === 0) return true
    if (this.alive + entry.taken > this.limit) return false
    let freed = 0
    for (const datum of this.#inputsOf(task)) {
      if (datum.alive && !this.#otherThan(datum, entry)) freed += datum.bytes
    }
    const more = entry.taken - freed
    if (more <= 0) return true
    const peak = this.#profile.peakBefore(entry.position)
    return peak === -Infinity || this.alive - this.#ending + more + peak <= this.limit
  }

  /** Bytes that one more task can take at most. */
  get spare(): number {
    return this.limit - this.alive
  }

  /** The first task in program order that has not started: if nothing else can start, it can. */
  first(): Task | null {
    for (const task of this.#again) {
      if (task.state === 'ready') return task
      if (task.ended || task.state === 'running') this.#again.delete(task)
    }
    const order = this.#order
    while (this.#first < order.length && order[this.#first] === null) this.#first++
    return order[this.#first]?.task ?? null
  }

  /** The task is to be tried again: it keeps what it took, and must not wait behind those that are held back. */
  again(task: Task): void {
    if (this.#entries.get(task)?.started) this.#again.add(task)
  }

  started(task: Task): void {
    const entry = this.#entries.get(task)
    if (!entry || entry.started) return
    entry.started = true
    this.#leaveOrder(entry)
    if (this.#unsized.get(task.kind)?.delete(entry) && this.#sizeOf(task) === null)
      this.#scouts.add(task.kind)
    this.alive += entry.taken
    for (const version of temporaryOutputs(task)) {
      const datum = this.#data.get(version)
      if (!datum) continue
      this.#revive(datum, true)
      this.#reassign(datum)
    }
    for (const datum of this.#inputsOf(task)) this.#reassign(datum)
  }

  /** The task has come to its end, whichever. */
  ended(task: Task): void {
    const entry = this.#entries.get(task)
    if (!entry) return
    this.#entries.delete(task)
    this.#exempt.delete(task)
    this.#scouts.delete(task.kind)
    this.#unsized.get(task.kind)?.delete(entry)
    if (!entry.started) this.#leaveOrder(entry)
    const isGood = task.state === 'done' || task.state === 'ignored'
    let written = 0
    for (const version of temporaryOutputs(task)) {
      const datum = this.#data.get(version)
      if (!datum || version.team) continue
      written += datum.measured ?? 0
      if (isGood) this.#resize(datum, version.place?.measured ?? datum.measured ?? datum.bytes)
      else this.#drop(version, datum, entry.started)
    }
    for (const datum of this.#inputsOf(task)) {
      datum.unfinished--
      this.#reassign(datum)
    }
    entry.started = true
    if (!isGood) return
    if (written > (this.#sizes.get(task.kind) ?? 0)) this.#sizes.set(task.kind, written)
    this.#learn(task)
  }

  #expect(entry: Entry): void {
    const { kind } = entry.task
    const others = this.#unsized.get(kind)
    if (others) others.add(entry)
    else this.#unsized.set(kind, new Set([entry]))
  }

  /** Tasks of the kind write more than was known: those that have not started count for more from now on. */
  #learn({ kind }: Task): void {
    for (const entry of this.#unsized.get(kind) ?? []) {
      const size = this.#sizeOf(entry.task) ?? 0
      if (size <= entry.taken) return
      entry.taken = size
      const outputs = temporaryOutputs(entry.task)
      for (const version of outputs) {
        const datum = this.#data.get(version)
        if (datum) this.#resize(datum, size / outputs.length)
      }
      this.#update(entry)
    }
  }

  /** The first ready task in program order that is held back. */
  firstHeld(): Task | null {
    for (let i = this.#first; i < this.#order.length; i++) {
      const task = this.#order[i]?.task
      if (task?.state === 'ready' && !this.allows(task)) return task
    }
    return null
  }

  /** The task starts next, though the bound does not hold then. */
  exempt(task: Task): void {
    if (!this.#entries.has(task)) return
    this.#exempt.add(task)
    this.#again.add(task)
  }

  /** Data that no task will read are still being deleted: there will be more room. */
  get isFreeing(): boolean {
    for (const [version, { alive, stays }] of this.#data) {
      if (alive && !stays && version.obsolete && version.settled && version.readers === 0) return true
    }
    return false
  }

  /** The size of what a task made. */
  stored(version: Version, bytes: number): void {
    const datum = this.#data.get(version)
    if (datum) datum.measured = bytes
  }

  /** The version could not be deleted: its room is not free, and will not be. */
  stays(version: Version): void {
    const datum = this.#data.get(version)
    if (datum) datum.stays = true
  }

  /** No reader will follow. */
  removed(version: Version): void {
    const datum = this.#data.get(version)
    if (!datum) return
    datum.isTransient = true
    this.#reassign(datum)
  }

  /** The file is deleted. */
  gone(version: Version): void {
    const datum = this.#data.get(version)
    if (datum) this.#drop(version, datum, datum.alive)
  }

  // --- inside ---

  #inputsOf(task: Task): Set<Intermediate> {
    const found = new Set<Intermediate>()
    for (const { read } of task.accesses) {
      const datum = read && this.#data.get(read)
      if (datum) found.add(datum)
    }
    return found
  }

  #otherThan(datum: Intermediate, entry: Entry): boolean {
    return datum.unstarted.some(one => one !== entry && !one.started && this.#entries.has(one.task))
  }

  #leaveOrder(entry: Entry): void {
    this.#order[entry.position] = null
    this.#profile.clear(entry.position)
  }

  #update(entry: Entry): void {
    if (!entry.started && this.#entries.has(entry.task)) {
      this.#profile.set(entry.position, entry.taken, entry.given)
    }
  }

  /** Finds who is to be counted for the end of the datum now. */
  #reassign(datum: Intermediate): void {
    const { unstarted } = datum
    for (let last = unstarted.at(-1); last; last = unstarted.at(-1)) {
      if (!last.started && this.#entries.has(last.task)) break
      unstarted.pop()
    }
    this.#assign(datum, unstarted.at(-1) ?? ownerWithoutReaders(datum))
  }

  #assign(datum: Intermediate, owner: Intermediate['owner']): void {
    if (datum.owner === owner) return
    this.#count(datum, -datum.bytes)
    datum.owner = owner
    this.#count(datum, datum.bytes)
  }

  #count({ owner, alive }: Intermediate, bytes: number): void {
    if (owner === 'running') this.#ending += alive ? bytes : 0
    else if (owner) {
      owner.given += bytes
      this.#update(owner)
    }
  }

  #revive(datum: Intermediate, alive: boolean): void {
    this.#count(datum, -datum.bytes)
    datum.alive = alive
    this.#count(datum, datum.bytes)
  }

  #resize(datum: Intermediate, bytes: number): void {
    this.#count(datum, -datum.bytes)
    if (datum.alive) this.alive += bytes - datum.bytes
    datum.bytes = bytes
    this.#count(datum, bytes)
  }

  #drop(version: Version, datum: Intermediate, wasAlive: boolean): void {
    if (wasAlive) this.alive -= datum.bytes
    this.#count(datum, -datum.bytes)
    this.#data.delete(version)
  }
}

function ownerWithoutReaders({ producer, alive, isTransient }: Intermediate): Intermediate['owner'] {
  if (!isTransient) return null
  return alive ? 'running' : producer
}

export const temporaryOutputs = (task: Task): Version[] =>
  task.accesses.flatMap(({ write }) => (write?.datum.temporary && write.datum.path !== null ? [write] : []))
