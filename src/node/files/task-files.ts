import { basename, dirname, join, relative } from 'node:path'
import { nearestValid, pathIn, source } from '../../core/data/datum.ts'
import type { Access, Datum, Version } from '../../core/data/datum.ts'
import type { Kind, Task } from '../../core/tasks/task.ts'
import type { KeptSlot } from '../../model/capture/call.ts'
import type { CommandHooks } from '../../model/command-form.ts'
import type { FileStore } from '../../storage/file-store.ts'
import type { Away } from '../../storage/away.ts'
import { Location } from '../../storage/location.ts'
import type { EarlyFiles } from './early-files.ts'
import { attemptOf, jobOf } from '../job.ts'
import type { NodeHost } from '../node.ts'
import type { Streaming } from './streaming.ts'

type Versions = Pick<NodeHost, 'settled' | 'unread' | 'taskCount' | 'dataInside' | 'remove' | 'here'>

/** The files of tasks: where an attempt reads and writes them, and what becomes of what it wrote. */
export class TaskFiles {
  readonly store: FileStore
  readonly #versions: Versions
  readonly #streaming: Streaming
  readonly #early: EarlyFiles

  readonly #warn: (text: string) => void
  readonly #toldOf = new Set<Kind>()

  constructor(
    store: FileStore,
    versions: Versions,
    streaming: Streaming,
    early: EarlyFiles,
    warn: (text: string) => void,
  ) {
    this.#warn = warn
    this.store = store
    this.#versions = versions
    this.#streaming = streaming
    this.#early = early
  }

  /** Makes the files of an attempt ready; null when it has none. */
  prepare(task: Task): Promise<void> | null {
    const { slots } = jobOf(task)
    return slots.some(slot => slot.kind !== 'value') ? this.#prepare(task) : null
  }

