import type { Version } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import { Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import { lookAt } from '../../store/file-digest.ts'
import type { Runtime } from '../runtime.ts'
import type { Content, FileDigests } from './file-digests.ts'
import { digestOfKept, isWhole } from './kept-values.ts'
import type { ValueDigest } from './kept-values.ts'

type Known = ValueDigest | Promise<ValueDigest | null>

/** What versions hold, by their digests: each is digested once. */
export class Digests {
  readonly #runtime: Runtime
  readonly #files: FileDigests
  readonly #known = new WeakMap<Version, Known>()
  /** Streams whose values are not all there. */
  readonly #streams = new WeakMap<Version, (digest: ValueDigest | null) => void>()

  constructor(runtime: Runtime, files: FileDigests) {
    this.#runtime = runtime
    this.#files = files
  }

  set(version: Version, digest: Known): void {
    this.#known.set(version, digest)
  }

  of(version: Version): Known | null {
    const known = this.#known.get(version)
    if (known) return known
    const digest = this.#make(version)
    if (digest) this.#known.set(version, digest)
    return digest
  }

  #make(version: Version): Known | null {
    const { datum, value } = version
    if (datum.path !== null) return this.#file(version)
    if (this.#runtime.channels.any && this.#runtime.channels.of(datum)) return this.#stream(version)
    // A value that is not here is in a thread, and is changed there.
    if (value === undefined || !isWhole(value as Kept)) return null
    return digestOfKept(value as Kept)
  }

  /** The file is read later, when it is free; until then it must look as it does now. */
  async #file(version: Version): Promise<ValueDigest | null> {
    const { store } = this.#runtime.files
    const path = store.pathOf(version)
    const look = await lookAt(path)
    if (!look) return null
    const content = await this.#files.withLook(path, look)
    return digestOfContent(content)
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
