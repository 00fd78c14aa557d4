import { dirname } from 'node:path'
import { nearestValid, pathIn, source } from '../core/data.ts'
import type { Access, Datum, Version } from '../core/data.ts'
import type { Task } from '../core/task.ts'
import type { KeptSlot } from '../model/call.ts'
import type { CommandExtra, CommandHooks } from '../model/task.ts'
import { FileCopy } from '../storage/file-store.ts'
import type { FileStore } from '../storage/file-store.ts'
import type { EarlyFiles } from './early-files.ts'
import { jobOf, liveOf } from './job.ts'
import type { Runtime } from './runtime.ts'
import type { Streaming } from './streaming.ts'

/** The files of tasks: where an attempt reads and writes them, and what becomes of what it wrote. */
export class TaskFiles {
  readonly store: FileStore
  readonly #runtime: Runtime
  readonly #streaming: Streaming
  readonly #early: EarlyFiles

  constructor(store: FileStore, runtime: Runtime, streaming: Streaming, early: EarlyFiles) {
    this.store = store
    this.#runtime = runtime
    this.#streaming = streaming
    this.#early = early
  }

  async pathOf(task: Task, i: number, earlier: readonly (string | null)[]): Promise<string | null> {
    const slot = jobOf(task).slots[i] as KeptSlot
    if (slot.kind === 'value') return null
    const access = task.accesses[i] as Access
    const { read, write, mode } = access
    const own = pathIn(access) ?? ''
    const hooks = hooksOf(task)
    if (!write) {
      const known = hooks?.bytesOf(own) ?? null
      const path =
        this.#streaming.pathOf(read as Version) ?? (await this.store.read(read as Version, !hooks, known))
      return slot.named && path === own ? slot.named : path
    }
    if (slot.stream) return this.#streaming.stage(task, write)
    const directory = slot.kind === 'directory'
    if (mode === 'concurrent') return this.#sharedStage(access, directory)
    const from = mode === 'out' ? null : source(access)
    // What a workflow makes is stamped beside its final place.
    if (hooks) return this.store.stage(write, directory, from, null, besideOf(task, i, earlier))
    return this.store.stage(write, directory, from, task.io?.device ?? null)
  }

  /** CONCURRENT tasks write one file together. */
  async #sharedStage({ read, write }: Access, directory: boolean): Promise<string> {
    const version = write as Version
    if (version.value === undefined) {
      const made = this.store.stage(version, directory, read)
      version.value = made
      version.value = new FileCopy(await made, true)
    }
    if (version.value instanceof Promise) return version.value as Promise<string>
    return this.store.pathOf(version)
  }

  async commit(task: Task, onlyExisting = false): Promise<void> {
    const { slots } = jobOf(task)
    const { paths } = liveOf(task)
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
      for (const { write, path } of outputs) await this.store.expectOutput(write, path, task.name)
    }
    // Cancelled meanwhile: then the files stay what they were.
    if (task.state === 'stopping') return
    for (const { write, path, slot } of outputs) {
      if (write.settled) {
        if (onlyExisting) await this.store.drop(path)
        else await this.#early.expectSame(write, path)
        continue
      }
      const old = write.team ? write.value : undefined
      if (onlyExisting && !old && write.value instanceof FileCopy) {
        await this.store.drop(path)
        continue
      }
      const home = this.#streaming.isOurs(path) ? await this.#streaming.bringHome(write, path) : path
      await this.store.commit(write, home, home === path ? known[slot] : null)
      if (old instanceof FileCopy && old.staged) await this.store.drop(old.path)
    }
    for (const { write } of outputs) await this.#replaceInput(task, write)
  }

  /**
   * What the task has read and written anew takes the place of what it read: all its outputs are there, so it will not
   * be tried again. Others that read the old one are waited for, aside.
   */
  async #replaceInput({ accesses }: Task, version: Version): Promise<void> {
    const { value, superseded, team, datum } = version
    const isAside = value instanceof FileCopy && value.staged && value.tier === null
    if (!isAside || superseded || team || datum.temporary) return
    // What is in its place may be older than what it read, and then others may read it there.
    const inTheWay = await this.store.publish(version, false, accesses).catch(() => null)
    if (inTheWay) void this.#publishAfter(inTheWay, version).catch(() => undefined)
  }

  async #publishAfter(inTheWay: Version, version: Version): Promise<void> {
    for (let at: Version | null = inTheWay; at;) {
      await this.#runtime.settled(at)
      await this.#runtime.unread(at)
      const isWanted = !version.superseded && !version.datum.removed
      at = isWanted ? await this.store.publish(version) : null
    }
  }

  /** What an attempt has written is of no use. */
  async drop(task: Task): Promise<void> {
    const { slots } = jobOf(task)
    const { paths } = liveOf(task)
    for (let i = 0; i < slots.length; i++) {
      const { write, mode } = task.accesses[i] as Access
      const path = paths?.[i]
      if (write && path && mode !== 'concurrent') await this.store.drop(path).catch(() => undefined)
    }
  }

  /** Brings the version to the path that the user named. */
  async publish(version: Version): Promise<void> {
    for (;;) {
      const inTheWay = await this.store.publish(version)
      if (!inTheWay) return
      await this.#runtime.settled(inTheWay)
      await this.#runtime.unread(inTheWay)
    }
  }

  async publishLatest(datum: Datum): Promise<void> {
    const version = nearestValid(datum.current)
    if (version.state === 'ready' && !version.superseded && !datum.removed) await this.store.publish(version)
  }
}

const hooksOf = (task: Task): CommandHooks | undefined =>
  (jobOf(task).definition.extra as CommandExtra | null)?.hooks

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