  async #prepare(task: Task): Promise<void> {
    const { slots } = jobOf(task)
    const paths: (string | null)[] = []
    attemptOf(task).paths = paths
    this.#streaming.begins(task)
    for (let i = 0; i < slots.length; i++) paths[i] = await this.pathOf(task, i, paths)
  }

  async pathOf(task: Task, i: number, earlier: readonly (string | null)[]): Promise<string | null> {
    const slot = jobOf(task).slots[i] as KeptSlot
    if (slot.kind === 'value') return null
    const access = task.accesses[i] as Access
    const { read, write, mode } = access
    const own = pathIn(access) ?? ''
    const hooks = hooksOf(task)
    // What a function of a workflow does, it does here.
    const isFar = attemptOf(task).isApart && !hooks
    if (!write) {
      const known = hooks?.bytesOf(own) ?? null
      const path =
        this.#streaming.pathOf(read as Version) ??
        this.#pathThere(task, i, isFar) ??
        (slot.kind === 'directory' && !hooks
          ? await this.store.readFolder(read as Version, task.accesses, task.id)
          : await this.store.read(read as Version, task.id, !hooks, known))
      return slot.named && path === own ? slot.named : path
    }
    if (slot.stream) return this.#streaming.stage(task, write)
    const directory = slot.kind === 'directory'
    if (mode === 'concurrent') return this.#sharedStage(access, directory)
    const from = mode === 'out' ? null : source(access)
    // What a workflow makes is stamped beside its final place.
    if (hooks) return this.store.stage(write, directory, from, null, besideOf(task, i, earlier))
    const away = isFar && from ? this.store.awayOf(from) : null
    if (away) attemptOf(task).noteAway(i, away)
    const copied = away ? null : from
    return this.store.stage(write, directory, copied, task.io?.device ?? null, null, task.accesses)
  }

  /** What is on nodes only goes from there to the node of the task. It may come here meanwhile. */
  #pathThere(task: Task, i: number, isFar: boolean): string | null {
    const read = (task.accesses[i] as Access).read as Version
    const away = isFar ? this.store.awayOf(read) : null
    const path = away && this.store.pathThere(read, task.accesses)
    if (path !== null) attemptOf(task).noteAway(i, away as Away)
    return path
  }

  /** CONCURRENT tasks write one file together. */
  async #sharedStage({ read, write }: Access, directory: boolean): Promise<string> {
    const version = write as Version
    if (version.value === undefined) {
      const made = this.store.stage(version, directory, read)
      version.value = made
      const location = this.store.locations.of(version)
      location.stage(await made)
      version.value = location
    }
    if (version.value instanceof Promise) return version.value as Promise<string>
    return this.store.pathOf(version)
  }

  async commit(task: Task, onlyExisting = false): Promise<void> {
    const { slots } = jobOf(task)
    const { paths, stayed } = attemptOf(task)
    if (!paths) return
    const outputs: { write: Version; path: string; slot: number }[] = []
    if (slots.some(slot => slot.stream)) await this.#streaming.settle(task)
    for (let i = 0; i < slots.length; i++) {
      const { write, mode } = task.accesses[i] as Access
      const path = paths[i]
      // A stream may have been complete, and in its place, long before.
      const isDone = path && this.#streaming.isOurs(path) && write?.state !== 'pending'
      if (write && path && mode !== 'concurrent' && !isDone) outputs.push({ write, path, slot: i })
    }
    const hooks = hooksOf(task)
    if (!onlyExisting) await this.#early.expectUntouched(task)
    let known: readonly (number | null | undefined)[] = []
    if (hooks && !onlyExisting) known = await hooks.beforeCommit(jobOf(task).args, paths)
    else if (!onlyExisting) {
      for (const { write, path } of outputs)
        if (!stayed?.has(path)) await this.store.expectOutput(write, path, task.name)
    }
    // Cancelled meanwhile: then the files stay what they were.
    if (task.state === 'stopping') return
    // Programs call no tasks.
    if (!jobOf(task).definition.command) for (const one of outputs) await this.#bringCalled(one)
    for (const { write, path, slot } of outputs) {
      const away = stayed?.get(path)
      if (away && !write.settled) {
        this.store.commitAway(write, path, away)
        continue
      }
      if (away) {
        // It is made once more beside what was lost, and is not.
        away.drop()
        await this.store.drop(path)
        continue
      }
      if (write.settled) {
        if (onlyExisting) await this.store.drop(path)
        else await this.#early.expectSame(write, path)
        continue
      }
      // What members of its team have written before: each writes a copy of its own.
      const old = write.team ? asideOf(write) : null
      if (onlyExisting && !write.team && write.value instanceof Location) {
        await this.store.drop(path)
        continue
      }
      const home = this.#streaming.isOurs(path) ? await this.#streaming.bringHome(write, path) : path
      await this.store.commit(write, home, home === path ? known[slot] : null)
      if (old !== null) await this.store.drop(old)
    }
    for (const { write } of outputs) await this.#replaceInput(task, write)
    await this.#tellLeft(task, outputs)
  }

  /** Readers of what it wrote without declaring it will fail: a warning names it first, once for each kind. */
  async #tellLeft(task: Task, outputs: readonly { path: string; slot: number }[]): Promise<void> {
    const { undeclared } = this.store
    const places = outputs.map(({ path }) => dirname(path))
    if (!undeclared.isFound(places)) return
    if (this.#toldOf.has(task.kind)) return undeclared.forget(places)
    const left = await undeclared.take(places, new Set(outputs.map(({ path }) => basename(path))))
    if (!left) return
    this.#toldOf.add(task.kind)
    const beside = basename(left.path)
    const slot = outputs.find(({ path }) => basename(path) === beside)?.slot ?? 0
    const declared = hooksOf(task)?.written(jobOf(task).args, slot)
    this.#warn(leftText(task, left.names, beside, declared))
  }

  /** What tasks that it called wrote beside an output, in the staging folder, comes to the user's folder with it. */
  async #bringCalled({ write, path }: { write: Version; path: string }): Promise<void> {
    const place = dirname(path)
    const inside = this.#versions.dataInside(place)
    if (inside.length === 0) return
    for (const datum of inside) {
      const version = nearestValid(datum.current)
      const own = datum.path as string
      if (version.state === 'ready' && version.value instanceof Location && !datum.aside) {
        await this.publish(version)
        await this.store.places.bringHome(
          own,
          join(dirname(write.datum.path as string), relative(place, own)),
        )
      }
      this.#versions.remove(datum)
    }
    this.store.tidy()
  }

  /**
   * What the task has read and written anew takes the place of what it read: all its outputs are there, so it will not
   * be tried again. Others that read the old one are waited for, aside.
   */
  async #replaceInput({ accesses }: Task, version: Version): Promise<void> {
    const { value, superseded, team, datum } = version
    const isStaged = value instanceof Location && value.where.at === 'staging'
    if (!isStaged || superseded || team || datum.aside || value.away) return
    // What is in its place may be older than what it read, and then others may read it there.
    const inTheWay = await this.store.places.publish(version, false, accesses).catch(() => null)
    if (inTheWay) void this.#publishAfter(inTheWay, version).catch(() => undefined)
  }

  async #publishAfter(inTheWay: Version, version: Version): Promise<void> {
    for (let at: Version | null = inTheWay; at;) {
      await this.#versions.settled(at)
      await this.#versions.unread(at)
      const isWanted = !version.superseded && !version.datum.removed
      at = isWanted ? await this.store.places.publish(version) : null
    }
  }

  /** Discards what an attempt wrote. A stopped attempt may still be writing. */
  async drop(task: Task): Promise<void> {
    const { slots } = jobOf(task)
    const { paths, isOverdue } = attemptOf(task)
    const mayBeWritten = isOverdue || task.state === 'stopping'
    for (let i = 0; i < slots.length; i++) {
      const { write, mode } = task.accesses[i] as Access
      const path = paths?.[i]
      if (write && path && mode !== 'concurrent')
        await this.store.drop(path, mayBeWritten).catch(() => undefined)
    }
  }

  /** Resolves when no task reads the version any more. */
  unread(version: Version): Promise<void> {
    return this.#versions.unread(version)
  }

  /** Brings the version to the path that the user named. */
  async publish(version: Version): Promise<void> {
    for (;;) {
      await this.#versions.here(version)
      const inTheWay = await this.store.places.publish(version)
      if (!inTheWay) {
        await this.store.places.waited(version, this.#versions.taskCount)
        return this.store.tidy()
      }
      await this.#versions.settled(inTheWay)
      await this.#versions.unread(inTheWay)
    }
  }

  async publishLatest(datum: Datum, isAsked = false): Promise<void> {
    const version = nearestValid(datum.current)
    if (isAsked) await this.#versions.here(version)
    // What is on a node comes when it is asked for.
    const isAway = version.value instanceof Location && version.value.away !== null
    if (version.state === 'ready' && !version.superseded && !datum.removed && !isAway)
      await this.store.places.publish(version)
  }
}

