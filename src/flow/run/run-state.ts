import { lstat, readlink, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { mapAtOnce } from '../../general/at-once.ts'
import type { OutputCache } from './cache.ts'
import { MISSING, lookAt, lookOf, lookQuietly } from '../state/file-table.ts'
import type { FileTable, Look } from '../state/file-table.ts'
import { StampThread } from '../state/stamp-thread.ts'
import type { Planner } from '../plan/planner.ts'
import { makeReadOnly } from './read-only.ts'
import { checkKept } from '../plan/reasons.ts'
import { STAMP_LIMIT, isRacy, takeStamp } from '../state/stamp.ts'
import type { Stamped } from '../state/stamp.ts'
import type { State } from '../state/state.ts'
import { NO_FILE, placeOf } from '../plan/work.ts'
import type { Work } from '../plan/work.ts'

const NONE: ReadonlySet<number> = new Set()
const GROWING = -1
/** No content has this stamp. */
const UNKNOWN = -2
/** Files of one task that are looked into at a time. */
const AT_ONCE = 8
/** Tasks, or files in a folder, for which another thread is worth its start. */
const STAMP_THREAD_FROM = 100

/** Between plan and tasks: what a task has read is stamped when it begins, what it made before it is in place. */
export class FlowState {
  readonly root: string
  readonly files: FileTable
  readonly #state: State
  readonly #planner: Planner
  /** Stamps that are being taken. */
  readonly #stamping = new Map<number, Promise<void>>()
  readonly #inputStamps = new Map<Work, number[]>()
  /** Stamped, and not in the log yet. */
  readonly #unwritten = new Set<number>()
  readonly #cache: OutputCache | null
  #stampThread: StampThread | null = null
  /** Takes long, so it has a thread of its own. */
  #folderStampThread: StampThread | null = null
  /** What is to be kept in the cache when it is made. */
  readonly #keys = new Map<Work, Buffer>()

  constructor(root: string, state: State, planner: Planner, cache: OutputCache | null = null) {
    this.#cache = cache
    this.root = root
    this.files = state.files
    this.#state = state
    this.#planner = planner
  }

  /** Number of tasks to come. */
  expect(tasks: number): void {
    if (tasks >= STAMP_THREAD_FROM) this.#stampThread ??= new StampThread()
  }

  close(): void {
    this.#stampThread?.stop()
    this.#folderStampThread?.stop()
    this.#stampThread = this.#folderStampThread = null
  }

  makerOf(file: number): Work | null {
    return this.#planner.makers.of(file)
  }

  isDirectory(file: number): boolean {
    const maker = this.makerOf(file)
    const at = maker ? placeOf(file, maker) : -1
    if (maker && at >= 0) return maker.rule.outputs[at]?.marks.directory ?? false
    return this.files.exists(file) && this.files.folders.has(file)
  }

  /** Of a plain file that the plan has seen; what tasks make is known by them. */
  bytesOf(path: string): number | null {
    const inside = path.startsWith(`${this.root}/`) ? path.slice(this.root.length + 1) : path
    const file = this.files.find(inside)
    if (file === undefined || this.files.folders.has(file)) return null
    const size = this.files.nowSize[file] as number
    return size >= 0 ? size : null
  }

  /**
   * All inputs are there, but for those that are still being written. Says when the task need not be run after
   * all.
   */
  async begin(
    work: Work,
    staged: readonly string[],
    growing: ReadonlySet<number> = NONE,
  ): Promise<'kept' | 'made' | null> {
    await this.#stampInputs(work, growing)
    const { files } = this
    const [first] = work.outputs
    // A function may look into what it reads, which was not there when it was planned.
    if (!work.isCommand && !work.rule.isAsync) this.#planner.readCommand(work)
    const isSame =
      (work.wasMaybe || work.isMissed) &&
      growing.size === 0 &&
      first !== undefined &&
      this.#state.records.matches(first, work.text, work.outputs, work.inputs, files.stamp)
    const wasMissed = work.isMissed
    work.isMissed &&= isSame
    if (isSame && !work.isMissed) {
      this.#inputStamps.delete(work)
      return 'kept'
    }
    // Temporary files that are missed are no reason to replace others with something else.
    if (work.wasMaybe || (wasMissed && !isSame)) checkKept(work, files, work.reason)
    // What is not complete yet cannot be looked for.
    return this.#cache && growing.size === 0 ? this.#fromCache(this.#cache, work, staged) : null
  }

  async #stampInputs(work: Work, growing: ReadonlySet<number> = NONE): Promise<void> {
    const inputs = work.inputs.filter(input => input !== NO_FILE && !growing.has(input))
    await mapAtOnce(AT_ONCE, inputs, input => this.#stampInput(input))
    // What grows has its stamp when it is complete, and that is before this task is done.
    const stampOf = (input: number): number =>
      growing.has(input) ? GROWING : (this.files.stamp[input] as number)
    this.#inputStamps.set(
      work,
      work.inputs.map(input => (input === NO_FILE ? 0 : stampOf(input))),
    )
  }

  async #fromCache(cache: OutputCache, work: Work, staged: readonly string[]): Promise<'made' | null> {
    const key = await cache.keyOf(work)
    if (key === null) return null
    if (await cache.restore(key, work, staged)) return 'made'
    this.#keys.set(work, key)
    return null
  }

  /** The outputs are written, aside. From here on the record counts, as soon as they are in place. */
  async made(work: Work, staged: readonly string[], isTaken = false): Promise<(number | null)[]> {
    const key = this.#keys.get(work)
    const changing = this.#changedSince(work)
    this.#keys.delete(work)
    // Before they are looked at: what is kept by a link to it looks different afterwards.
    if (key !== undefined && (await changing).size === 0) await this.#cache?.store(key, work, staged)
    const [looks, changed] = await Promise.all([
      mapAtOnce(AT_ONCE, work.outputs, (output, i) => this.#lookAtMade(work, i, staged[i] as string, output)),
      changing,
    ])
    const stamps = await mapAtOnce(AT_ONCE, looks, (look, i) => {
      if (!look) return this.#leftOut(work.outputs[i] as number)
      // Made anew in the same way it stands for what was there: those who have read that are up to date.
      const isReplaced = work.isMissed && work.rule.outputs[i]?.marks.temp
      const before = isReplaced ? (this.files.stamp[work.outputs[i] as number] as number) : 0
      return before || (look.stamp ?? this.#takeStamp(look.path, look.look))
    })
    for (const [i, output] of work.outputs.entries()) {
      this.files.setTaken(output, isTaken)
      this.#setStamp(output, looks[i], stamps[i] as number)
    }
    const made = work.outputs.filter((_, i) => looks[i])
    const record = {
      text: work.text,
      outputs: work.outputs,
      outputStamps: stamps,
      inputs: work.inputs,
      inputStamps: (this.#inputStamps.get(work) ?? []).map((stamp, i) => {
        const input = work.inputs[i] as number
        if (changed.has(input)) return UNKNOWN
        return stamp === GROWING ? (this.files.stamp[input] as number) : stamp
      }),
    }
    this.#inputStamps.delete(work)
    const stamped = [...made, ...work.inputs.filter(input => this.#unwritten.delete(input))]
    await this.#state.record(record, stamped)
    return looks.map(look => (look?.isPlain ? look.look.size : null))
  }

  /** Sources that changed while the task ran: which content it read is unknown. */
  async #changedSince(work: Work): Promise<Set<number>> {
    const { files } = this
    const changed = new Set<number>()
    const stamps = this.#inputStamps.get(work)
    await mapAtOnce(AT_ONCE, work.inputs, async (input, i) => {
      if (input === NO_FILE || this.makerOf(input)) return
      // To walk through it after each task takes too long; the next run sees what has changed for good. A cache would
      // not.
      if (files.folders.has(input) && !this.#keys.has(work)) return
      const path = resolve(this.root, files.path(input))
      const now = (await this.#stampThread?.look(path)) ?? (await look(path))
      // Its ctime changes also with a link to it.
      const isSame =
        now?.size === files.size[input] && now?.mtime === files.mtime[input] && now?.ino === files.ino[input]
      // It may have been written again as it was.
      if (!isSame && (!now || (await this.#stampIfThere(path, now)) !== stamps?.[i])) changed.add(input)
    })
    return changed
  }

  /** An output that is complete while the task still runs; the record comes with its end. */
  async released(work: Work, i: number, staged: string): Promise<void> {
    const output = work.outputs[i] as number
    const found = await this.#lookAtMade(work, i, staged, output)
    if (found) this.#setStamp(output, found, found.stamp ?? (await this.#takeStamp(found.path, found.look)))
  }

  #setStamp(output: number, found: { look: Look } | null | undefined, stamp: number): void {
    if (!found) return
    // Only the task has known the file under its name until now: only slow clocks leave doubts.
    const { look } = found
    const isCoarse = Number.isInteger(look.mtime / 1000) && isRacy(look, Date.now())
    // The way to its place changes it; of a directory what counts are the files in it.
    this.files.setStamp(output, look.isFolder ? look : { ...look, ctime: 0 }, stamp, isCoarse)
  }

  /** What has come to its place is looked at once more, all together at the end. */
  settle(): void {
    const { files } = this
    const found: number[] = []
    for (let file = 0; file < files.paths.length; file++) {
      if (files.ctime[file] !== 0 || files.stamp[file] === 0 || (files.nowSize[file] as number) < 0) continue
      const seen = lookQuietly(resolve(this.root, files.path(file)))
      files.see(file, seen)
      if (!seen || !files.isAsStamped(file)) continue
      files.ctime[file] = seen.ctime
      found.push(file)
    }
    this.#state.rememberStamps(found)
  }

  /** Takes what is there as if it had just been made. False when something is missing. */
  async accept(work: Work): Promise<boolean> {
    const { files } = this
    const isThere = work.outputs.every(
      (output, i) => files.exists(output) || work.rule.outputs[i]?.marks.optional,
    )
    if (!isThere) return false
    await this.#stampInputs(work)
    await this.made(
      work,
      work.outputs.map(output => files.path(output)),
      true,
    )
    return true
  }

  /** Looks into files that a plan is in doubt about. */
  async settleDoubts(doubts: readonly number[]): Promise<void> {
    const files = [...new Set(doubts)]
    await mapAtOnce(AT_ONCE, files, async file => {
      await this.#stamp(file)
      this.#unwritten.delete(file)
    })
    this.#state.rememberStamps(files)
  }

  async #stampInput(input: number): Promise<void> {
    const { files } = this
    const maker = this.makerOf(input)
    if (maker && placeOf(input, maker) >= 0 && files.stamp[input] !== 0) return
    // It came with a directory: what was seen before that was made says nothing.
    if (maker && maker.state !== 'fresh' && placeOf(input, maker) < 0) files.forget(input)
    // It may have changed since the plan. Then what is written down is not what it looks like now, and it is looked into
    // the next time.
    if (files.exists(input) && files.isAsStamped(input)) return
    await this.#stamp(input, files.look(input))
    if (files.nowSize[input] === MISSING) {
      throw new MillraceError('MR_INPUT_MISSING', `${files.path(input)} has vanished since the run began`)
    }
  }

  #stamp(file: number, seen: Look | null = null): Promise<void> {
    let stamping = this.#stamping.get(file)
    if (!stamping) {
      stamping = this.#stampNow(file, seen).finally(() => this.#stamping.delete(file))
      this.#stamping.set(file, stamping)
    }
    return stamping
  }

  async #stampNow(file: number, known: Look | null): Promise<void> {
    const { files } = this
    const path = files.path(file)
    const quick = await this.#stampThread?.see(resolve(this.root, path), true)
    if (quick) {
      files.setStamp(file, quick.look, quick.stamp, isRacy(quick.look, quick.at))
      this.#unwritten.add(file)
      return
    }
    const seen = known ?? (await look(path))
    if (!seen) {
      files.see(file, null)
      return
    }
    const started = Date.now()
    const stamp = await this.#stampIfThere(path, seen, files.stamped(file))
    if (stamp === null) return files.see(file, null)
    files.setStamp(file, seen, stamp, isRacy(seen, started))
    this.#unwritten.add(file)
  }

  #stampIfThere(path: string, seen: Look, before: Stamped | null = null): Promise<number | null> {
    return this.#takeStamp(path, seen, before).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    })
  }

  async #takeStamp(path: string, seen: Look, before: Stamped | null = null): Promise<number> {
    // One file after the other, each costs four ways to other threads.
    const isLarge = seen.isFolder && (seen.entries ?? 0) > STAMP_THREAD_FROM && seen.size <= STAMP_LIMIT
    if (isLarge) this.#folderStampThread ??= new StampThread()
    const stamp = isLarge ? await this.#folderStampThread?.digest(resolve(this.root, path)) : null
    return stamp ?? takeStamp(path, seen, before)
  }

  async #lookAtMade(
    work: Work,
    i: number,
    staged: string,
    output: number,
  ): Promise<{ path: string; look: Look; isPlain: boolean; stamp?: number } | null> {
    const path = resolve(this.root, staged)
    const { directory, protect } = work.rule.outputs[i]?.marks ?? {}
    const quick = directory || protect ? null : await this.#stampThread?.see(path, false)
    if (quick) return { path, look: quick.look, isPlain: true, stamp: quick.stamp }
    const stats = await lstat(path).catch(() => null)
    const name = this.files.path(output)
    if (!stats) {
      if (work.rule.outputs[i]?.marks.optional) return null
      throw new MillraceError(
        'MR_OUTPUT_MISSING',
        `the command ended well, but did not write ${name} (rule at ${work.rule.site})`,
        {
          hint: 'Write to the path that the rule is given as `out`; mark outputs that need not be there optional().',
        },
      )
    }
    const isDirectory = work.rule.outputs[i]?.marks.directory ?? false
    if (!stats.isSymbolicLink() && stats.isDirectory() !== isDirectory) {
      throw new MillraceError(
        'MR_OUTPUT_MISSING',
        `${name} is ${isDirectory ? 'a file, and dir() says that it is a directory' : 'a directory'} (rule at ${work.rule.site})`,
        { hint: isDirectory ? 'Leave out dir().' : "Write dir('…') for outputs that are directories." },
      )
    }
    if (work.rule.outputs[i]?.marks.protect && !stats.isSymbolicLink()) await makeReadOnly(path, stats)
    if (stats.isFile()) return { path, look: lookOf(stats), isPlain: true }
    // A link is relative to where it will be, as are other outputs that it may lead to.
    const link = stats.isSymbolicLink() ? await readlink(path) : null
    const target = link === null ? path : resolve(this.root, dirname(name), link)
    for (const one of link === null ? [path] : [resolve(dirname(path), link), target]) {
      const found = await look(one)
      if (found) return { path: one, look: found, isPlain: false }
    }
    throw new MillraceError('MR_OUTPUT_MISSING', `${name} is a link to ${target}, which does not exist`)
  }

  /** An optional output that was not made this time: what is there from before is not of this time. */
  async #leftOut(output: number): Promise<number> {
    await rm(resolve(this.root, this.files.path(output)), { force: true, recursive: true })
    this.files.see(output, null)
    this.files.stamp[output] = 0
    return 0
  }
}

async function look(path: string): Promise<Look | null> {
  const stats = await stat(path).catch(() => null)
  if (!stats) return null
  return stats.isDirectory() ? lookAt(path) : lookOf(stats)
}
