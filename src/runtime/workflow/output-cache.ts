import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { OutputCache } from '../../flow/run/cache.ts'
import { NO_FILE } from '../../flow/plan/work.ts'
import type { Work } from '../../flow/plan/work.ts'
import type { FileTable } from '../../flow/state/file-table.ts'
import { mapAtOnce } from '../../general/at-once.ts'
import { digestOf, hexOf } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import { ENTRY, STORE_VERSION } from '../../store/format.ts'
import { Store } from '../../store/store.ts'
import { digestOfContent } from '../resume/digests.ts'
import { FileDigests } from '../resume/file-digests.ts'
import type { Content } from '../resume/file-digests.ts'
import { objectsIn, readRecord, writeRecord } from '../resume/record.ts'
import type { Output } from '../resume/record.ts'
import { cacheOf, limitOf, makeRoom } from '../resume/shared-store.ts'
import { Stores } from '../resume/stores.ts'

const AT_ONCE = 8
/** What was made is written together with what is made soon after; milliseconds. */
const PAUSE = 50

/** The cache of workflows: their outputs are results in the same store, and in the same format, as those of tasks. */
export class StoreCache implements OutputCache {
  readonly #store: Store
  readonly #stores: Stores
  readonly #contents: FileDigests
  readonly #root: string
  readonly #files: FileTable
  readonly #keep: string | undefined
  readonly #inputs = new Map<Work, Digest[]>()
  #timer: NodeJS.Timeout | null = null

  /** `cache` as the user writes it: a path, and `:ro` behind it where the store is only read. */
  constructor(cache: string, keep: string | undefined, root: string, files: FileTable) {
    const { path, isReadOnly } = cacheOf(cache)
    limitOf(keep)
    this.#store = Store.open(path, { isReadOnly })
    this.#stores = new Stores(this.#store, [])
    this.#contents = new FileDigests(this.#stores)
    this.#keep = keep
    this.#root = root
    this.#files = files
  }

  async keyOf(work: Work): Promise<Digest | null> {
    const names = work.inputs.map(input => (input === NO_FILE ? null : this.#files.path(input)))
    const digests = await mapAtOnce(AT_ONCE, names, name => (name === null ? NO_INPUT : this.#digestOf(name)))
    if (!digests.every(digest => digest !== null)) return null
    this.#inputs.set(work, digests)
    const outputs = work.outputs.map(output => this.#files.path(output))
    return digestOf(JSON.stringify([STORE_VERSION, 'rule', work.text, names, digests.map(hexOf), outputs]))
  }

  async #digestOf(name: string): Promise<Digest | null> {
    const path = resolve(this.#root, name)
    const content = await this.#contents.now(path)
    if (content) return digestOfContent(content)?.digest ?? null
    // Of pipes and devices only the name counts.
    const stats = await lstat(path).catch(() => null)
    return stats && !stats.isFile() && !stats.isDirectory() && !stats.isSymbolicLink() ? NO_INPUT : null
  }

  async restore(key: Digest, work: Work, staged: readonly string[]): Promise<boolean> {
    const bytes = this.#stores.find(ENTRY.result, key)
    if (!bytes) return false
    const places = staged.map(path => resolve(this.#root, path))
    const { outputs } = readRecord(bytes)
    try {
      for (const [i, output] of outputs.entries()) {
        const to = resolve(this.#root, this.#files.path(work.outputs[i] as number))
        if (!(await this.#restoreOne(output, places[i] as string, to)))
          throw new Error('it is not what was kept')
      }
      this.#store.used(key)
      this.#soon()
      this.#inputs.delete(work)
      return true
    } catch {
      // Another process may have made room, or a disk failed: the task runs, and its outputs are kept anew.
      for (const [i, place] of places.entries()) {
        await rm(place, { recursive: true, force: true })
        if (work.rule.outputs[i]?.marks.directory) await mkdir(place)
      }
      return false
    }
  }

  async #restoreOne(output: Output, place: string, to: string): Promise<boolean> {
    if (output.type === 'none') return true
    // The place of a directory is made before.
    await rm(place, { recursive: true, force: true })
    if (output.type !== 'link') return this.#contents.restore(output, place, output.type === 'directory', to)
    await symlink(output.target, place)
    return true
  }

  async store(key: Digest, work: Work, staged: readonly string[]): Promise<void> {
    const inputs = this.#inputs.get(work) ?? []
    this.#inputs.delete(work)
    if (this.#store.isReadOnly) return
    try {
      const outputs: Output[] = []
      const inside = new Map<Output, readonly Digest[]>()
      for (const path of staged) {
        const made = await this.#hold(resolve(this.#root, path))
        if (!made) return
        outputs.push(made.output)
        if (made.inside) inside.set(made.output, made.inside)
      }
      const facts = {
        kind: digestOf(`rule ${work.rule.site}`),
        code: digestOf(String(work.text)),
        args: NO_INPUT,
      }
      const record = writeRecord({ ...facts, ordinal: 0, inputs, isIgnored: false, isStream: false, outputs })
      this.#stores.put(ENTRY.result, key, record, objectsIn(outputs, inside))
      this.#soon()
    } catch {
      // It is made again where it is needed.
    }
  }

  async #hold(path: string): Promise<{ output: Output; inside?: Content['inside'] } | null> {
    const stats = await lstat(path).catch(() => null)
    if (!stats) return { output: { type: 'none' } }
    // Links stay what they are, with the text that they have: it is meant for where they will be.
    if (stats.isSymbolicLink()) return { output: { type: 'link', target: await readlink(path) } }
    const held = await this.#contents.hold(path, this.#store)
    return (await held?.read()) ?? null
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      void this.#store.flush()
    }, PAUSE)
  }

  /** Writes what is left, and makes room. */
  async end(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer)
    await this.#contents.settled()
    const { isWritten, folder } = this.#store
    await this.#store.close()
    if (isWritten && !this.#store.isReadOnly)
      await makeRoom(folder, limitOf(this.#keep), this.#keep !== undefined).catch(() => undefined)
  }
}

const NO_INPUT = digestOf('')