/** What was left, and what to write so that it stays. */
function leftText(
  task: Task,
  names: readonly string[],
  beside: string,
  declared: string | undefined,
): string {
  const [first = ''] = names
  const more = names.length > 1 ? ` and ${names.length - 1} more` : ''
  const what = `${task.title} wrote ${first}${more} beside its output ${beside} without declaring it, so it is removed, and tasks that read it do not find it.`
  if (declared === undefined) return `${what} Give it a parameter of its own, as FILE_OUT.`
  const sibling = first.startsWith(beside)
    ? `${declared}${first.slice(beside.length)}`
    : declared.slice(0, declared.lastIndexOf('/') + 1) + first
  return `${what} Write rule(['${declared}', '${sibling}'], …).`
}

const hooksOf = (task: Task): CommandHooks | undefined => jobOf(task).definition.command?.hooks

/** The path of a version that is committed, and not at its place. */
const asideOf = ({ value }: Version): string | null =>
  value instanceof Location && value.isAside ? value.path : null

const folderOf = (task: Task, i: number): string => dirname(pathIn(task.accesses[i] as Access) ?? '')

/** Programs that write several files often derive their names from one: those of one folder stay together. */
function besideOf(task: Task, i: number, earlier: readonly (string | null)[]): string | null {
  const { slots } = jobOf(task)
  const folder = folderOf(task, i)
  for (let j = 0; j < i; j++) {
    const path = earlier[j]
    if (path && task.accesses[j]?.write && !slots[j]?.stream && folderOf(task, j) === folder)
      return dirname(path)
  }
  return null
}
