import type { Datum } from '../../core/data/datum.ts'
import type { Group } from '../../core/tasks/group.ts'
import { FORMS } from '../../core/tasks/form.ts'
import type { Task } from '../../core/tasks/task.ts'
import type { Call } from '../../model/capture/call.ts'
import type { Definition } from '../../model/definition.ts'
import { Stored } from '../../model/encoding/stored.ts'
import { extraKeyOf } from '../../model/options/demand.ts'
import { jobOf } from '../../node/job.ts'
import type { Job } from '../../node/job.ts'
import type { EarlyValue } from '../../node/node.ts'
import { bytesIn } from '../../storage/location.ts'
import type { Digest } from '../../store/digest.ts'
import { ENTRY } from '../../store/format.ts'
import type { Runtime } from '../runtime.ts'
import { answer } from './answer.ts'
import type { CodeDigests } from './code.ts'
import { commandLine } from './command-line.ts'
import { Digests } from './digests.ts'
import { Explanations } from './explanations.ts'
import { FileDigests } from './file-digests.ts'
import { Keeping, keepingOf, spoil } from './keeping.ts'
import { Keys, argsDigest } from './keys.ts'
import type { Inputs, Keyed } from './keys.ts'
import { sizeOfKept, writeKept } from './kept-values.ts'
import { outputsOf } from './outputs.ts'
import { Overwritten } from './overwritten.ts'
import { Worth } from './policy.ts'
import type { CheckpointPolicy } from './policy.ts'
import { objectsIn, readRecord, writeRecord } from './record.ts'
import type { Stores } from './stores.ts'

export interface KeeperOptions {
  readonly stores: Stores
  readonly policy: CheckpointPolicy
  /** Results of earlier runs are used. */
  readonly isLookingUp: boolean
  /** Says at the end what was used, and why the rest was not. */
  readonly explains: boolean
  readonly code: CodeDigests
  readonly root: string
  readonly version: string
  readonly salt: string
}

/** Results of tasks that are short are written together; milliseconds. */
const PAUSE = 100
/** What waits to be written, at most; bytes. */
const MOST_WAITING = 4 * 2 ** 20
/** Results are synced this often while some come; milliseconds. */
const SYNC_PAUSE = 1000
/** Values that a task released early, and a generator's, are held for the record up to this many bytes. */
const MOST_EARLY = 64 * 2 ** 20

/** Keeps the results of tasks as they end, and answers for tasks whose results are kept. Off the critical path. */
export class Keeper {
  readonly digests: Digests
  readonly files: FileDigests
  readonly stores: Stores
  readonly explanations: Explanations
  readonly overwritten: Overwritten
  readonly #runtime: Runtime
  readonly #options: KeeperOptions
  readonly #keys: Keys
  readonly #worth = new Worth()
  readonly #ordinals = new Map<Definition, number>()
  readonly #groups = new WeakSet<Group>()
  /** Records that are being made. */
  readonly #pending = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | null = null
  #syncedAt = 0
  #unwritten = 0

