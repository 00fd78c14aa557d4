import type { Version } from '../data/datum.ts'
import type { MovePhase, Observer } from '../events.ts'
import type { Task } from '../tasks/task.ts'
import type { Device } from './device.ts'
import type { Storage } from './storage.ts'
import type { Move, MoveInstruction, Place } from './task-io.ts'

export interface MoveOptions {
  flush?: 'off' | 'idle' | 'always'
  prefetch?: boolean
}

/** Moves that read from one device at one time: enough to hide the gaps between files. */
const MOST_FROM_ONE = 2
/** Candidates that are looked at in one decision, so that its cost stays the same however many there are. */
const MOST_LOOKED_AT = 16
/** A rate that has changed by less is not worth telling. */
const NOTICEABLE = 0.1

/**
 * Data on their way between layers: down when no task will read them, up when ready tasks will. They only get
 * the bandwidth that tasks leave over, and go at the pace that is left.
 */
export class Moves {
  readonly active = new Set<Move>()
  readonly #flush: 'off' | 'idle' | 'always'
  readonly prefetches: boolean
  readonly #storage: Storage
  readonly #observer: () => Observer | null
  /** Versions that no task is known to read. */
  readonly #unread = new Set<Version>()
  /** Versions that ready tasks will read, and how many tasks. */
  readonly #wanted = new Map<Version, number>()
  /** Moves that failed are not tried again to the same place. */
  readonly #failed = new Map<Version, Set<Device>>()
  #last = 0
  /** Something has been moved: readers may have to be looked for elsewhere. */
  hasMoved = false

  constructor(storage: Storage, options: MoveOptions, observer: () => Observer | null) {
    this.#storage = storage
    this.#flush = options.flush ?? 'off'
    this.prefetches = options.prefetch ?? false
    this.#observer = observer
  }

  get isOn(): boolean {
    return this.#flush !== 'off' || this.prefetches
  }

  // --- what may be moved ---

