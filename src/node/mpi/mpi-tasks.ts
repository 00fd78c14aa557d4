import { hostname } from 'node:os'
import { MillraceError } from '../../core/errors.ts'
import type { Node } from '../../core/schedule/machine.ts'
import type { Task } from '../../core/tasks/task.ts'
import type { MpiForm } from '../../model/mpi/form.ts'
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
import type { GeneratorStart } from '../threads/early-wire.ts'
import type { BufferOwnership } from '../threads/buffer-ownership.ts'
import type { TaskModules } from '../threads/modules.ts'
import { STATUS } from '../threads/protocol.ts'
import { readRelease, readResult } from '../threads/results.ts'
import type { Result } from '../threads/results.ts'
import { TaskWriter } from '../threads/task-writer.ts'
import type { EndHeader, ReleasedHeader, TaskHeader, WireBlob } from './frames.ts'
import { GangStream } from './gang-stream.ts'
import { Gang } from './gang.ts'
import { gathered, rankError, recordOf } from './gathered.ts'
import type { RankPool } from './pool.ts'
import { RankPools } from './rank-pools.ts'
import { emptyShared, readShared, removeShared, writeShared } from './shared-files.ts'

export interface MpiParts {
  readonly run: string
  readonly logs: string | null
  /** The node is this machine, or an agent on it. */
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
/** After a rank has failed, the others have this many milliseconds to end by themselves. */
const GRACE = 500
const LOOK = 100
/** The place of all ranks, where answers go. */
export const RANKS = -1

/** MPI tasks: their functions run in processes that mpirun started once, as many as there are lanes. */
export class MpiTasks implements TaskForm {
  readonly #parts: MpiParts
  readonly #writer: TaskWriter
  readonly #gangs = new Map<number, Gang>()
  readonly #pools: RankPools
  #timer: NodeJS.Timeout | null = null
  #tag = 0
  #requests = 0
  readonly #answers = new Map<number, { gang: Gang; go: () => void }>()

