import { statSync } from 'node:fs'
import type { Access, Version } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import { jobOf } from '../../node/job.ts'
import { Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import { sameDigest } from '../../store/digest.ts'
import { lookAt, writtenOf } from '../../store/file-digest.ts'
import type { Runtime } from '../runtime.ts'
import type { Content, FileDigests } from './file-digests.ts'
import { digestOfKept, isWhole } from './kept-values.ts'
import type { ValueDigest } from './kept-values.ts'

type Known = ValueDigest | Promise<ValueDigest | null>

/** What versions hold, by their digests: each is digested once. */
export class Digests {
  readonly #runtime: Runtime
  readonly #files: FileDigests
  /** Of values; what is known of a file is with its location. */
  readonly #known = new WeakMap<Version, Known>()
  /** Looks of this moment: those who ask together share one. */
  readonly #looking = new Map<Version, Known>()
  /** Streams whose values are not all there. */
  readonly #streams = new WeakMap<Version, (digest: ValueDigest | null) => void>()

  constructor(runtime: Runtime, files: FileDigests) {
    this.#runtime = runtime
    this.#files = files
  }

  set(version: Version, digest: Known): void {
    const { value } = version
    const isStream = this.#isStream(version)
    // A map of all versions would cost more than all the rest.
    if (!isStream && value instanceof Stored && !value.exclusive) value.known = digest
    else if (isStream || value === undefined || value instanceof Stored) this.#known.set(version, digest)
  }

  /** A file or directory that is in its place, with what it looks like there; `written`: until more is known. */
  setFile(version: Version, content: Content | null | Promise<Content | null>, written?: string): void {
    const file = this.#fileOf(version)
    if (written !== undefined) file.written = written
    if (content && !(content instanceof Promise)) {
      const seen = seenAs(content) as Seen
      file.digest = seen.digest
      file.seen = seen
      return
    }
    file.digest = Promise.resolve(content).then(digestOfContent)
    file.seen = Promise.resolve(content).then(seenAs)
  }

  /** `isTaken`: a task that writes over it may begin at once, and then it is no longer where it was. */
  of(version: Version, isTaken = false): Known | null {
    if (version.datum.path !== null) return isTaken ? this.#taken(version) : this.#file(version)
    const { value } = version
    const own = value instanceof Stored && !this.#isStream(version) ? (value.known as Known | null) : null
    const known = own ?? this.#known.get(version)
    if (known) return known
    const digest = this.#make(version)
    if (digest) this.set(version, digest)
    return digest
  }

  #make(version: Version): Known | null {
    const { value } = version
    if (this.#isStream(version)) return this.#stream(version)
    // A value that is not here is in a thread, and is changed there.
    if (value === undefined || !isWhole(value as Kept)) return null
    const coming = this.#runtime.lineage.home(version)
    if (!coming) return digestOfKept(value as Kept)
    return coming.then(
      () => digestOfKept(value as Kept),
      () => null,
    )
  }

  // --- files ---

  #fileOf(version: Version): KnownFile {
    const location = this.#runtime.files.store.locations.of(version)
    return (location.known ??= new KnownFile()) as KnownFile
  }

  /** The program itself may write to a file between two tasks: each time it is looked at. Those who ask together share a look. */
  #file(version: Version): Known {
    const path = this.#runtime.files.store.pathOf(version)
    const known = this.#fileOf(version).digest
    if (known && path !== version.datum.path) return known
    let look = this.#looking.get(version)
    if (look) return look
    if (this.#looking.size === 0) queueMicrotask(() => this.#looking.clear())
    look = this.#atOnce(version, path) ?? this.#fileNow(version, path, Date.now())
    this.#looking.set(version, look)
    return look
  }

  /** Null when that takes longer. */
  #atOnce(version: Version, path: string): ValueDigest | null {
    const content = this.#files.atOnce(path)
    if (!content) return null
    const found = seenAs(content)
    if (found) this.#fileOf(version).seen = found
    return found?.digest ?? null
  }

  /** What was made for it, unless the program has written to it since. There is no time to read it. */
  #taken(version: Version): Known | null {
    const { digest: known, written } = this.#fileOf(version)
    if (!known) return this.#file(version)
    const path = this.#runtime.files.store.pathOf(version)
    if (written === null || path !== version.datum.path) return known
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stats && (stats.isDirectory() || writtenOf(stats) === written) ? known : null
  }

  async #fileNow(version: Version, path: string, asked: number): Promise<ValueDigest | null> {
    const seen = await this.#fileOf(version).seen
    const look = await lookAt(path).catch(() => null)
    if (!look) return null
    if (seen?.look === look.text) return seen.digest
    // A task may have begun to read it before that change.
    if (look.changed > asked) return null
    const found = await this.#files.withLook(path, look).then(seenAs)
    if (found) this.#fileOf(version).seen = found
    return found?.digest ?? null
  }

  /** The files that a task has read hold what they held when it began. */
  areStill(task: Task, inputs: readonly ValueDigest[]): true | Promise<boolean> {
    const { slots } = jobOf(task)
    const checks: Promise<boolean>[] = []
    let next = 0
    for (let i = 0; i < slots.length; i++) {
      const { read, write } = task.accesses[i] as Access
      if (!read) continue
      const before = inputs[next++]
      // A task that writes it may have put the next version in its place by then.
      if (write || read.datum.path === null || read.datum.current !== read) continue
      checks.push(
        Promise.resolve(this.#file(read)).then(
          now =>
            read.datum.current !== read || Boolean(now && before && sameDigest(now.digest, before.digest)),
        ),
      )
    }
    return checks.length === 0 || Promise.all(checks).then(all => all.every(Boolean))
  }

  // --- values of generators ---

  /** It takes a stream whose values are not all known. */
  isStreaming(task: Task): boolean {
    if (!this.#runtime.channels.any) return false
    return task.accesses.some(
      ({ read }) =>
        read && this.#runtime.channels.of(read.datum) && (!this.#known.has(read) || this.#streams.has(read)),
    )
  }

  #isStream({ datum }: Version): boolean {
    const { channels } = this.#runtime
    return channels.any && Boolean(channels.of(datum))
  }

  #stream(version: Version): Promise<ValueDigest | null> {
    return new Promise(resolve => this.#streams.set(version, resolve))
  }

  /** All values of a stream are there; null when they will never be known. */
  streamEnded(version: Version, digest: ValueDigest | null): void {
    this.#streams.get(version)?.(digest)
    this.#streams.delete(version)
    if (digest) this.#known.set(version, digest)
  }

  // --- values that exist once ---

  /** Plain buffers are lent and moved from now on: what is in them is digested while they are here. */
  made(task: Task): void {
    for (const { write } of task.accesses) {
      const value = write?.value
      if (write && value instanceof Stored && value.exclusive) void this.of(write)
    }
  }
}

/** What is known of a version of a file. */
class KnownFile {
  digest: Known | null = null
  /** What it looked like when its digest was taken. */
  seen: Seen | null | Promise<Seen | null> = null
  /** Until more is known. */
  written: string | null = null
}

interface Seen {
  readonly look: string | null
  readonly digest: ValueDigest
}

function seenAs(content: Content | null): Seen | null {
  const digest = digestOfContent(content)
  return digest && { look: content?.look ?? null, digest }
}

/** A script that may be run is not the same as one that may not. */
const withMode = (digest: Buffer, isExecutable: boolean): Buffer => {
  if (!isExecutable) return digest
  const mixed = Buffer.from(digest)
  mixed[0] = (mixed[0] as number) ^ 0x80
  return mixed
}

export function digestOfContent(content: Content | null): ValueDigest | null {
  if (!content) return null
  const { digest, output } = content
  return { digest: withMode(digest, output.type === 'file' && output.isExecutable), hasClasses: false }
}