  unread(version: Version): void {
    if (this.#flush !== 'off' && version.place && version.state === 'ready') this.#unread.add(version)
  }

  forget(version: Version): void {
    this.#unread.delete(version)
    this.#wanted.delete(version)
    this.#failed.delete(version)
  }

  /** A task is ready, or begins, or goes away: what it reads is wanted on a higher layer, or not any more. */
  want(task: Task, by: 1 | -1): void {
    for (const { read } of task.accesses) {
      if (!read?.place) continue
      const count = (this.#wanted.get(read) ?? 0) + by
      if (count > 0) this.#wanted.set(read, count)
      else this.#wanted.delete(read)
    }
  }

  // --- deciding ---

  /** Comes last in each decision, when tasks have taken what they need. */
  decide(now: number, isQuiet: boolean, instruct: (instruction: MoveInstruction) => void): void {
    if (this.#flush === 'always' || (this.#flush === 'idle' && isQuiet)) this.#flushSome(now, instruct)
    if (this.prefetches) this.#fetchSome(now, instruct)
    for (const move of this.active) {
      const rate = this.#rateFor(move.from, move.to, 0)
      if (isSimilar(rate, move.rate)) continue
      move.rate = rate
      instruct({ type: 'pace', move })
    }
  }

  #flushSome(now: number, instruct: (instruction: MoveInstruction) => void): void {
    let looked = 0
    for (const version of this.#unread) {
      const { place } = version
      // Where it is on its way to, it may have to go down again.
      if (place?.move && version.readers === 0) continue
      if (!place || version.readers > 0 || version.obsolete || this.#isLowest(place.device)) {
        this.#unread.delete(version)
        continue
      }
      if (++looked > MOST_LOOKED_AT) return
      const to = place.bytes === 0 ? null : this.#below(version, place)
      if (to) this.#begin(version, place, to, 'flush', now, instruct)
      else {
        // The next decision looks at others first.
        this.#unread.delete(version)
        this.#unread.add(version)
      }
    }
  }

  /** What lies there has nowhere to go. */
  #isLowest(device: Device): boolean {
    return device.capacity === Infinity || this.#layersOf(device).at(-1) === device
  }

  /** The lowest layer that has room (Algorithm 6); null if there is none below, or none is free. */
  #below(version: Version, { device, bytes, temporary }: Place): Device | null {
    const layers = this.#layersOf(device)
    for (let i = layers.length - 1; i >= 0; i--) {
      const layer = layers[i] as Device
      if (layer.rank <= device.rank) return null
      if (layer.hasRoom(bytes, temporary) && this.#isUsable(version, device, layer)) return layer
    }
    return null
  }

  #fetchSome(now: number, instruct: (instruction: MoveInstruction) => void): void {
    let looked = 0
    for (const version of this.#wanted.keys()) {
      const { place } = version
      if (!place || version.readers === 0) this.#wanted.delete(version)
      if (!place || version.readers === 0 || place.move) continue
      if (++looked > MOST_LOOKED_AT) return
      const bytes = place.measured ?? place.bytes
      const to = this.#layersOf(place.device).find(
        layer =>
          layer.rank < place.device.rank &&
          // Room for what tasks write comes first.
          layer.hasRoom(bytes * 2, place.temporary) &&
          this.#isUsable(version, place.device, layer),
      )
      if (to && bytes > 0) this.#begin(version, place, to, 'prefetch', now, instruct)
    }
  }

  #layersOf(device: Device): readonly Device[] {
    const node = this.#storage.nodes.find(({ layers }) => layers.includes(device))
    return node?.layers ?? []
  }

  #isUsable(version: Version, from: Device, to: Device): boolean {
    if (to.offline !== null || this.#failed.get(version)?.has(to)) return false
    let fromHere = 0
    for (const move of this.active) if (move.from === from) fromHere++
    return fromHere < MOST_FROM_ONE && this.#rateFor(from, to, 1) > 0
  }

  /** What tasks leave over on both devices, shared with other moves. */
  #rateFor(from: Device, to: Device, more: 0 | 1): number {
    return Math.min(this.#leftOver(from, 'read', more), this.#leftOver(to, 'write', more))
  }

  #leftOver(device: Device, way: 'read' | 'write', more: 0 | 1): number {
    // A trial in which nothing runs yet may be given up at once: to pause for it would go back and forth.
    if (device.learner?.isLearning && device.running.size > 0) return 0
    const budget = device[way]
    let unlimited = 0
    for (const { io } of device.running) if (io?.direction === way && io.bandwidth === 0) unlimited++
    if (budget.limit === Infinity) return unlimited > 0 ? 0 : Infinity
    let moves = more as number
    for (const move of this.active) if ((way === 'read' ? move.from : move.to) === device) moves++
    return budget.free / (Math.max(1, moves) + unlimited)
  }

  #begin(
    version: Version,
    place: Place,
    to: Device,
    why: Move['why'],
    now: number,
    instruct: (instruction: MoveInstruction) => void,
  ): void {
    const from = place.device
    const bytes = place.measured ?? place.bytes
    const move: Move = {
      id: ++this.#last,
      why,
      version,
      from,
      to,
      bytes,
      keepsOriginal: place.bytes === 0,
      rate: this.#rateFor(from, to, 1),
    }
    this.#storage.use(to, bytes, place.temporary)
    place.move = move
    this.active.add(move)
    this.#tell(move, 'started', now)
    instruct({ type: 'move', move })
  }

  // --- what comes of it ---

  moved(move: Move, now: number): void {
    const { version, from, to, bytes } = move
    if (!this.active.delete(move)) return
    const { place } = version
    if (place) {
      this.#storage.use(from, -place.bytes, place.temporary)
      place.bytes = bytes
      place.measured = bytes
      place.device = to
      place.move = null
    } else this.#storage.use(to, -bytes, version.datum.temporary)
    this.hasMoved = true
    this.#tell(move, 'done', now)
  }

  /** Or dropped, because it is not needed any more. */
  moveFailed(move: Move, reason: string, now: number, phase: 'failed' | 'dropped' = 'failed'): void {
    const { version, to, bytes } = move
    if (!this.active.delete(move)) return
    this.#storage.use(to, -bytes, version.datum.temporary)
    if (version.place) version.place.move = null
    const failed = this.#failed.get(version) ?? new Set()
    this.#failed.set(version, failed.add(to))
    this.#tell(move, phase, now, reason)
  }

  #tell({ id, why, version, from, to, bytes }: Move, phase: MovePhase, at: number, reason?: string): void {
    this.#observer()?.({
      type: 'move',
      at,
      move: id,
      phase,
      why,
      version: version.id,
      from: from.index,
      to: to.index,
      bytes,
      ...(reason === undefined ? {} : { reason }),
    })
  }
}

function isSimilar(a: number, b: number): boolean {
  if (a === b) return true
  if (a === 0 || b === 0 || a === Infinity || b === Infinity) return false
  return Math.abs(a - b) <= NOTICEABLE * Math.max(a, b)
}