  constructor(runtime: Runtime, options: KeeperOptions) {
    this.#runtime = runtime
    this.#options = options
    this.stores = options.stores
    this.files = new FileDigests(options.stores)
    this.digests = new Digests(runtime, this.files)
    this.explanations = new Explanations(options.stores, options.code)
    this.overwritten = new Overwritten(options.stores)
    this.#keys = new Keys({
      ...options,
      program: name => this.files.program(name),
      lineOf: task => commandLine(task, options.root, runtime.modules),
      digestOf: (version, isTaken) => this.digests.of(version, isTaken),
    })
    if (options.isLookingUp) runtime.engine.looks.wants = task => this.#isKeepable(task)
    if (options.policy.every > 0) {
      this.#timer = setInterval(() => void this.checkpoint(), options.policy.every)
      this.#timer.unref()
    }
  }

  /** What is to be kept has to come here. Returns the bytes from which on that is not so; 0: in no case. */
  staysFrom(task: Task, least: number): number {
    const { policy, isLookingUp } = this.#options
    if (policy.what !== 'long' || isLookingUp || jobOf(task).definition.options.cache) return 0
    return Math.max(least, MOST_UNASKED)
  }

  /** The task has written files of this many bytes in all, and they need not be kept: they may be on a node that dies. */
  leavesFiles(task: Task, bytes: number): boolean {
    const { policy, isLookingUp } = this.#options
    if (policy.what !== 'long' || isLookingUp || jobOf(task).definition.options.cache) return false
    const keeping = keepingOf(task)
    return !keeping || this.#isHopeless(keeping) || !this.#isWanted(task) || this.#isTooMuch(task, bytes)
  }

  // --- what happens to tasks ---

  /** A task is called; `parent` is the task that calls it. */
  called(job: Job, call: Call, parent: Task | null): void {
    const { definition, given, slots, key } = call
    const ordinal = (this.#ordinals.get(definition) ?? 0) + 1
    this.#ordinals.set(definition, ordinal)
    const hasKey = definition.options.key !== undefined
    const keeping = new Keeping(ordinal, key ?? (hasKey && !parent ? extraKeyOf(definition, given) : null))
    job.keeping = keeping
    keeping.why = whyNot(call)
    if (!parent) return
    // What a called task does beside is not done again when its caller is answered for, and what it reads is not looked at.
    const { cache, programs } = definition.options
    if (slots.some(({ kind, mode }) => kind !== 'value' && mode !== 'in'))
      spoil(parent, 'it calls tasks that write files, which are kept by themselves')
    else if (cache === false) spoil(parent, `it calls ${definition.name}, which always runs`)
    else if (keeping.extra !== null || programs)
      spoil(parent, `it calls ${definition.name}, which depends on more than its arguments`)
    else
      for (const { kind, datum } of slots)
        if (kind !== 'value')
          spoil(notGiven(parent, datum), 'it calls tasks that read other files than its own')
  }

  /** Its inputs may be changed by it: they are digested before. */
  starting(task: Task): void {
    const keeping = keepingOf(task)
    if (keeping?.inputs !== undefined || !this.#isKeepable(task) || !keeping) return
    if (!this.#isWanted(task)) return void (keeping.why ??= notWanted(this.#options.policy))
    const { what } = this.#options.policy
    const { cache } = jobOf(task).definition.options
    if (!cache && what !== 'all' && this.#isShort(task)) keeping.why ??= TOO_SHORT
    else if (!cache && what === 'long' && inMemory(task) > MOST_UNASKED) keeping.why ??= TOO_LARGE
    else keeping.inputs = this.#keys.inputsOf(task, true)
  }

  /** Tasks of its kind were so short that this one is probably not worth a digest of its inputs. */
  #isShort({ implementation, kind }: Task): boolean {
    const { ended, estimate } = implementation
    if (this.#options.policy.what === 'long') return ended > 0 && estimate < LONG / 2
    return FORMS[kind.form].runsOn === 'threads' && ended > 8 && estimate < this.#worth.least
  }

  /** A value was released before the end of its task. */
  released(task: Task, { index, value }: EarlyValue): void {
    const keeping = keepingOf(task)
    if (!keeping || keeping.why !== null) return
    keeping.earlyBytes += sizeOfKept(value)
    if (keeping.earlyBytes > MOST_EARLY) {
      keeping.why = 'the values that it releases early are too large to keep'
      keeping.early = null
    } else (keeping.early ??= new Map()).set(index, writeKept(value))
  }

  /** Its files are in place: takes hold of them before they can be moved or replaced. */
  async filesMade(task: Task): Promise<void> {
    const keeping = keepingOf(task)
    if (!keeping || this.#isHopeless(keeping) || !this.#isWanted(task) || this.stores.own.isReadOnly) return
    if (this.#isTooMuch(task)) return void (keeping.why = TOO_LARGE)
    keeping.files = new Map()
    for (const [slot, { kind }] of jobOf(task).slots.entries()) {
      const write = task.accesses[slot]?.write
      if (!write || kind === 'value') continue
      const path = this.#runtime.files.store.pathOf(write)
      const held = await this.files.hold(path, this.stores.own).catch(() => null)
      const content = held ? held.read().catch(() => null) : Promise.resolve(null)
      keeping.files.set(slot, content)
      this.digests.setFile(write, content, held?.written)
    }
  }

  /** Without being asked, files are kept if that takes little of the time that they took, and no room that was to be saved. */
  #isTooMuch(task: Task, bytes = bytesWritten(task)): boolean {
    const { definition } = jobOf(task)
    if (this.#options.policy.what !== 'long' || definition.options.cache) return false
    const took = this.#runtime.now() - task.begunAt
    return definition.options.temporary === true || took < LONG || bytes > took * UNASKED_RATE
  }

  /** The task has ended well, or its failure is ignored. */
  finished(task: Task, took: number, isIgnored = false): void {
    const keeping = keepingOf(task)
    if (!keeping) return
    const begun = performance.now()
    // Memory that exists once may be in a thread when its content is asked for.
    this.digests.made(task)
    // In a resumed run all are looked for, also those that are not to be kept.
    if (!this.#isWanted(task)) keeping.why ??= notWanted(this.#options.policy)
    if (task.accesses.some(({ write }) => write && this.#runtime.lineage.isAway(write)))
      keeping.why ??= TOO_LARGE
    if (this.#isHopeless(keeping)) return this.explanations.notKept(task, keeping.why)
    const outputs = outputsOf(task, this, isIgnored)
    if (typeof outputs === 'string') return this.explanations.notKept(task, (keeping.why = outputs))
    const { cache } = jobOf(task).definition.options
    const { what } = this.#options.policy
    const isShort =
      what === 'long' ? took < LONG : what === 'auto' && !this.#worth.isWorth(took, outputs.bytes)
    if (!cache && isShort) return this.explanations.notKept(task, (keeping.why = TOO_SHORT))
    const { inputs, extra } = keeping
    if (inputs && !(inputs instanceof Promise) && !(outputs.made instanceof Promise)) {
      this.#put(task, this.#keys.of(task, extra, inputs), outputs.made, isIgnored)
      this.#worth.measured(performance.now() - begun, outputs.bytes)
    } else
      this.#later(
        Promise.all([inputs, outputs.made]).then(async ([known, made]) => {
          if (known && made && (await this.digests.areStill(task, known.digests))) {
            this.#put(task, this.#keys.of(task, extra, known), made, isIgnored)
            // What was written when the task had ended did not have it, and no other task may end for long.
            this.#soon(took)
          } else
            this.explanations.notKept(
              task,
              (keeping.why ??= 'what it read or made changed while it was kept'),
            )
        }),
      )
    this.#soon(took)
  }

  #put(task: Task, keyed: Keyed, { outputs, inside }: Made, isIgnored: boolean): void {
    const { ordinal } = keepingOf(task) as Keeping
    const isStream = jobOf(task).definition.stream !== null
    const { key, kind, code, inputs } = keyed
    const args = argsDigest(keyed)
    const record = writeRecord({ kind, ordinal, code, args, inputs, isIgnored, isStream, outputs })
    this.stores.put(ENTRY.result, key, record, objectsIn(outputs, inside))
    this.explanations.kept(task, code)
    if (keepingOf(task)?.files) this.overwritten.kept(task, outputs)
    this.#unwritten++
  }

  // --- answers ---

  /** The core asks whether the results of a ready task are known. */
  look(task: Task): void {
    const keeping = keepingOf(task) as Keeping
    const inputs = this.digests.isStreaming(task) ? undefined : this.#keys.inputsOf(task, false)
    keeping.inputs = inputs
    const go = (known: Inputs | null | undefined): void =>
      this.#lookFor(task, known ? this.#keys.of(task, keeping.extra, known) : null)
    if (inputs instanceof Promise) void inputs.then(go, () => go(null))
    else go(inputs)
  }

  #lookFor(task: Task, keyed: Keyed | null): void {
    const bytes = keyed && this.stores.find(ENTRY.result, keyed.key)
    if (!keyed || !bytes) return this.#miss(task, keyed)
    const found = answer(task, readRecord(bytes), this)
    if (found instanceof Promise)
      void found.then(
        isThere => (isThere ? this.#hit(task, keyed) : this.#miss(task, keyed)),
        () => this.#miss(task, keyed),
      )
    else if (found) this.#hit(task, keyed)
    else this.#miss(task, keyed)
  }

  #hit(task: Task, keyed: Keyed): void {
    this.stores.own.used(keyed.key)
    this.explanations.reused(task)
    // There may be very many such tasks, and nothing more is asked about their keeping.
    jobOf(task).keeping = null
    const isDone = this.#runtime.engine.answered(task, this.#runtime.now())
    if (isDone) this.#runtime.largeValues.finished(task)
    this.#runtime.schedule()
    this.#soon(0)
  }

  #miss(task: Task, keyed: Keyed | null): void {
    if (this.#options.explains) this.explanations.missed(task, keyed, keepingOf(task))
    if (keyed) this.overwritten.ran(task, keyed)
    this.#runtime.engine.unanswered(task, this.#runtime.now())
    this.#runtime.schedule()
  }

  // --- what is kept ---

  /** Tasks of this group are kept, where only such are. */
  markGroup(group: Group): void {
    this.#groups.add(group)
  }

  #isKeepable(task: Task): boolean {
    const keeping = keepingOf(task)
    return keeping !== null && keeping.why === null
  }

  #isHopeless(keeping: Keeping): boolean {
    return keeping.why !== null || keeping.inputs === null || keeping.inputs === undefined
  }

  #isWanted(task: Task): boolean {
    const { what } = this.#options.policy
    const { cache } = jobOf(task).definition.options
    if (cache || (what !== 'tasks' && what !== 'groups')) return true
    if (what === 'tasks') return false
    for (let group: Group | null = task.group; group; group = group.parent)
      if (this.#groups.has(group)) return true
    return false
  }

  // --- writing ---

  #later(work: Promise<void>): void {
    const done = work.catch(() => undefined).finally(() => this.#pending.delete(done))
    this.#pending.add(done)
  }

  #soon(took: number): void {
    const { tasks, every } = this.#options.policy
    if (tasks > 0 && this.#unwritten >= tasks) return void this.checkpoint()
    if (tasks > 0 || every > 0) return
    const isFull = this.stores.own.waitingBytes > MOST_WAITING
    if (this.#timer && !isFull) return
    if (this.#timer) clearTimeout(this.#timer)
    // A result that took long is on its way at once.
    this.#timer = setTimeout(() => this.#flush(), took > PAUSE || isFull ? 0 : PAUSE)
    this.#timer.unref()
  }

  #flush(): void {
    this.#timer = null
    const now = this.#runtime.now()
    const isDue = now - this.#syncedAt > SYNC_PAUSE
    if (isDue) this.#syncedAt = now
    this.#unwritten = 0
    void this.stores.own.flush(isDue)
    this.explanations.writeCode()
  }

  async #settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending)
  }

  /** All that has ended so far is kept, and on the disk. */
  async checkpoint(): Promise<void> {
    await this.#settled()
    this.explanations.writeCode()
    this.#unwritten = 0
    await this.stores.own.flush(true)
  }

  /** `outcome`: how the run ended, as a later one finds it by the key. A run that kept nothing leaves nothing. */
  async end(key: Digest, outcome: string): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer)
    // Before that it is not known whether it has kept something.
    await this.#settled()
    if (this.stores.own.isWritten) this.stores.put(ENTRY.fact, key, Buffer.from(outcome))
    await this.checkpoint()
    await this.files.settled()
    await this.stores.close()
  }

  get runtime(): Runtime {
    return this.#runtime
  }
}

export interface Made {
  readonly outputs: Parameters<typeof writeRecord>[0]['outputs']
  readonly inside: ReadonlyMap<Made['outputs'][number], readonly Buffer[]>
}

/** Results of tasks that took this many milliseconds are kept without being asked. */
const LONG = 100
/** Bytes of files per millisecond that they took: reading them once takes about a fiftieth of that. */
const UNASKED_RATE = 10_000
/** Unless they are larger than this, with their inputs; bytes. */
const MOST_UNASKED = 8 * 2 ** 20

/** Bytes of values that a task is given. */
const inMemory = ({ accesses }: Task): number =>
  accesses.reduce((sum, { read }) => sum + (read?.value instanceof Stored ? sizeOfKept(read.value) : 0), 0)

const bytesWritten = ({ accesses }: Task): number =>
  accesses.reduce((sum, { write }) => sum + (write ? bytesIn(write) : 0), 0)

const TOO_LARGE = 'it is too large to be kept unless --checkpoint asks for it'
const TOO_SHORT = 'it is cheaper made than kept'

const notWanted = ({ what }: CheckpointPolicy): string =>
  what === 'tasks' ? 'only tasks with cache: true are kept' : 'only groups with checkpoint: true are kept'

/** The nearest of the callers that was not given a file. */
function notGiven(task: Task, file: Datum): Task | null {
  for (let at: Task | null = task; at; at = at.parent)
    if (!at.accesses.some(({ read }) => read?.datum === file)) return at
  return null
}

/** What a call does that makes its results unfit to be kept; null when nothing does. */
function whyNot({ definition, slots }: Call): string | null {
  if (definition.options.cache === false) return 'its option cache is false'
  if (FORMS[definition.form].runsOn === 'ranks') return 'only functions and commands are kept'
  if (definition.command?.hooks) return 'it is part of a workflow, which has a state of its own'
  for (const { datum, mode, stream } of slots) {
    if (datum.inPlace) return 'it uses memory from shared()'
    if (mode === 'concurrent' || mode === 'commutative')
      return `its ${mode.toUpperCase()} parameter has no result of its own`
    if (stream || datum.current.growth) return 'its files are streams'
  }
  return null
}
