import type { Version } from '../core/data/datum.ts'
import type { Task } from '../core/tasks/task.ts'
import { lost } from '../core/why.ts'
import { Stored } from '../model/encoding/stored.ts'
import type { Kept } from '../model/encoding/stored.ts'
import { jobOf } from '../node/job.ts'
import { isMachineLost } from '../node/processes/command-process.ts'
import type { BufferOwnership } from '../node/threads/buffer-ownership.ts'
import type { Elsewhere } from '../node/threads/elsewhere.ts'
import type { Runtime } from './runtime.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  'copyOut' | 'engine' | 'nodes' | 'note' | 'now' | 'onSettled' | 'schedule' | 'values'
>

/** How a value was made, for as long as its content is on a node only. */
interface Made {
  readonly task: Task
  readonly inputs: readonly { readonly version: Version; readonly kept: Kept | undefined }[]
  readonly outputs: readonly { readonly version: Version; readonly kept: Stored }[]
  /** Tasks in a row that would have to run again, at most. */
  readonly depth: number
  /** What is kept because of it, here and on nodes. */
  readonly bytes: number
}

/** A value that is further than this from what is here is brought here, and what it was made of can go. */
const DEEPEST = 8
const MOST_BYTES = 2 ** 30

/** It has the same effect each time, and all that it reads is known: values that are made once, by a function that calls no tasks. */
export function canRepeat(task: Task): boolean {
  const { definition } = jobOf(task)
  if (task.parent || definition.stream || definition.returns > 0 || task.kind.form !== 'function')
    return false
  return task.accesses.every(({ mode, read, write }) => {
    const datum = (write ?? read)?.datum
    const isValue = datum !== undefined && datum.path === null && !datum.inPlace
    return isValue && !write?.team && mode !== 'concurrent' && mode !== 'commutative'
  })
}

/**
 * Values that stayed on the node which made them, and how. When a node is lost, those that are still needed and are nowhere else
 * are made again, from the same inputs; so are inputs that were lost with it.
 */
export class Lineage {
  readonly #runtime: Uses
  readonly #buffers: BufferOwnership
  /** Inputs are held as long as what was made of them. */
  readonly #made = new WeakMap<Stored, Made>()
  /** What nobody refers to any more need not be made again. */
  readonly #known = new Set<WeakRef<Stored>>()
  readonly #unused = new FinalizationRegistry<WeakRef<Stored>>(ref => this.#known.delete(ref))
  /** Values on their way to the program; a task may have written the next version meanwhile. */
  readonly #wanted = new Set<Stored>()

  constructor(runtime: Uses, buffers: BufferOwnership) {
    this.#runtime = runtime
    this.#buffers = buffers
  }

  /** There are other machines. */
  begin(elsewhere: Elsewhere): void {
    this.#buffers.elsewhere = elsewhere
  }

