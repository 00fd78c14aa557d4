import type { Heap } from '../../general/heap.ts'
import type { Growth } from './growing.ts'
import type { Place } from '../io/task-io.ts'
import type { Task } from '../tasks/task.ts'

/**
 * Whatever passes between two pieces of work is a datum; each write gives it a new version. Tasks wait on
 * versions, never on the tasks that make them, so that a version can be committed before its producer ends.
 */

export type VersionState = 'pending' | 'ready' | 'failed' | 'cancelled'

export type AccessMode = 'in' | 'out' | 'inout' | 'concurrent' | 'commutative'

let lastId = 0

export class Datum {
  /** The version that the next reader in program order sees. */
  current: Version
  /** The path, for files and directories. */
  readonly path: string | null
  #flags = 0
  /** In-place memory: the tasks that use it and have not ended. */
  readonly users: Set<Task> | null

  /** `exists`: it has a value already; a result does not, until its task has made it. */
  constructor(path: string | null = null, inPlace = false, exists = true) {
    this.path = path
    this.users = inPlace ? new Set() : null
    this.current = new Version(this, null)
    if (exists) this.current.state = 'ready'
  }

  /**
   * Memory that exists once and is written in place (`shared`): versions cannot remove WAR and WAW there,
   * so a writer also waits for older readers.
   */
  get inPlace(): boolean {
    return this.users !== null
  }

