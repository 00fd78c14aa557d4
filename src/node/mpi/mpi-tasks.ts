import { MillraceError } from '../../core/errors.ts'
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
import { isMachineLost } from '../processes/command-process.ts'
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
import type { Fetched, RankPool } from './pool.ts'
import { RankPools } from './rank-pools.ts'
import { spreadShares } from './rank-nodes.ts'
import type { RankNode } from './rank-nodes.ts'

export interface MpiParts {
  readonly own: RankNode
  /** All nodes of the run, in their order. */
  readonly nodes: readonly RankNode[]
  readonly binding: Binding
  readonly buffers: BufferOwnership
  readonly modules: TaskModules
  readonly files: NodeFiles
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
    const { place, machine } = parts.own
    this.#pools = new RankPools({
      place,
      cpus: machine.cpus,
      events: pool => ({
        ended: (header, bytes, fetched) => this.#ended(header, bytes, fetched),
        released: (header, bytes, fetched) => this.#released(header, bytes, fetched),
        gone: (reason, rank, isMachine) => this.#gone(pool(), reason, rank, isMachine),
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
      const { endings } = this.#parts
      if (!jobOf(task).attempt || attemptOf(task).state !== 'waiting') return
      if (isMachineLost(error)) endings.lose(task, false, error.shortMessage)
      else endings.fail(task, error, false)
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
    const lanes = this.#parts.binding.lanesOf(task)
    const isSpread = lanes.length < cpus
    const pool = await this.#ranks(task, form, cpus / form.cpus, isSpread)
    if (jobOf(task).attempt !== attempt) return
    if (!isLive(task)) return endings.lose(task, true, task.reason)
    // Those that are kept have the number of their lane.
    const isKept = !form.isolate && !isSpread
    const ranks = isKept ? lanes.filter((_, i) => i % form.cpus === 0) : pool.inOrder
    attempt.move('sent', task)
    limit(task)
    events.began(task, host.now())
    this.#send(task, form, pool, ranks, lanes)
  }

  #send(task: Task, form: MpiForm, pool: RankPool, ranks: readonly number[], lanes: readonly number[]): void {
    const { definition, slots } = jobOf(task)
    this.#writer.write(task, 0, true)
    const { encoder, placed } = this.#writer
    const record = encoder.copy()
    const blobs = [...encoder.blobs]
    const changed = task.accesses.filter(({ mode }, i) => mode !== 'in' && slots[i]?.kind === 'value')
    const written = changed.length
    const inPlace = new Set(placed.map(({ blob }) => blob))
    const behind: Uint8Array[] = [record]
    const paths: string[] = []
    const wire = blobs.map((blob, i): WireBlob => {
      const bytes = new Uint8Array(blob)
      if (written === 0 && bytes.length <= INLINE) {
        behind.push(bytes)
        paths.push('')
        return { size: bytes.length }
      }
      const path = pool.share(bytes, inPlace.has(i))
      paths.push(path)
      return { path, size: bytes.length }
    })
    const room = written * SCRATCH
    const scratch = written > 0 ? { path: pool.make(room), size: room } : null
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
      sites: pool.isFar ? ranks.map(rank => pool.siteOf(rank)) : null,
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

  async #ranks(task: Task, { isolate, cpus }: MpiForm, size: number, isSpread: boolean): Promise<RankPool> {
    const { own, nodes } = this.#parts
    const lanes = this.#parts.binding.lanesOf(task)
    const shares = isSpread
      ? spreadShares(task, cpus, lanes.length, own, nodes)
      : [{ place: own.place, count: size }]
    if (isolate) return this.#pools.open(shares)
    return isSpread ? this.#pools.borrow(shares) : this.#pools.kept()
  }

  // --- ends ---

  #ended(header: EndHeader, bytes: Buffer, fetched: Fetched): void {
    const gang = this.#gangs.get(header.id)
    if (!gang?.isCurrent || gang.task.attempt !== header.attempt) return
    const { decoder, buffers } = recordOf(gang, header, bytes, fetched, this.#parts.modules)
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
  #released(header: ReleasedHeader, bytes: Buffer, fetched: Fetched): void {
    const gang = this.#gangs.get(header.id)
    if (!gang?.isCurrent || gang.task.attempt !== header.attempt) return
    const { decoder, buffers } = recordOf(gang, header, bytes, fetched, this.#parts.modules)
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
    const { endings } = this.#parts
    const results = gang.results as Result[]
    const printed = results.some(result => result.printed)
    const isStopped = task.state === 'stopping' || gang.attempt.isOverdue
    if (isStopped) {
      this.#forget(gang)
      return endings.lose(task, true, task.reason)
    }
    const error =
      gang.failed === null
        ? gang.stream?.atEnd()
        : rankError((results[gang.failed] as Result).error, gang.failed, results.length)
    if (gang.failed !== null || error) {
      this.#forget(gang)
      return this.#fail(gang, error, printed)
    }
    const reading = this.#readBack(gang)
    if (!reading) return this.#conclude(gang)
    void reading.then(place => {
      if (this.#gangs.get(task.id) !== gang) return
      place()
      this.#conclude(gang)
    })
  }

  /** Brings what the ranks have written into memory of the program: at once, where they are on this machine. */
  #readBack(gang: Gang): Promise<() => void> | null {
    const { pool, ranks, blobs, paths } = gang
    const waits = gang.late.map(read => read())
    const copies: (() => void)[] = []
    for (const { blob, offset, length, isWritten } of gang.placed) {
      if (!isWritten) continue
      const target = new Uint8Array(blobs[blob] as ArrayBufferLike, offset, length)
      // Until all of it is here, the program has what it had: its node may be lost.
      const bytes = this.#parts.own.isHere ? target : new Uint8Array(length)
      waits.push(pool.read(ranks[0] as number, paths[blob] as string, offset, bytes))
      if (bytes !== target) copies.push(() => target.set(bytes))
    }
    const far = waits.filter(wait => wait !== null)
    if (far.length === 0) return null
    return Promise.all(far).then(() => () => {
      for (const copy of copies) copy()
    })
  }

  #conclude(gang: Gang): void {
    const { task } = gang
    const { endings, host, modules } = this.#parts
    const results = gang.results as Result[]
    const printed = results.some(result => result.printed)
    this.#drop(gang)
    this.#forget(gang)
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

  #drop(gang: Gang): void {
    gang.pool.remove(gang.paths.filter(Boolean))
  }

  #fail(gang: Gang, error: unknown, printed: boolean): void {
    this.#drop(gang)
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
  #gone(pool: RankPool, reason: string, died: number | null, isMachine: boolean): void {
    const { endings, events, host } = this.#parts
    this.#pools.gone(pool)
    for (const gang of this.#gangs.values()) {
      if (gang.pool !== pool || !gang.isCurrent) continue
      this.#forget(gang)
      const rank = died === null ? -1 : gang.ranks.indexOf(died)
      if (gang.isStopped || gang.task.state === 'stopping') endings.lose(gang.task, true, gang.task.reason)
      else if (isMachine) {
        // One that was there when several nodes were lost is taken for the cause.
        const isSuspect = host.afterLoss(gang.task, 'node', null) !== 'again'
        endings.lose(gang.task, isSuspect, isSuspect ? `the third in turn: ${reason}` : reason)
      } else if (rank >= 0 || gang.ranks.length === pool.size) {
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