  /** The task has ended well, and nothing that it read has been dropped. */
  finished(task: Task): void {
    if (!this.#buffers.elsewhere) return
    const outputs = task.accesses.flatMap(({ write }) => {
      const kept = write?.value
      return write && kept instanceof Stored && this.#isAway(kept) ? [{ version: write, kept }] : []
    })
    if (outputs.length === 0) return
    const inputs = task.accesses.flatMap(({ read }) =>
      read ? [{ version: read, kept: read.value as Kept | undefined }] : [],
    )
    let depth = 1
    let bytes = sum(outputs.map(({ kept }) => bytesOf(kept)))
    for (const { kept } of inputs) {
      if (!(kept instanceof Stored)) continue
      const before = this.#made.get(kept)
      depth = Math.max(depth, 1 + (before?.depth ?? 0))
      bytes += before?.bytes ?? bytesOf(kept)
    }
    const made: Made = { task, inputs, outputs, depth, bytes }
    for (const { kept } of outputs) {
      const ref = new WeakRef(kept)
      this.#made.set(kept, made)
      this.#known.add(ref)
      this.#unused.register(kept, ref)
      if (depth >= DEEPEST || bytes > MOST_BYTES) void this.#home(kept).catch(() => undefined)
    }
  }

  isAway({ value }: Version): boolean {
    return value instanceof Stored && this.#isAway(value)
  }

  /** Gets it, where it is on nodes only; null where it is here. */
  home({ value }: Version): Promise<unknown> | null {
    return value instanceof Stored && this.#isAway(value) ? this.#home(value) : null
  }

  /** A copy of a value for the program: it comes here now, and is made again if it is lost on its way. */
  async arrived(version: Version, coming: Promise<Kept>): Promise<Kept> {
    const stored = version.value
    if (!(stored instanceof Stored)) return coming
    this.#wanted.add(stored)
    // Connections to agents keep no process alive.
    const alive = setInterval(() => undefined, 1000)
    try {
      const kept = await coming
      this.#made.delete(stored)
      return kept
    } catch (error) {
      if (!isMachineLost(error)) throw error
    } finally {
      clearInterval(alive)
      this.#wanted.delete(stored)
    }
    this.want(version)
    await new Promise<void>(resolve => this.#runtime.onSettled(version, resolve))
    if (version.state !== 'ready') await this.#runtime.values.throwFor(version)
    return this.#runtime.copyOut(version)
  }

  /** A node will end: what only it has comes here. Resolves when that is done. */
  async leave(node: number): Promise<void> {
    const { elsewhere } = this.#buffers
    const homes: Promise<unknown>[] = []
    for (const ref of this.#known) {
      const kept = ref.deref()
      if (kept?.blobs.some(blob => elsewhere?.isOnlyOn(blob, node))) homes.push(this.#home(kept))
    }
    await Promise.allSettled(homes)
  }

  /** A node was lost. What is not needed now is made again when somebody asks for it. */
  lost(name: string): void {
    const needed: Stored[] = []
    for (const ref of this.#known) {
      const kept = ref.deref()
      if (kept && this.#isLost(kept) && this.#isNeeded(kept)) needed.push(kept)
    }
    const count = this.#repair(needed)
    if (count === 0) return
    const values = count === 1 ? 'a value that was' : `${count} values that were`
    this.#runtime.note('warning', `${values} only on node ${name} will be made again`)
  }

  /** Somebody wants it, and it may have been lost. One that cannot be made again is gone. */
  want(version: Version): void {
    const { value, state } = version
    if (state !== 'ready' || !(value instanceof Stored) || !this.#isLost(value)) return
    if (this.#repair([value]) === 0) version.value = undefined
  }

  /** Returns the number of values that are made again. */
  #repair(needed: readonly Stored[]): number {
    const unmade = new Set<Version>()
    for (const kept of needed) this.#makeAgain(kept, unmade)
    if (unmade.size === 0) return 0
    for (const node of this.#runtime.nodes.all) node.inputsLost(unmade, WHY)
    this.#runtime.schedule()
    return unmade.size
  }

  #isNeeded(kept: Stored): boolean {
    const own = this.#made.get(kept)?.outputs.find(output => output.kept === kept)
    return this.#wanted.has(kept) || (own?.version.readers ?? 0) > 0
  }

  /** Inputs first: their readers then wait for them. */
  #makeAgain(kept: Stored, unmade: Set<Version>): void {
    const made = this.#made.get(kept)
    if (!made) return
    const gone = made.outputs.filter(output => this.#isLost(output.kept))
    for (const output of gone) this.#made.delete(output.kept)
    for (const { version, kept: input } of made.inputs) {
      if (version.state !== 'ready') continue
      const { value } = version
      if (value instanceof Stored ? !this.#isLost(value) : value !== undefined) continue
      if (input instanceof Stored && this.#isLost(input)) this.#makeAgain(input, unmade)
      else version.value = input
    }
    const versions = gone.map(({ version }) => version)
    for (const version of versions) unmade.add(version)
    this.#runtime.engine.makeAgain(made.task, versions, this.#runtime.now())
  }

  async #home(kept: Stored): Promise<void> {
    await this.#buffers.home(kept)
    this.#made.delete(kept)
  }

  #isAway({ blobs }: Stored): boolean {
    return blobs.some(blob => this.#buffers.elsewhere?.isAway(blob))
  }

  #isLost({ blobs }: Stored): boolean {
    return blobs.some(blob => this.#buffers.elsewhere?.isLost(blob))
  }
}

const WHY = lost('what it reads was lost with a node')

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)

const bytesOf = ({ bytes, blobs }: Stored): number =>
  bytes.length + sum(blobs.map(({ byteLength }) => byteLength))
