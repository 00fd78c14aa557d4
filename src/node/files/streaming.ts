import { copyFile, lstat, mkdir, readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { existsSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Version } from '../../core/data/datum.ts'
import { isFollower } from '../../core/data/growing.ts'
import type { Task } from '../../core/tasks/task.ts'
import { MillraceError } from '../../core/errors.ts'
import { isEarly } from '../../model/stream.ts'
import type { CommandRequest } from '../processes/command-process.ts'
import { stepArgv } from '../../stream/board/board.ts'
import type { StepBoard } from '../../stream/board/board.ts'
import type { FileRules, LiveBoard } from '../../stream/board/live-board.ts'
import type { FileStore } from '../../storage/file-store.ts'
import { attemptOf, jobOf } from '../job.ts'
import type { SiteFile, StreamSite } from './stream-site.ts'
import type { StreamTelling } from './stream-telling.ts'
import type { NodeEvents, NodeHost } from '../node.ts'

/** A file that one attempt of a command writes under the rules of a stream. */
interface Stream {
  readonly version: Version
  readonly task: Task
  readonly attempt: number
  readonly path: string
  readonly name: string
  /** That writes it, on the board. */
  step: string
  /** Where its program runs, on another machine. */
  site: StreamSite | null
  /** Other machines that it goes to. */
  readonly copies: Map<StreamSite, Promise<void>>
  /** The board says that it will never be complete, and why. */
  failure: string | null
  /** Resolves when the board knows what became of it. */
  readonly known: Promise<void>
  readonly know: () => void
  /** It is complete and being passed to its readers. */
  releasing: Promise<void> | null
  /** Its program has ended: what is not on its way now is committed with the rest. */
  closing: boolean
  /** The attempt has ended, and what comes of it is decided. */
  readonly over: Promise<void>
  readonly end: () => void
}

interface Hooks {
  files: FileStore
  host: Pick<NodeHost, 'settled'>
  events: Pick<NodeEvents, 'committed' | 'flows'>
  /** A folder that is to be removed when this process is killed. */
  announce(folder: string): void
  /** Ends the program of a task that has lost its input. */
  stop(task: Task): void
  /** Tells observers how far a file is; null without observers. */
  tell: ConstructorParameters<typeof StreamTelling>[2] | null
}

/**
 * Outputs of commands with rules of their own (`stream`). They are written in memory, under the library that
 * makes their readers wait; a task that reads one as it grows is started with its producer, without a CPU, and is run
 * again when the attempt that it read from fails.
 */
export class Streaming {
  readonly #run: string
  readonly #hooks: Hooks
  readonly #byName = new Map<string, Stream>()
  /** Tasks whose input was void: they did not fail, and start again. */
  readonly #bereft = new WeakSet<Task>()
  #root: string | null = null
  /** On disk, for what finds no room in memory. */
  #layer: string | undefined
  #board: LiveBoard | null = null
  /** Of a coordination file, where the run has one: it has all steps and rules from the beginning. */
  coordination: StepBoard | null = null
  #telling: StreamTelling | null = null
  #starting: Promise<LiveBoard> | null = null
  #count = 0

  constructor(run: string, hooks: Hooks) {
    this.#run = run
    this.#hooks = hooks
  }

  /** Its program must run under the library. */
  concerns(task: Task): boolean {
    if (isStep(task) || isFollower(task)) return true
    // What it reads may have become complete while its files were made ready.
    const reads = jobOf(task).attempt?.paths?.some(path => path !== null && this.isOurs(path)) === true
    return reads || jobOf(task).slots.some(slot => slot.stream !== undefined)
  }

  /** Where an attempt writes the version. */
  async stage(task: Task, version: Version): Promise<string> {
    await this.#start()
    const name = `${++this.#count}/${basename(version.datum.path as string)}`
    const path = join(this.#root as string, name)
    const isDirectory = task.accesses.some(
      ({ write }, i) => write === version && jobOf(task).slots[i]?.kind === 'directory',
    )
    await mkdir(isDirectory ? path : dirname(path), { recursive: true })
    const { promise: over, resolve: end } = withResolvers()
    const { promise: known, resolve: know } = withResolvers()
    const stream = {
      version,
      task,
      attempt: task.attempt,
      path,
      name,
      step: '',
      site: null,
      copies: new Map<StreamSite, Promise<void>>(),
      failure: null,
      known,
      know,
      releasing: null,
      closing: false,
      over,
      end,
    }
    this.#hooks.files.locations.of(version).growing = path
    this.#byName.set(name, stream)
    return path
  }

  /** Where a version grows that is not committed; undefined for all others. */
  pathOf(version: Version): string | undefined {
    return version.state === 'pending' ? this.#streamOf(version)?.path : undefined
  }

  /** The stream of the attempt that writes the version now, or wrote it. */
  #streamOf(version: Version): Stream | undefined {
    if (this.#root === null || version.datum.path === null) return undefined
    const { growing } = this.#hooks.files.locations.of(version)
    return growing === null ? undefined : this.#byName.get(growing.slice(this.#root.length + 1))
  }

  isOurs(path: string): boolean {
    return this.#root !== null && path.startsWith(`${this.#root}/`)
  }

  /** An attempt is being made ready: what became of an input of the one before is over. */
  begins(task: Task): void {
    this.#bereft.delete(task)
  }

  /** Tells the board of the task, and makes its program a step. `site`: where it runs, on another machine. */
  async prepare(task: Task, site: StreamSite | null): Promise<(request: CommandRequest) => CommandRequest> {
    const known = stepOf(task)
    const { coordination } = this
    if (known !== undefined && coordination)
      return request => ({ ...request, argv: coordination.argv(known, request.argv) })
    const board = await this.#start()
    const step = `${task.name}.${task.attempt}.${++this.#count}`
    board.step(step)
    const { slots } = jobOf(task)
    const place = site && (await site.open(board))
    const written: SiteFile[] = []
    for (let i = 0; i < slots.length; i++) {
      const write = task.accesses[i]?.write
      const rules = slots[i]?.stream
      const stream = write && this.#streamOf(write)
      if (!rules || !stream) continue
      const { beside, ...own } = rules
      const directory = slots[i]?.kind === 'directory'
      const all = {
        ...own,
        directory,
        ...(beside === undefined ? {} : { beside: this.#besideOf(task, beside) }),
      }
      stream.step = step
      stream.site = site
      // When it is complete is decided where it is written.
      board.file(stream.name, step, site ? copyOf(all) : all)
      written.push({ name: stream.name, step, rules: all })
    }
    await Promise.all([board.sync(), site?.know([step], written)])
    for (const stream of this.#readBy(task)) await this.#bring(stream, site)
    if (place) this.#setSeen(task, place.root)
    const { tools, workflow } = place ?? board
    const root = place?.root ?? this.#root
    return request => {
      // The process that starts the program cannot open a file that does not exist yet.
      const waits = request.stdin?.startsWith(`${root}/`) === true
      const argv = waits
        ? ['sh', '-c', 'exec "$@" < "$0"', request.stdin as string, ...request.argv]
        : request.argv
      const words = stepArgv(tools, workflow, step, argv)
      return { ...request, argv: words, stdin: waits ? null : request.stdin }
    }
  }

  /** Growing files that the attempt reads. */
  #readBy(task: Task): Stream[] {
    const { paths } = attemptOf(task)
    return task.accesses.flatMap(({ write }, i) => {
      const path = write ? null : (paths?.[i] ?? null)
      return (path !== null && this.isOurs(path) && this.#byName.get(this.#nameOf(path))) || []
    })
  }

  #nameOf(path: string): string {
    return path.slice((this.#root as string).length + 1)
  }

  /** Lets the file grow on a machine where a task reads it, too. */
  #bring(stream: Stream, site: StreamSite | null): Promise<void> {
    if (!site || stream.site === site) return Promise.resolve()
    let bringing = stream.copies.get(site)
    if (!bringing) {
      const { name, step } = stream
      const file = { name, step, rules: copyOf({ closes: 0, grows: true }) }
      bringing = site.know([step], [file]).then(() => site.send(name))
      stream.copies.set(site, bringing)
    }
    return bringing
  }

  /** Growing files are at other paths there. */
  #setSeen(task: Task, root: string): void {
    const attempt = attemptOf(task)
    const { paths } = attempt
    const seen = attempt.seen ?? paths
    if (!paths) return
    attempt.seen = paths.map((path, i) =>
      path !== null && this.isOurs(path) ? join(root, this.#nameOf(path)) : (seen?.[i] ?? null),
    )
  }

  /** The name on the board of another stream of the task. */
  #besideOf(task: Task, path: string): string {
    const version = task.accesses.find(({ write }) => write?.datum.path === path)?.write
    const stream = version && this.#streamOf(version)
    if (stream) return stream.name
    throw new MillraceError(
      'MR_OPTION',
      `stream: on_file names ${path}, which is no stream of ${task.name}`,
      {
        hint: 'Give it to the same command, with stream() too.',
      },
    )
  }

  /** Its program was started, so tasks that read its output as it grows may start. */
  began(task: Task): void {
    for (const { write } of task.accesses) {
      const stream = write && this.#streamOf(write)
      if (stream) this.#telling?.began(stream)
    }
    this.#hooks.events.flows(task)
  }

  /** Copies a complete file to where other versions are staged. */
  async bringHome(version: Version, path: string): Promise<string> {
    const isDirectory = (await lstat(path)).isDirectory()
    const staged = await this.#hooks.files.stage(version, isDirectory, null)
    await this.#copy(path, staged)
    return staged
  }

  /** Links to the lower layer are ours: what they lead to is copied. */
  async #copy(from: string, to: string): Promise<void> {
    const info = await lstat(from)
    if (info.isDirectory()) {
      await mkdir(to, { recursive: true })
      for (const name of await readdir(from)) await this.#copy(join(from, name), join(to, name))
      return
    }
    const target = info.isSymbolicLink() ? await readlink(from) : undefined
    const isOurs = this.#layer !== undefined && target?.startsWith(`${this.#layer}/`) === true
    if (target !== undefined && !isOurs) await symlink(target, to)
    else await copyFile(from, to)
  }

  /** An attempt failed or was lost: its readers start again, with the next attempt. */
  spoil(task: Task): void {
    for (const { write } of task.accesses) {
      for (const follower of write?.growth?.followers ?? []) {
        if (follower.ended) continue
        this.#bereft.add(follower)
        this.#hooks.stop(follower)
      }
    }
  }

  /** What it made counts when what it read has become complete: until then its producer may fail. */
  async inputsComplete(task: Task): Promise<void> {
    for (const { read } of task.accesses)
      if (read?.growth && read.state === 'pending' && !this.#bereft.has(task)) await this.#fate(task, read)
  }

  /** Its commit, its failure, or the end of the attempt that the task reads from. */
  #fate(task: Task, version: Version): Promise<unknown> {
    const over = this.#streamOf(version)?.over
    const settled = this.#hooks.host.settled(version)
    return over
      ? Promise.race([settled, over.then(() => (this.#bereft.has(task) ? undefined : settled))])
      : settled
  }

  /** Whether the attempt is void because an input was: not its own failure. */
  async wasBereft(task: Task, failed: boolean): Promise<boolean> {
    if (failed && this.#board) {
      await this.#board.sync().catch(() => undefined)
      for (const { read } of task.accesses) {
        const stream = read && this.#streamOf(read)
        if (!stream || stream.failure === null) continue
        // It got an error from its read; what becomes of its producer is known in a moment.
        await stream.over
        this.#bereft.add(task)
      }
    }
    return this.#bereft.delete(task)
  }

  /** The attempt of a task is over, and the core knows. */
  over(task: Task): void {
    for (const { read, write } of task.accesses) {
      const own = write && this.#streamOf(write)
      if (own && own.task === task) {
        own.end()
        this.#telling?.over(own)
      }
      for (const version of [read, write]) {
        const stream = version && this.#streamOf(version)
        if (stream) setImmediate(() => void this.#removeUnread(stream))
      }
    }
  }

  async end(): Promise<void> {
    this.#telling?.end()
    this.#board?.end()
    for (const folder of [this.#root, this.#layer])
      if (folder) await rm(folder, { recursive: true, force: true })
  }

  endNow(): void {
    this.#board?.end()
    for (const folder of [this.#root, this.#layer])
      if (folder) rmSync(folder, { recursive: true, force: true })
  }

  /** Memory is short: remove what is in its place and has no reader. */
  async #removeUnread(stream: Stream): Promise<void> {
    const { version, task, path, name } = stream
    const current = this.#streamOf(version) === stream
    if (current && (version.state === 'pending' || (!task.ended && task.attempt === stream.attempt))) return
    if ((version.growth?.followers.size ?? 0) > 0 || !this.#byName.delete(name)) return
    const below = await readlink(path).catch(() => undefined)
    if (below !== undefined) await rm(below, { force: true }).catch(() => undefined)
    for (const site of [stream.site, ...stream.copies.keys()]) site?.drop(name)
    await rm(dirname(path), { recursive: true, force: true }).catch(() => undefined)
  }

  #start(): Promise<LiveBoard> {
    return (this.#starting ??= this.#startBoard())
  }

  async #startBoard(): Promise<LiveBoard> {
    const { LiveBoard: Board } = await import('../../stream/board/live-board.ts')
    const { layerFor, privateFolder } = await import('../../stream/board/workspace.ts')
    const root = await privateFolder(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'streams')
    this.#root = root
    this.#hooks.announce(root)
    this.#layer = await layerFor(root)
    if (this.#layer !== undefined) this.#hooks.announce(this.#layer)
    await writeFile(join(root, '.keep'), '')
    const name = `task.${process.pid}.${this.#run}`.slice(0, 100)
    this.#board = await Board.start(
      name,
      root,
      this.#layer,
      (path, failure) => void this.#heard(path, failure),
    )
    const { tell } = this.#hooks
    if (tell) {
      const { StreamTelling: Telling } = await import('./stream-telling.ts')
      this.#telling = new Telling(name, () => this.#byName.values(), tell)
      this.#telling.start()
    }
    return this.#board
  }

  async #heard(name: string, failure: string | null): Promise<void> {
    const stream = this.#byName.get(name)
    if (!stream) return
    stream.failure = failure
    stream.know()
    if (failure !== null) return
    if (!stream.closing) await (stream.releasing = this.#release(stream))
  }

  /** The program has ended. Nothing of it is released from here on but by its commit. */
  async settle(task: Task): Promise<void> {
    for (const { write } of task.accesses) {
      const stream = write && this.#streamOf(write)
      if (!write || !stream || stream.task !== task) continue
      stream.closing = true
      await stream.releasing
      if (!stream.site) continue
      // The end of the program may be known before the last bytes are here.
      await Promise.race([stream.known, stream.site.lost])
      if (stream.failure === null) continue
      throw new MillraceError('MR_TRANSFER', `${write.datum.path}: ${stream.failure}`)
    }
  }

  async #release(stream: Stream): Promise<void> {
    const { version, task, path } = stream
    const at = task.accesses.findIndex(({ write }) => write === version)
    const { stream: rules, kind } = jobOf(task).slots[at] ?? {}
    // What is complete with the end of its producer is committed when the core hears of that end.
    if (!rules || !isEarly(rules, kind === 'directory') || version.state !== 'pending') return
    // A task that reads what may still turn out to be void commits nothing before that is known.
    if (isFollower(task)) return
    const hooks = jobOf(task).definition.command?.hooks
    const isLive = (): boolean =>
      task.attempt === stream.attempt && (task.state === 'running' || task.state === 'blocked')
    if (!isLive()) return
    try {
      const staged = await this.bringHome(version, path)
      if (hooks) await hooks.released(jobOf(task).args, at, staged)
      if (!isLive() || version.state !== 'pending') return await this.#hooks.files.drop(staged)
      const location = this.#hooks.files.locations.of(version)
      location.stage(staged)
      version.value = location
      this.#hooks.events.committed(task, version)
    } catch {
      // It is committed when its producer ends, and errors are reported then.
    }
  }
}

/** Of a file that is written elsewhere, and complete when that is said. */
const copyOf = ({ grows }: FileRules): FileRules => ({ closes: 0, grows })

const stepOf = (task: Task): string | undefined => jobOf(task).definition.command?.step

/** A step does not run again: those that read from it have got what it wrote, or an error. */
export const isStep = (task: Task): boolean => stepOf(task) !== undefined

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {}
  const promise = new Promise<void>(done => (resolve = done))
  return { promise, resolve }
}

/** The task's program may be told to end: it is neither being prepared nor being worked through. */
export const hasProgram = (task: Task): boolean => {
  const { attempt } = jobOf(task)
  return attempt?.program?.process != null && !attempt.isBusy
}