  get removed(): boolean {
    return (this.#flags & 1) !== 0
  }
  set removed(is: boolean) {
    this.#flags = is ? this.#flags | 1 : this.#flags & ~1
  }

  /** A file that is deleted after its last reader: it counts as an intermediate. */
  get temporary(): boolean {
    return (this.#flags & 2) !== 0
  }
  set temporary(is: boolean) {
    this.#flags = is ? this.#flags | 2 : this.#flags & ~2
  }

  /** A temporary file that comes to its path only when the program asks for it. */
  get aside(): boolean {
    return (this.#flags & 4) !== 0
  }
  set aside(is: boolean) {
    this.#flags = is ? this.#flags | 4 : this.#flags & ~4
  }
}

/** What is true of a version, in one number: there are millions, and each field takes eight bytes. */
const WATCHED = 1
const READERS_WATCHED = 2
const SUPERSEDED = 4
const OBSOLETE = 8
/** The bits above these are the version's number. */
const NUMBER = 4
const MOST_NUMBER = 2 ** 26

interface Rare {
  afterReaders: Task[] | null
  cause: Task | null
  team: Team | null
  growth: Growth | null
  place: Place | null
}

export class Version {
  readonly id = ++lastId
  readonly datum: Datum
  state: VersionState = 'pending'
  /** The task that makes it; null once committed, for initial values, and for teams. */
  producer: Task | null = null
  /** The version before, until this one is committed: what the datum falls back to when this one fails. */
  previous: Version | null
  /** Tasks that read it and have not ended. */
  readers = 0
  /** Tasks that cannot start before it is committed. */
  waiters: Task[] | null = null
  #flags = 0
  /** What most versions never have; there are millions of them, and each is moved about in memory. */
  #rare: Rare | null = null
  /** What the runtime keeps for it; the core never looks inside. `undefined` means nothing is kept. */
  value: unknown = undefined

  constructor(datum: Datum, previous: Version | null) {
    this.datum = datum
    this.previous = previous
    if (previous) this.#flags = Math.min(previous.number + 1, MOST_NUMBER) << NUMBER
  }

  /** Writes before it, in program order, counted from what is not written by a task: equal in every run. */
  get number(): number {
    return this.#flags >> NUMBER
  }

  /** Writers of in-place memory that cannot start before its readers have ended. */
  get afterReaders(): Task[] | null {
    return this.#rare === null ? null : this.#rare.afterReaders
  }
  set afterReaders(tasks: Task[] | null) {
    if (this.#rare || tasks) this.#more.afterReaders = tasks
  }

  /** The failed or cancelled task because of which it never came. */
  get cause(): Task | null {
    return this.#rare === null ? null : this.#rare.cause
  }
  set cause(task: Task | null) {
    if (this.#rare || task) this.#more.cause = task
  }

  get team(): Team | null {
    return this.#rare === null ? null : this.#rare.team
  }
  set team(team: Team | null) {
    if (this.#rare || team) this.#more.team = team
  }

  /** Files that may be read as they grow. */
  get growth(): Growth | null {
    return this.#rare === null ? null : this.#rare.growth
  }
  set growth(growth: Growth | null) {
    if (this.#rare || growth) this.#more.growth = growth
  }

  /** Files: the device that it lies on, or is being written to, if the core knows. */
  get place(): Place | null {
    return this.#rare === null ? null : this.#rare.place
  }
  set place(place: Place | null) {
    if (this.#rare || place) this.#more.place = place
  }

  get #more(): Rare {
    return (this.#rare ??= { afterReaders: null, cause: null, team: null, growth: null, place: null })
  }

  get settled(): boolean {
    return this.state !== 'pending'
  }

  /** Someone outside the graph wants to be told when it is settled. */
  get watched(): boolean {
    return (this.#flags & WATCHED) !== 0
  }
  set watched(is: boolean) {
    this.#set(WATCHED, is)
  }

  get readersWatched(): boolean {
    return (this.#flags & READERS_WATCHED) !== 0
  }
  set readersWatched(is: boolean) {
    this.#set(READERS_WATCHED, is)
  }

  /** A newer version exists, so no reader will join. */
  get superseded(): boolean {
    return (this.#flags & SUPERSEDED) !== 0
  }
  set superseded(is: boolean) {
    this.#set(SUPERSEDED, is)
  }

  /** A newer version is committed, or the datum was removed: nothing can fall back to this one. */
  get obsolete(): boolean {
    return (this.#flags & OBSOLETE) !== 0
  }
  set obsolete(is: boolean) {
    this.#set(OBSOLETE, is)
  }

  #set(flag: number, is: boolean): void {
    this.#flags = is ? this.#flags | flag : this.#flags & ~flag
  }
}

/**
 * Tasks that make one version together: CONCURRENT ones at the same time, COMMUTATIVE ones one at a time in
 * any order. A team is closed by the first access of another kind; only then can its version be committed.
 */
export class Team {
  readonly mode: 'concurrent' | 'commutative'
  readonly base: Version
  /** Members that have not ended; a team may stay open for a whole run, so the others are let go. */
  readonly tasks = new Set<Task>()
  /** How often they use it: a task may use one datum twice. */
  live = 0
  newest: Task | null = null
  closed = false
  /** COMMUTATIVE: the member that runs now. */
  holder: Task | null = null
  /** CONCURRENT on memory, with several nodes: members that run now, all on one node. */
  together: Set<Task> | null = null
  #node = -1
  /** Members that are ready but for the holder, or for those on another node, and some that were cancelled since. */
  parked: Heap<Task> | null = null
  failed: Task | null = null

  constructor(mode: 'concurrent' | 'commutative', base: Version) {
    this.mode = mode
    this.base = base
  }

  /** The node of the CONCURRENT members that run, if there are any. */
  get node(): number | null {
    return this.together && this.together.size > 0 ? this.#node : null
  }

  /** A member runs on the node, and keeps others from running elsewhere. */
  runsOn(node: number, task: Task): void {
    this.#node = node
    ;(this.together ??= new Set()).add(task)
  }
}

/** One task's use of one datum. */
export interface Access {
  readonly mode: AccessMode
  /** The version it sees; null for `out`. */
  readonly read: Version | null
  /** The version it makes, alone or with its team; null for `in`. */
  readonly write: Version | null
}

/** The version whose value a member of a team, or any other reader, starts from. */
export function source(access: Access): Version | null {
  const { read, write } = access
  return write?.team && write.value !== undefined ? write : read
}

/** The file or directory that is used; null for values. */
export const pathIn = ({ read, write }: Access): string | null => (write ?? read)?.datum.path ?? null

/** The nearest version, from `version` back, that still has or will have a value. */
export function nearestValid(version: Version): Version {
  let at = version
  while ((at.state === 'failed' || at.state === 'cancelled') && at.previous) at = at.previous
  return at
}

/** The first version that is still known. */
export function oldest(version: Version): Version {
  let at = version
  while (at.previous) at = at.previous
  return at
}
