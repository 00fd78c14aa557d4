import type { Version } from '../core/data/datum.ts'
import { FORMS } from '../core/tasks/form.ts'
import { MillraceError } from '../core/errors.ts'
import type { Task } from '../core/tasks/task.ts'
import { lost } from '../core/why.ts'
import { Stored } from '../model/encoding/stored.ts'
import type { Kept } from '../model/encoding/stored.ts'
import { jobOf } from '../node/job.ts'
import { isMachineLost } from '../node/processes/command-process.ts'
import type { BufferOwnership } from '../node/threads/buffer-ownership.ts'
import type { Elsewhere } from '../node/threads/elsewhere.ts'
import type { Away } from '../storage/away.ts'
import { Location } from '../storage/location.ts'
import { HeldFiles, isResult, lookOf } from './held-files.ts'
import type { Runtime } from './runtime.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  'copyOut' | 'engine' | 'files' | 'nodes' | 'note' | 'now' | 'onSettled' | 'schedule' | 'settled' | 'values'
>

/** The content of a value or file that a task made, where that is on nodes only. */
type Content = Stored | Away

/** How a value or file was made, for as long as its content is on a node only. */
interface Made {
  readonly task: Task
  readonly inputs: readonly Input[]
  readonly outputs: readonly { readonly version: Version; readonly kept: Content }[]
  /** Tasks in a row that would have to run again, at most. */
  readonly depth: number
  /** What is kept because of it, here and on nodes. */
  readonly bytes: number
}

interface Input {
  readonly version: Version
  readonly kept: Kept | undefined
  /** What tells whether a file that no task made is another one now. */
  readonly look: string | null
}

/** Files that are brought here at one time. */
const AT_ONCE = 8

/** A value that is further than this from what is here is brought here, and what it was made of can go. */
const DEEPEST = 8
const MOST_BYTES = 2 ** 30

/** It has the same effect each time, and all that it reads is known: values that are made once, by a function that calls no tasks. */
export function canRepeat(task: Task): boolean {
  const { definition } = jobOf(task)
  if (
    task.parent ||
    definition.stream ||
    definition.returns > 0 ||
    FORMS[task.kind.form].runsOn !== 'threads'
  )
    return false
  return task.accesses.every(({ mode, read, write }) => {
    const datum = (write ?? read)?.datum
    const isValue = datum !== undefined && datum.path === null && !datum.inPlace
    return isValue && !write?.team && mode !== 'concurrent' && mode !== 'commutative'
  })
}

/** The same for one that writes files, each anew, and may read others. What it does beside is done again. */
export function canRepeatFiles(task: Task): boolean {
  const { definition, slots } = jobOf(task)
  const { command, stream, returns } = definition
  if (task.parent || stream || returns > 0 || command?.hooks || command?.step !== undefined) return false
  if (FORMS[task.kind.form].runsOn === 'ranks') return false
  return task.accesses.every(({ mode, read, write }, i) => {
    if (slots[i]?.stream || write?.team || read?.growth || write?.growth) return false
    return mode === 'in' || (mode === 'out' && !write?.datum.inPlace)
  })
}

/**
 * Values and files that stayed on the node which made them, and how. When a node is lost, those that are still needed and are nowhere else
 * are made again, from the same inputs; so are inputs that were lost with it.
 */
export class Lineage {
  readonly #runtime: Uses
  readonly #buffers: BufferOwnership
  /** Inputs are held as long as what was made of them. */
  readonly #made = new WeakMap<Content, Made>()
  /** Values that were lost, by the version that had them, and what was made in their place: what was made of the old one may be made of the new one. */
  readonly #lostOf = new WeakMap<Version, Stored>()
  readonly #remade = new WeakMap<Stored, Kept>()
  /** What is not referred to any more is not made again. */
  readonly #known = new Set<WeakRef<Stored>>()
  readonly #unused = new FinalizationRegistry<WeakRef<Stored>>(ref => this.#known.delete(ref))
  readonly #files: HeldFiles
  /** By other versions that such a task made: who waits for them wants the files, too. */
  readonly #beside = new WeakMap<Version, readonly Version[]>()

