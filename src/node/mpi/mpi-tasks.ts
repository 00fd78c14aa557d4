import { pathToFileURL } from 'node:url'
import { MillraceError } from '../../core/errors.ts'
import type { Node } from '../../core/schedule/machine.ts'
import type { Task } from '../../core/tasks/task.ts'
import { modulePath, taskModules } from '../../model/definition.ts'
import type { MpiForm } from '../../model/mpi/form.ts'
import { Decoder } from '../../model/encoding/decode.ts'
import { Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import { isLive } from '../attempt.ts'
import type { Binding } from '../cpus/binding.ts'
import type { Endings } from '../endings.ts'
import { timeoutError } from '../failure-facts.ts'
import type { NodeFiles } from '../files/node-files.ts'
import { storeOutputs } from '../files/outputs.ts'
import { attemptOf, jobOf } from '../job.ts'
import type { NodeEvents, NodeHost } from '../node.ts'
import type { Watchdog } from '../processes/watchdog.ts'
import type { TaskForm } from '../task-form.ts'
import type { BufferOwnership } from '../threads/buffer-ownership.ts'
import type { TaskModules } from '../threads/modules.ts'
import { STATUS, clockOrigin } from '../threads/protocol.ts'
import { readResult } from '../threads/results.ts'
import type { Result } from '../threads/results.ts'
import { TaskWriter } from '../threads/task-writer.ts'
import type { EndHeader, TaskHeader, WireBlob } from './frames.ts'
import { Gang } from './gang.ts'
import { gathered, rankError } from './gathered.ts'
import { findMpi } from './launcher.ts'
import type { RankPool } from './pool.ts'
import { emptyShared, readShared, removeShared, sharedFolder, writeShared } from './shared-files.ts'

export interface MpiParts {
  readonly run: string
  readonly logs: string | null
  /** The node is this machine. */
  readonly isHere: boolean
  readonly machine: Node
  readonly binding: Binding
  readonly buffers: BufferOwnership
  readonly modules: TaskModules
  readonly files: NodeFiles
  readonly watchdog: Watchdog
  readonly host: NodeHost
  readonly events: NodeEvents
  readonly endings: Endings
  limit(task: Task): void
}

/** Buffers up to this size go through the socket, where the task writes none. */
const INLINE = 64 * 1024
/** Room for small arrays that a task writes, for each of its slots. */
const SCRATCH = 32 * 1024
/** After a rank has failed, the others get so many milliseconds to end by themselves. */
const GRACE = 500
const LOOK = 100

/** MPI tasks: their functions run in processes that mpirun started once, as many as there are lanes. */
export class MpiTasks implements TaskForm {
  readonly #parts: MpiParts
  readonly #writer: TaskWriter
  readonly #gangs = new Map<number, Gang>()
  #pool: Promise<RankPool> | null = null
  #pools = new Set<RankPool>()
  #timer: NodeJS.Timeout | null = null
  #tag = 0
  #isOver = false

  constructor(parts: MpiParts) {
    this.#parts = parts
    this.#writer = new TaskWriter(
      parts.buffers,
      null,
      () => false,
      () => null,
    )
  }

  /** The first task starts the ranks: to define MPI tasks costs nothing. */
  warmUp(): null {
    return null
  }

  prepare(task: Task): Promise<void> | null {
    return this.#parts.files.tasks.prepare(task)
  }

  beginsAtOnce(): boolean {
    return false
  }

  mustWait(): boolean {
    return true
  }

  launch(task: Task): void {
    void this.#launch(task).catch((error: unknown) => {
      if (jobOf(task).attempt && attemptOf(task).state === 'waiting')
        this.#parts.endings.fail(task, error, false)
    })
  }

  async #launch(task: Task): Promise<void> {
    const attempt = attemptOf(task)
    const { buffers, endings, events, host, limit } = this.#parts
    attempt.move('waiting', task)
    for (let away = this.#writer.missing(task); away; away = this.#writer.missing(task)) {
      const kept = away
      await new Promise<void>(resolve => buffers.whenBack(kept, resolve))
    }
    const form = formOf(task)
    const { cpus } = task.implementation.demand ?? task.demand
    const size = cpus / form.cpus
    const pool = await this.#ranks(form, size)
    if (jobOf(task).attempt !== attempt) return
    if (!isLive(task)) return endings.lose(task, true, task.reason)
    const lanes = this.#parts.binding.lanesOf(task)
    const own = Array.from({ length: size }, (_, i) => lanes[i * form.cpus] as number)
    const ranks = form.isolate ? own.map((_, i) => i) : own
    attempt.move('sent', task)
    limit(task)
    events.began(task, host.now())
    this.#send(task, form, pool, ranks, lanes)
  }

  #send(task: Task, form: MpiForm, pool: RankPool, ranks: readonly number[], lanes: readonly number[]): void {
    const { definition, slots } = jobOf(task)
    const folder = this.#folders.get(pool) as string
    this.#writer.write(task, 0, true)
    const { encoder, placed } = this.#writer
    const record = encoder.copy()
    const blobs = [...encoder.blobs]
    const written = task.accesses.filter(({ mode }, i) => mode !== 'in' && slots[i]?.kind === 'value').length
    const behind: Uint8Array[] = [record]
    const paths: string[] = []
    const wire = blobs.map((blob): WireBlob => {
      const bytes = new Uint8Array(blob)
      if (written === 0 && bytes.length <= INLINE) {
        behind.push(bytes)
        paths.push('')
        return { size: bytes.length }
      }
      const path = writeShared(folder, bytes)
      paths.push(path)
      return { path, size: bytes.length }
    })
    const scratch =
      written > 0 ? { path: emptyShared(folder, written * SCRATCH), size: written * SCRATCH } : null
    const gang = new Gang({
      task,
      pool,
      ranks,
      paths: [...paths, scratch?.path ?? ''],
      placed: [...placed],
      blobs,
    })
    this.#gangs.set(task.id, gang)
    const tag = (this.#tag = (this.#tag + 1) % 16_000)
    const bound = this.#parts.binding.cpusOf(task) ?? []
    const common: Omit<TaskHeader, 'rank' | 'cpus'> = {
      type: 'task',
      id: task.id,
      attempt: task.attempt,
      kind: task.kind.id,
      key: definition.key,
      module: definition.module,
      ranks,
      tag,
      root: form.root ?? (form.reduce ? 0 : null),
      layout: form.layout,
      scratch,
      threads: form.cpus,
      gpus: this.#parts.binding.gpusOf(task),
      blobs: wire,
      record: record.length,
    }
    ranks.forEach((rank, i) => {
      const cpus = bound.length === lanes.length ? bound.slice(i * form.cpus, (i + 1) * form.cpus) : []
      pool.send(rank, { ...common, rank: i, cpus }, behind)
    })
    this.#timer ??= setInterval(() => this.#look(), LOOK)
  }

  // --- ranks ---

  readonly #folders = new Map<RankPool, string>()

  async #ranks(form: MpiForm, size: number): Promise<RankPool> {
    if (form.isolate) return this.#open(size)
    this.#pool ??= this.#open(this.#parts.machine.cpus).catch((error: unknown) => {
      this.#pool = null
      throw error
    })
    const pool = await this.#pool
    if (!pool.isGone) return pool
    this.#pool = null
    return this.#ranks(form, size)
  }

  async #open(size: number): Promise<RankPool> {
    const { run, logs, watchdog, isHere, machine, host } = this.#parts
    if (!isHere) {
      throw new MillraceError('MR_MPI', 'MPI tasks run on the machine of the program only', {
        hint: 'Run without --nodes, or make it a command({ mpi: … }) of the site.',
      })
    }
    const mpi = findMpi()
    if (!mpi.compiler) {
      throw new MillraceError(
        'MR_MPI',
        'there is no mpicc on this machine, which builds what connects MPI to Node',
      )
    }
    const { mpiAddon } = await import('../../native/mpi-addon.ts')
    // Programs without MPI tasks do not load it.
    const { RankPool: Pool } = await import('./pool.ts')
    const addon = await mpiAddon(mpi.compiler).catch((error: unknown) => {
      throw new MillraceError(
        'MR_MPI',
        `what connects MPI to Node could not be built: ${(error as Error).message}`,
      )
    })
    watchdog.start()
    const folder = sharedFolder(run)
    watchdog.folder(folder)
    const entry = process.argv[1] ? pathToFileURL(process.argv[1]).href : null
    const modules = [...taskModules()]
    const all = entry ? [...modules, entry] : modules
    const typescript = all.some(module => /\.[cm]?tsx?$/.test(modulePath(module)))
    const startedAt = clockOrigin() + performance.now() - host.now()
    const environment = { ...(process.env as Record<string, string>), MILLRACE_RUN: run }
    const pool: RankPool = new Pool(
      {
        mpi,
        size,
        folder,
        node: machine.name,
        start: { addon, modules, entry, typescript, logs, startedAt },
        environment,
        execArgv: ['--conditions=millrace-thread'],
      },
      {
        ended: (header, bytes) => this.#ended(header, bytes),
        gone: (reason, rank) => this.#gone(pool, reason, rank),
      },
    )
    this.#pools.add(pool)
    this.#folders.set(pool, folder)
    if (this.#isOver) pool.endNow()
    await pool.ready
    return pool
  }

  // --- ends ---

  #ended(header: EndHeader, bytes: Buffer): void {
    const gang = this.#gangs.get(header.id)
    if (!gang?.isCurrent || gang.task.attempt !== header.attempt) return
    const result = this.#read(gang, header, bytes)
    gang.results[header.rank] = result
    if (result.status === STATUS.failed) {
      gang.failed ??= header.rank
      if (!gang.isComplete) setTimeout(() => this.#failSoon(gang), GRACE).unref()
    } else this.#release(gang, header.rank, result)
    if (gang.isComplete) this.#complete(gang)
  }

  #read(gang: Gang, { blobs, record }: EndHeader, bytes: Buffer): Result {
    let at = record
    const buffers = blobs.map(blob => {
      const size = 'given' in blob ? (gang.sizes[blob.given] as number) : blob.size
      const memory = new SharedArrayBuffer(size)
      const into = new Uint8Array(memory)
      if ('given' in blob) {
        const path = gang.paths[blob.given] as string
        if (path === '') into.set(new Uint8Array(gang.blobs[blob.given] as ArrayBufferLike))
        else gang.late.push(() => readShared(path, 0, into))
      } else if ('path' in blob) {
        readShared(blob.path, 0, into)
        removeShared([blob.path])
      } else into.set(bytes.subarray(at, (at += size)))
      return memory
    })
    const { modules } = this.#parts
    const decoder = new Decoder(new Uint8Array(bytes.subarray(0, record)), {
      findClass: (module, name) => modules.findClass(module, name),
      slot: () => undefined,
    })
    decoder.varint()
    return readResult(decoder, record, buffers)
  }

  /** With a future for each rank, that of a rank is there when the rank has ended. */
  #release(gang: Gang, rank: number, { outputs: [value], startedAt, took }: Result): void {
    const { task } = gang
    if (jobOf(task).definition.returns === 0 || value === undefined || gang.late.length > 0) return
    // What cannot be compared would be released again by another attempt.
    if (task.attempt <= task.retries || gang.isComplete) return
    const bytes = value instanceof Stored ? value.bytes.length : 8
    const early = { index: rank, value, bytes, check: 0, at: startedAt + took }
    if (isLive(task)) this.#parts.events.released(task, startedAt, early)
  }

  #complete(gang: Gang): void {
    const { task } = gang
    const { endings, host, modules } = this.#parts
    this.#forget(gang)
    if (task.state === 'stopping' || gang.attempt.isOverdue) return endings.lose(task, true, task.reason)
    const results = gang.results as Result[]
    const printed = results.some(result => result.printed)
    if (gang.failed !== null) {
      const error = rankError((results[gang.failed] as Result).error, gang.failed, results.length)
      return this.#fail(gang, error, printed)
    }
    for (const read of gang.late) read()
    for (const { blob, offset, length, isWritten } of gang.placed) {
      if (!isWritten) continue
      readShared(
        gang.paths[blob] as string,
        offset,
        new Uint8Array(gang.blobs[blob] as ArrayBufferLike, offset, length),
      )
    }
    removeShared(gang.paths.filter(Boolean))
    const { definition } = jobOf(task)
    const form = formOf(task)
    const returned = results.map(({ outputs }) => outputs[0] as Kept)
    const written = results[0]?.outputs.slice(1) ?? []
    let values: (Kept | undefined)[]
    try {
      const one = form.root ?? (form.reduce ? 0 : null)
      values =
        definition.returns > 0 ? returned : one === null ? [gathered(returned, modules)] : [returned[one]]
    } catch (error) {
      return this.#fail(gang, error, printed)
    }
    const startedAt = Math.min(...results.map(result => result.startedAt))
    const took = Math.max(...results.map(result => result.startedAt + result.took)) - startedAt
    const ending = { startedAt, took, outputs: [...values, ...written] }
    endings.finish(task, ending, host.now())
  }

  #fail(gang: Gang, error: unknown, printed: boolean): void {
    removeShared(gang.paths.filter(Boolean))
    const own = gang.attempt.isOverdue ? timeoutError(gang.task) : error
    this.#parts.endings.fail(gang.task, own, printed)
  }

  /** A rank has failed; those that wait for it never end. */
  #failSoon(gang: Gang): void {
    if (!gang.isCurrent || gang.isComplete || this.#gangs.get(gang.task.id) !== gang) return
    const failed = gang.failed as number
    const result = gang.results[failed] as Result
    this.#forget(gang)
    gang.pool.kill(`rank ${failed} of ${gang.task.name} failed, and the others wait for it`)
    this.#fail(gang, rankError(result.error, failed, gang.ranks.length), result.printed)
  }

  #look(): void {
    const now = performance.now()
    for (const gang of this.#gangs.values()) {
      if (gang.pool.isGone) continue
      const why = gang.standstill(now)
      if (why === null) continue
      this.#forget(gang)
      gang.pool.kill(`the ranks of ${gang.task.name} wait for each other`)
      this.#fail(gang, new MillraceError('MR_MPI_MISUSE', why), true)
    }
  }

  /** Those that ran in it begin again elsewhere, but for the one whose rank died. */
  #gone(pool: RankPool, reason: string, died: number | null): void {
    const { endings, events } = this.#parts
    this.#pools.delete(pool)
    this.#folders.delete(pool)
    for (const gang of this.#gangs.values()) {
      if (gang.pool !== pool || !gang.isCurrent) continue
      this.#forget(gang)
      const rank = died === null ? -1 : gang.ranks.indexOf(died)
      if (gang.isStopped || gang.task.state === 'stopping') endings.lose(gang.task, true, gang.task.reason)
      else if (rank >= 0 || gang.ranks.length === pool.size) {
        const which = rank >= 0 ? `rank ${rank} of ${gang.ranks.length}` : 'a rank'
        this.#fail(gang, new MillraceError('MR_MPI_RANK', `${which} ended before its time: ${reason}`), true)
      } else endings.lose(gang.task, false, reason)
    }
    events.changed()
  }

  #forget(gang: Gang): void {
    this.#gangs.delete(gang.task.id)
    if (formOf(gang.task).isolate) void gang.pool.end()
    if (this.#gangs.size > 0 || !this.#timer) return
    clearInterval(this.#timer)
    this.#timer = null
  }

  // --- the rest of a form ---

  /** The ranks cannot be stopped one by one: all go, and others that run in them begin again. */
  stop(task: Task): void {
    const gang = this.#gangs.get(task.id)
    if (!gang?.isCurrent) return this.#parts.endings.lose(task, true, task.reason)
    gang.isStopped = true
    gang.pool.kill(task.reason || 'it was stopped')
  }

  stopOverdue(task: Task): void {
    this.stop(task)
  }

  recall(): void {}

  takeResults(): boolean {
    return false
  }

  hasBegun(task: Task): boolean {
    return this.#gangs.has(task.id)
  }

  hurry(): void {}

  collect(task: Task, outputs: readonly (Kept | undefined)[]): void {
    storeOutputs(task, outputs, jobOf(task).definition.returns || 1)
  }

  left(): void {}
  flush(): void {}
  drain(): void {}

  tick(): boolean {
    return false
  }

  async end(): Promise<void> {
    this.#isOver = true
    if (this.#timer) clearInterval(this.#timer)
    await Promise.all(Array.from(this.#pools, pool => pool.end()))
  }

  endNow(): void {
    this.#isOver = true
    for (const pool of this.#pools) pool.endNow()
  }
}

const formOf = (task: Task): MpiForm => jobOf(task).definition.mpi as MpiForm