  constructor(parts: MpiParts) {
    this.#parts = parts
    this.#writer = new TaskWriter(
      parts.buffers,
      null,
      () => false,
      () => null,
    )
    const { run, logs, machine, watchdog, host } = parts
    this.#pools = new RankPools({
      run,
      logs,
      node: hostname(),
      cpus: machine.cpus,
      watchdog,
      now: () => host.now(),
      events: pool => ({
        ended: (header, bytes) => this.#ended(header, bytes),
        released: (header, bytes) => this.#released(header, bytes),
        gone: (reason, rank) => this.#gone(pool(), reason, rank),
      }),
    })
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
    const { cpus } = task.attemptDemand
    const size = cpus / form.cpus
    const lanes = this.#parts.binding.lanesOf(task)
    // With lanes of several agents, whose ranks are not one pool.
    const isOwn = form.isolate || lanes.length < cpus
    const pool = await this.#ranks(form.isolate, isOwn, size)
    if (jobOf(task).attempt !== attempt) return
    if (!isLive(task)) return endings.lose(task, true, task.reason)
    const own = Array.from({ length: size }, (_, i) => lanes[i * form.cpus] as number)
    const ranks = isOwn ? own.map((_, i) => i) : own
    attempt.move('sent', task)
    limit(task)
    events.began(task, host.now())
    this.#send(task, form, pool, ranks, lanes)
  }

  #send(task: Task, form: MpiForm, pool: RankPool, ranks: readonly number[], lanes: readonly number[]): void {
    const { definition, slots } = jobOf(task)
    const folder = this.#pools.folderOf(pool)
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
      root: oneOf(form),
      isGenerator: definition.stream !== null,
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
    const { early } = gang.attempt
    if (early?.type !== 'generator') return
    gang.stream = this.#streamOf(gang, early)
    gang.stream.begin()
  }

  #streamOf(gang: Gang, early: GeneratorStart): GangStream {
    const { task, pool } = gang
    const { events, modules, host } = this.#parts
    const one = oneOf(formOf(task))
    const isCurrent = (): boolean => this.#gangs.get(task.id) === gang && gang.isCurrent
    return new GangStream(early, gang.ranks.length, {
      ask: isWanted => {
        for (const rank of gang.ranks) pool.send(rank, { type: 'step', id: task.id, isWanted })
      },
      waitForRoom: (items, bytes) =>
        new Promise(resolve => {
          const request = ++this.#requests
          this.#answers.set(request, { gang, go: () => resolve(null) })
          const question = { ask: 'room', items, bytes } as const
          events.said(task, { type: 'ask', request, task: task.id, question }, RANKS)
        }),
      combine: values => (one === null ? gathered(values, modules) : (values[one] as Kept)),
      release: value => {
        if (isLive(task)) events.released(task, host.now(), value)
      },
      isCurrent,
      fail: error => {
        if (isCurrent()) this.#giveUp(gang, error, 'its generator cannot go on')
      },
    })
  }

  /** An answer to what a task asked the coordinator. */
  answer(request: number): void {
    this.#answers.get(request)?.go()
    this.#answers.delete(request)
  }

  async #ranks(isIsolated: boolean, isOwn: boolean, size: number): Promise<RankPool> {
    if (!this.#parts.isHere) {
      throw new MillraceError(
        'MR_MPI',
        `MPI tasks do not run on ${this.#parts.machine.name}, another machine`,
        {
          hint: 'Run on one machine, without --nodes or with --nodes local:N; or make it a program of its own: command({ mpi: … }).',
        },
      )
    }
    if (isIsolated) return this.#pools.open(size)
    return isOwn ? this.#pools.borrow(size) : this.#pools.kept()
  }

  // --- ends ---

  #ended(header: EndHeader, bytes: Buffer): void {
    const gang = this.#gangs.get(header.id)
    if (!gang?.isCurrent || gang.task.attempt !== header.attempt) return
    const { decoder, buffers } = recordOf(gang, header, bytes, this.#parts.modules)
    const result = readResult(decoder, header.record, buffers)
    if (header.isReleased) result.outputs[0] = undefined
    gang.results[header.rank] = result
    if (result.status === STATUS.failed) {
      gang.failed ??= header.rank
      if (!gang.isComplete) setTimeout(() => this.#failSoon(gang), GRACE).unref()
    } else if (gang.stream) gang.stream.ended(header.rank)
    else this.#release(gang, header.rank, result)
    if (gang.isComplete && this.#gangs.get(gang.task.id) === gang) this.#complete(gang)
  }

  /** A rank has released a value, or yielded one. */
  #released(header: ReleasedHeader, bytes: Buffer): void {
    const gang = this.#gangs.get(header.id)
    if (!gang?.isCurrent || gang.task.attempt !== header.attempt) return
    const { decoder, buffers } = recordOf(gang, header, bytes, this.#parts.modules)
    decoder.byte()
    const { startedAt, value } = readRelease(decoder, buffers)
    if (!value) return
    if (gang.stream) gang.stream.take(header.rank, value)
    else if (isLive(gang.task)) this.#parts.events.released(gang.task, startedAt, value)
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
    const wrong = gang.stream?.atEnd()
    if (wrong) return this.#fail(gang, wrong, printed)
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
    const returned = results.map(({ outputs }) => outputs[0] as Kept)
    const written = results[0]?.outputs.slice(1) ?? []
    let values: (Kept | undefined)[]
    try {
      const one = oneOf(formOf(task))
      if (gang.stream) values = [undefined]
      else if (definition.returns > 0) values = returned
      else values = one === null ? [gathered(returned, modules)] : [returned[one]]
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
      this.#giveUp(gang, new MillraceError('MR_MPI_MISUSE', why), 'its ranks wait for each other')
    }
  }

  /** It fails, and its ranks do not know of it. */
  #giveUp(gang: Gang, error: unknown, why: string): void {
    this.#forget(gang)
    gang.pool.kill(`${gang.task.name} failed: ${why}`)
    this.#fail(gang, error, true)
  }

  /** Those that ran in it begin again elsewhere, but for the one whose rank died. */
  #gone(pool: RankPool, reason: string, died: number | null): void {
    const { endings, events } = this.#parts
    this.#pools.gone(pool)
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
    for (const [request, answer] of this.#answers) if (answer.gang === gang) this.#answers.delete(request)
    this.#pools.free(gang.pool, gang.isComplete && !formOf(gang.task).isolate)
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
    if (this.#timer) clearInterval(this.#timer)
    await this.#pools.end()
  }

  endNow(): void {
    this.#pools.endNow()
  }
}

/** The rank whose value is the result, or null for those of all. */
const oneOf = ({ root, reduce }: MpiForm): number | null => root ?? (reduce ? 0 : null)

const formOf = (task: Task): MpiForm => jobOf(task).definition.mpi as MpiForm