  constructor(runtime: Uses, buffers: BufferOwnership) {
    this.#runtime = runtime
    this.#buffers = buffers
    this.#files = new HeldFiles(
      version => runtime.engine.hold(version),
      version => {
        runtime.engine.letGo(version, runtime.now())
        runtime.schedule()
      },
      version => runtime.files.store.here(version),
    )
  }

  /** There are other machines. */
  begin(elsewhere: Elsewhere): void {
    this.#buffers.elsewhere = elsewhere
  }

  /** The task has ended well, and nothing that it read has been dropped. */
  finished(task: Task): void {
    if (!this.#buffers.elsewhere) return
    for (const { write } of task.accesses) if (write && !write.settled) this.#noteRemade(write)
    const outputs = task.accesses.flatMap(({ write }) => {
      // What is made once more beside what was lost is settled, and known.
      if (!write || write.settled) return []
      const kept = this.#awayIn(write)
      return kept ? [{ version: write, kept }] : []
    })
    if (outputs.length === 0) return
    const inputs = task.accesses.flatMap(({ read }): Input[] =>
      read ? [{ version: read, kept: read.value as Kept | undefined, look: lookOf(read) }] : [],
    )
    let depth = 1
    let bytes = sum(outputs.map(({ kept }) => bytesOf(kept)))
    for (const { version, kept } of inputs) {
      const content = kept instanceof Stored ? kept : this.#awayIn(version)
      if (!content) continue
      const before = this.#made.get(content)
      depth = Math.max(depth, 1 + (before?.depth ?? 0))
      bytes += before?.bytes ?? bytesOf(content)
    }
    const made: Made = { task, inputs, outputs, depth, bytes }
    const isFar = depth >= DEEPEST || bytes > MOST_BYTES
    const files: Version[] = []
    for (const { version, kept } of outputs) {
      this.#made.set(kept, made)
      if (!(kept instanceof Stored)) {
        files.push(version)
        continue
      }
      const ref = new WeakRef(kept)
      this.#known.add(ref)
      this.#unused.register(kept, ref)
      if (isFar) void this.#home(kept).catch(() => undefined)
    }
    if (files.length === 0) return
    this.#files.add(
      files,
      inputs.map(({ version }) => version),
    )
    for (const { write } of task.accesses) if (write && !files.includes(write)) this.#beside.set(write, files)
    if (isFar)
      for (const version of files) if (isResult(version)) void this.here(version).catch(() => undefined)
  }

  #noteRemade(version: Version): void {
    const old = this.#lostOf.get(version)
    if (!old) return
    this.#lostOf.delete(version)
    this.#remade.set(old, version.value as Kept)
  }

  /** The value itself, or what was made in its place. */
  #newest(kept: Kept | undefined): Kept | undefined {
    let newest = kept
    while (newest instanceof Stored && this.#remade.has(newest)) newest = this.#remade.get(newest)
    return newest
  }

  /** What it holds is on nodes only. */
  #awayIn({ value }: Version): Content | null {
    if (value instanceof Location) return value.away
    return value instanceof Stored && this.#isAway(value) ? value : null
  }

  // --- files ---

  /** Brings a file to its path, where it is on nodes only. One that is lost is made again first. */
  async here(version: Version): Promise<void> {
    // Connections to agents keep no process alive.
    const alive = setInterval(() => undefined, 1000)
    try {
      for (;;) {
        try {
          return await this.#runtime.files.store.here(version)
        } catch (error) {
          if (!isMachineLost(error)) throw error
        }
        this.want(version)
        await this.#runtime.settled(version)
        if (version.state !== 'ready') await this.#runtime.values.throwFor(version)
      }
    } finally {
      clearInterval(alive)
    }
  }

  /** Who waits for this has waited for the files that were made beside it. Null where there are none. */
  filesBeside(version: Version): Promise<unknown> | null {
    const files = this.#beside.get(version)?.filter(one => isResult(one) && this.#awayIn(one))
    return files && files.length > 0 ? Promise.all(files.map(one => this.here(one))) : null
  }

  /** All files that the user named come to their paths. */
  async bringResults(): Promise<void> {
    const failed = new Map<Version, unknown>()
    for (;;) {
      const left = this.#files.all.flatMap(({ version }) =>
        isResult(version) && !failed.has(version) ? [version] : [],
      )
      if (left.length === 0) break
      const bring = async (): Promise<void> => {
        for (let next = left.pop(); next; next = left.pop()) {
          const version = next
          await this.here(version).catch((error: unknown) => failed.set(version, error))
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, bring))
    }
    for (const error of failed.values()) {
      if (failed.size === 1 || !(error instanceof MillraceError) || error.code !== 'MR_TRANSFER') throw error
      const text = `${error.shortMessage}; ${failed.size} results in all did not come`
      throw new MillraceError('MR_TRANSFER', text, { cause: error })
    }
  }

  /** Nothing comes, or is made again, any more. */
  async end(): Promise<void> {
    const { store } = this.#runtime.files
    await Promise.all(this.#files.all.map(({ location }) => store.lost(location, true)))
  }

  /** It is to go: what was made of it, and may be lost, comes here before. */
  async free(version: Version): Promise<void> {
    await Promise.all(this.#files.madeOf(version).map(one => this.here(one.version).catch(() => undefined)))
  }

  /** The task has written anew what others were made of. */
  overwritten({ accesses }: Task): void {
    for (const { write } of accesses) {
      const old = write ? this.#files.obsolete(write.datum) : []
      if (old.length === 0) continue
      const { datum } = write as Version
      void Promise.all(old.map(version => this.free(version)))
        .then(() => this.#runtime.files.tasks.publishLatest(datum))
        .catch(() => undefined)
    }
  }

  // --- values ---

  isAway(version: Version): boolean {
    return this.#awayIn(version) !== null
  }

  /** Gets it, where it is on nodes only; null where it is here. */
  home({ value }: Version): Promise<unknown> | null {
    return value instanceof Stored && this.#isAway(value) ? this.#home(value) : null
  }

  /** A copy of a value for the program: it comes here now, and is made again if it is lost on its way. */
  async arrived(version: Version, coming: Promise<Kept>): Promise<Kept> {
    const stored = version.value
    if (!(stored instanceof Stored)) return coming
    const { engine } = this.#runtime
    // A task may have written the next version meanwhile.
    engine.hold(version)
    // Connections to agents keep no process alive.
    const alive = setInterval(() => undefined, 1000)
    try {
      const kept = await coming
      this.#made.delete(stored)
      return kept
    } catch (error) {
      if (!isMachineLost(error)) throw error
      this.want(version)
      // It may be lost once more as soon as it is made.
      do await new Promise<void>(resolve => this.#runtime.onSettled(version, resolve))
      while (!version.settled)
      if (version.state !== 'ready') await this.#runtime.values.throwFor(version)
      return await this.#runtime.copyOut(version)
    } finally {
      clearInterval(alive)
      engine.letGo(version, this.#runtime.now())
      this.#runtime.schedule()
    }
  }

  /** A node will end: what only it has comes here. Resolves when that is done. */
  async leave(node: number): Promise<void> {
    const { elsewhere } = this.#buffers
    const homes: Promise<unknown>[] = []
    for (const ref of this.#known) {
      const kept = ref.deref()
      if (kept?.blobs.some(blob => elsewhere?.isOnlyOn(blob, node))) homes.push(this.#home(kept))
    }
    for (const { version, away } of this.#files.all) {
      if (away.isOnlyOn(node)) homes.push(this.here(version))
    }
    await Promise.allSettled(homes)
  }

  /** A node was lost. What is not needed now is made again when it is asked for. */
  lost(name: string): void {
    const needed: Content[] = []
    for (const ref of this.#known) {
      const kept = ref.deref()
      if (kept && this.#isLost(kept) && this.#isNeeded(kept)) needed.push(kept)
    }
    for (const { version, away } of this.#files.all) {
      if (away.isLost && (isResult(version) || this.#files.isRead(version))) needed.push(away)
    }
    const count = this.#repair(needed)
    if (count === 0) return
    const values = count === 1 ? 'a result that was' : `${count} results that were`
    this.#runtime.note('warning', `${values} only on node ${name} will be made again`)
  }

  /** It is wanted, and may have been lost. One that cannot be made again is gone. */
  want(version: Version): void {
    const kept = version.state === 'ready' ? this.#awayIn(version) : null
    if (!kept || !this.#isLost(kept) || this.#repair([kept]) > 0) return
    const { value } = version
    if (value instanceof Location) void this.#runtime.files.store.lost(value, true)
    else version.value = undefined
  }

  /** Returns the number of values that are made again. */
  #repair(needed: readonly Content[]): number {
    const unmade = new Set<Version>()
    for (const kept of needed) this.#makeAgain(kept, unmade)
    if (unmade.size === 0) return 0
    for (const node of this.#runtime.nodes.all) node.inputsLost(unmade, WHY)
    this.#runtime.schedule()
    return unmade.size
  }

  #isNeeded(kept: Stored): boolean {
    const own = this.#made.get(kept)?.outputs.find(output => output.kept === kept)
    return (own?.version.readers ?? 0) > 0
  }

  /** Inputs first: their readers then wait for them. */
  #makeAgain(kept: Content, unmade: Set<Version>): void {
    const made = this.#made.get(kept)
    if (!made || made.inputs.some(isOther)) return
    const gone = made.outputs.filter(output => this.#isLost(output.kept))
    for (const output of gone) {
      this.#made.delete(output.kept)
      if (output.kept instanceof Stored) this.#lostOf.set(output.version, output.kept)
    }
    for (const { version, kept: first } of made.inputs) {
      if (version.state !== 'ready') continue
      const { value } = version
      const input = this.#newest(first)
      if (version.datum.path !== null) {
        const away = this.#awayIn(version)
        if (away && this.#isLost(away)) this.#makeAgain(away, unmade)
        continue
      }
      if (value instanceof Stored ? !this.#isLost(value) : value !== undefined) continue
      if (input instanceof Stored && this.#isLost(input)) this.#makeAgain(input, unmade)
      else version.value = input
    }
    const versions = gone.map(({ version }) => version)
    const locations = versions.flatMap(({ value }) => (value instanceof Location ? [value] : []))
    for (const version of versions) unmade.add(version)
    this.#runtime.engine.makeAgain(made.task, versions, this.#runtime.now())
    for (const location of locations) void this.#runtime.files.store.lost(location)
  }

  async #home(kept: Stored): Promise<void> {
    await this.#buffers.home(kept)
    this.#made.delete(kept)
  }

  #isAway({ blobs }: Stored): boolean {
    return blobs.some(blob => this.#buffers.elsewhere?.isAway(blob))
  }

  #isLost(kept: Content): boolean {
    if (!(kept instanceof Stored)) return kept.isLost
    return kept.blobs.some(blob => this.#buffers.elsewhere?.isLost(blob))
  }
}

const WHY = lost('what it reads was lost with a node')

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)

const bytesOf = (kept: Content): number =>
  kept instanceof Stored ? kept.bytes.length + sum(kept.blobs.map(one => one.byteLength)) : kept.bytes

/** The program has changed it. */
const isOther = ({ version, look }: Input): boolean => look !== null && lookOf(version) !== look
