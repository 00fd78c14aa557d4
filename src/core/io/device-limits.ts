import type { Observer } from '../events.ts'
import type { Bandwidth } from '../tasks/demand.ts'
import type { Kind, Task } from '../tasks/task.ts'
import { AdaptiveLimit } from './adaptive.ts'
import type { Device } from './device.ts'
import type { Learned } from './io-core.ts'
import type { IoQueue } from './io-queue.ts'
import { Looks } from './looks.ts'
import { TrialRegistry } from './trial-registry.ts'
import type { LearningWay } from './trial-registry.ts'
import { writesFiles } from './task-io.ts'
import type { TaskIo } from './task-io.ts'
import type { Trial } from './trials.ts'
import { AutoTuner } from './tuner.ts'

const isAuto = (bandwidth: Bandwidth | undefined): boolean =>
  bandwidth === 'auto' || (typeof bandwidth === 'object' && bandwidth !== null)

/** Fewer tasks than these tell nothing. */
const LEAST_LEARNING = 12

/** Devices of one sort, each on a node of its own: what holds for one of them holds for all. */
const sortOf = ({ name, path, node, index, executors }: Device, limit: number): string =>
  JSON.stringify(node === null ? index : [name, path, limit, executors])

/** How much bandwidth each task holds where: given, learned, or found by going on trying. */
export class DeviceLimits {
  readonly #tuners = new Map<Kind, AutoTuner[]>()
  /** What was learned of a kind, by sort of device. */
  readonly #registries = new Map<Kind, Map<string, TrialRegistry>>()
  /** The least that was chosen for a kind on any device. */
  readonly #least = new Map<Kind, number>()
  readonly #adaptive: Record<'read' | 'write', AdaptiveLimit[]> = { read: [], write: [] }
  /** Kinds with such tasks that wait, and how often they came after there had been none. */
  readonly #waiting: Record<'read' | 'write', Map<Kind, number>> = { read: new Map(), write: new Map() }
  #comings = 0
  /** Tasks that were submitted, per kind that learns. */
  readonly #known = new Map<Kind, number>()
  /** Kinds that have new tasks, for which the choice is to be made again. */
  readonly #arrived = new Set<Kind>()
  readonly #learned: readonly Learned[]
  readonly #share: number
  readonly #way: LearningWay
  readonly #devices: () => readonly Device[]
  /** Devices on which a kind learns, or was refused to: all others need no check. */
  readonly #claimed = new Set<Device>()
  readonly #queue: IoQueue
  /** How fast the first tasks of a kind write. */
  readonly looks = new Looks()
  readonly #observer: () => Observer | null
  #now = 0
  /** A device was left idle because it was another kind's turn. */
  #isIdleForTurn = false
  #ignoresTurns = false

  constructor(
    queue: IoQueue,
    options: { learning?: LearningWay; learningShare?: number; learned?: readonly Learned[] },
    observer: () => Observer | null,
    devices: () => readonly Device[],
  ) {
    this.#devices = devices
    this.#queue = queue
    this.#share = options.learningShare ?? 1
    this.#way = options.learning ?? 'search'
    this.#learned = options.learned ?? []
    this.#observer = observer
  }

  // --- what happens ---

  submitted(kind: Kind, bandwidth: Bandwidth): void {
    if (isAuto(bandwidth)) this.#known.set(kind, (this.#known.get(kind) ?? 0) + 1)
  }

  arrived({ kind, demand, io }: Task): void {
    if (this.#tuners.has(kind)) this.#arrived.add(kind)
    if (demand.storage?.bandwidth !== 'adaptive' || !io) return
    const waiting = this.#waiting[io.direction]
    if (this.#queue.waiting(kind) === 1 || !waiting.has(kind)) waiting.set(kind, ++this.#comings)
  }

  started(task: Task, io: TaskIo, now: number): void {
    if (!io.device) return
    const bandwidth = task.demand.storage?.bandwidth
    if (isAuto(bandwidth)) {
      const tuner = this.#tuner(task, io, io.device)
      io.lesson = tuner.started(now)
      const { learning } = tuner
      if (learning?.wantsRates && io.direction === 'write' && writesFiles(task))
        this.looks.watch(task, learning, now)
    } else if (bandwidth === 'adaptive') {
      io.begun = this.#adaptiveOn(io.device, io.direction).started(
        task.kind,
        now,
        task.demand.storage?.size ?? 0,
      )
    }
  }

  /** `took` is negative if the attempt came to nothing. */
  ended(task: Task, io: TaskIo, took: number, bytes: number, now: number): void {
    const { device, begun } = io
    if (!device) return
    const bandwidth = task.demand.storage?.bandwidth
    this.#now = now
    this.looks.drop(task)
    if (isAuto(bandwidth)) {
      const tuner = this.#tuner(task, io, device)
      const most = this.#mostLearnedFrom(task.kind)
      if (tuner.ended(took, io.lesson, this.#queue.waiting(task.kind), now, most, bytes))
        this.#trialEnded(tuner, device)
    } else if (begun) {
      io.begun = null
      const limit = this.#adaptiveOn(device, io.direction)
      if (took >= 0) {
        limit.ended(task.kind, begun, Math.max(bytes, 1), took, now, this.#queue.waiting(task.kind) > 0)
        this.#tellAdaptive(limit, task.kind, device)
      } else limit.dropped(task.kind, begun, now)
    }
  }

  /** Learners take turns, trial by trial. */
  #trialEnded(tuner: AutoTuner, device: Device): void {
    const { learners } = device
    learners.delete(tuner)
    device.learner = null
    this.#arrived.add(tuner.kind)
    for (const next of learners) {
      learners.delete(next)
      if (this.#queue.waiting(next.kind) === 0) continue
      device.learner = next
      this.#claimed.add(device)
      return
    }
  }

  // --- what is asked ---

  /** Some kind has a limit that is learned. */
  get isLearning(): boolean {
    return this.#tuners.size > 0
  }

  /** Comes first in each decision. */
  refresh(now: number): void {
    this.#now = now
    this.#isIdleForTurn = this.#ignoresTurns = false
    for (const device of this.#claimed) {
      device.refusesLearning = false
      const { learner } = device
      // Its tasks went elsewhere, or were cancelled.
      if (learner && this.#queue.waiting(learner.kind) === 0) this.#leave(device, learner)
      if (!device.learner) this.#claimed.delete(device)
    }
    for (const kind of this.#arrived) {
      const waiting = this.#queue.waiting(kind)
      let least = Infinity
      for (const tuner of this.#tuners.get(kind) ?? []) {
        tuner?.choose(waiting)
        if (tuner) least = Math.min(least, tuner.choice.bandwidth)
      }
      this.#least.set(kind, least)
    }
    this.#arrived.clear()
  }

  /** Bytes per second that the task would hold on the device; negative if it must not start there now. */
  for(task: Task, io: TaskIo, device: Device): number {
    const bandwidth = task.demand.storage?.bandwidth
    if (isAuto(bandwidth)) return this.#auto(this.#tuner(task, io, device), device, io.direction)
    if (device.learner || this.#isLearningNode(device, null)) return -1
    if (bandwidth !== 'adaptive') return (bandwidth as number | null | undefined) ?? 0
    const limit = this.#adaptiveOn(device, io.direction)
    if (limit.running >= limit.limit) return -1
    if (this.#ignoresTurns || limit.isTurnOf(task.kind, this.#stillWaiting(io.direction))) return 0
    if (limit.running === 0) this.#isIdleForTurn = true
    return -1
  }

  /** Tasks that may begin to write on the device before it has as many as are good for it, at most. */
  slots(device: Device): number {
    const limit = this.#adaptive.write[device.index]
    return limit ? limit.limit - limit.running : Infinity
  }

  /** Bytes per second without which the task starts nowhere; negative while that is being learned. */
  least({ kind, demand }: Task): number {
    const bandwidth = demand.storage?.bandwidth ?? 0
    if (typeof bandwidth === 'number') return bandwidth
    if (bandwidth === 'adaptive') return -Infinity
    // A kind that was just measured has not chosen yet.
    if (this.#arrived.has(kind)) return -Infinity
    let least = this.#least.get(kind) ?? -Infinity
    for (const registry of this.#registries.get(kind)?.values() ?? []) {
      if (!registry.isOver) least = Math.min(least, registry.leastOffer)
    }
    return least
  }

  #stillWaiting(direction: 'read' | 'write'): ReadonlyMap<Kind, number> {
    const waiting = this.#waiting[direction]
    for (const kind of waiting.keys()) if (this.#queue.waiting(kind) === 0) waiting.delete(kind)
    return waiting
  }

  #auto(tuner: AutoTuner, device: Device, way: 'read' | 'write'): number {
    if (device.learner && device.learner !== tuner) {
      device.learners.add(tuner)
      return -1
    }
    if (tuner.isLearning) return tuner.offer(way)
    if (this.#isLearningNode(device, tuner)) return -1
    const waiting = this.#queue.waiting(tuner.kind)
    if (!tuner.wants(waiting) || device.refusesLearning) {
      device.learner = null
      return tuner.offer(way)
    }
    // It claims the device, and begins when the others there have ended.
    device.learner = tuner
    this.#claimed.add(device)
    if (device.running.size > 0 || this.#isBusyNode(device)) return -1
    tuner.begin(waiting)
    return tuner.offer(way)
  }

  /** In the way of the paper, a learner has its whole node: nothing else is read or written there. */
  #isLearningNode({ node, index }: Device, tuner: AutoTuner | null): boolean {
    if (this.#way === 'search' || node === null) return false
    for (const other of this.#claimed) {
      if (other.node === node && other.index !== index && other.learner && other.learner !== tuner)
        return true
    }
    return false
  }

  #isBusyNode({ node, index }: Device): boolean {
    if (this.#way === 'search' || node === null) return false
    return this.#devices().some(one => one.node === node && one.index !== index && one.running.size > 0)
  }

  /** Each sort of device has to be learned by itself. */
  #mostLearnedFrom(kind: Kind): number {
    if (this.#share >= 1) return Infinity
    const sorts = this.#registries.get(kind)?.size ?? 1
    return Math.max(LEAST_LEARNING, (this.#share * (this.#known.get(kind) ?? 0)) / sorts)
  }

  /**
   * Gives up claims to devices on which nothing runs and nothing begins, and turns likewise: their holder waits for
   * something else, which perhaps only other tasks can bring about. True if there was one.
   */
  dropIdleClaims(): boolean {
    let dropped = this.#isIdleForTurn
    this.#ignoresTurns = dropped
    for (const device of this.#claimed) {
      if (!device.learner || device.running.size > 0) continue
      this.#leave(device, device.learner)
      device.refusesLearning = true
      dropped = true
    }
    return dropped
  }

  #leave(device: Device, learner: AutoTuner): void {
    if (learner.isLearning && device.running.size > 0) return
    learner.giveUp()
    this.#arrived.add(learner.kind)
    device.learners.delete(learner)
    device.learner = null
  }

  // --- tuners ---

  #tuner(task: Task, io: TaskIo, device: Device): AutoTuner {
    const { kind } = task
    let ofKind = this.#tuners.get(kind)
    if (!ofKind) this.#tuners.set(kind, (ofKind = []))
    let tuner = ofKind[device.index]
    if (tuner) return tuner
    const registry = this.#registryOf(task, io, device)
    tuner = new AutoTuner(kind, device, registry, {
      trial: (of, trial) => this.#tellTrial(of, trial),
      verdict: (of, waiting, reason) => this.#tellVerdict(of, waiting, reason),
    })
    ofKind[device.index] = tuner
    this.#arrived.add(kind)
    if (registry.trials.length > 0) tuner.choose(this.#queue.waiting(kind))
    return tuner
  }

  #registryOf({ kind, demand }: Task, { direction }: TaskIo, device: Device): TrialRegistry {
    let ofKind = this.#registries.get(kind)
    if (!ofKind) this.#registries.set(kind, (ofKind = new Map<string, TrialRegistry>()))
    const { limit } = device[direction]
    const sort = sortOf(device, limit)
    let registry = ofKind.get(sort)
    if (registry) return registry
    const known = this.#learned.find(one => one.kind === kind.name && one.device === device.name)
    const bandwidth = demand.storage?.bandwidth
    const bounds = typeof bandwidth === 'object' ? bandwidth : null
    registry = new TrialRegistry(limit, device, bounds, known?.trials ?? [], this.#way)
    ofKind.set(sort, registry)
    return registry
  }

  /** What a task of this kind has been found to need on the device; null if it was not tried there. */
  choiceOf(kind: Kind, device: Device): { bandwidth: number; concurrency: number } | null {
    return this.#tuners.get(kind)?.[device.index]?.choice ?? null
  }

  #adaptiveOn(device: Device, direction: 'read' | 'write'): AdaptiveLimit {
    const known = this.#adaptive[direction][device.index]
    if (known) return known
    return (this.#adaptive[direction][device.index] = new AdaptiveLimit(device.executors, device.usual))
  }

  /** The controller of a device, if tasks have used it. */
  adaptive(device: Device, direction: 'read' | 'write'): AdaptiveLimit | null {
    return this.#adaptive[direction][device.index] ?? null
  }

  export(): Learned[] {
    const all = this.#learned.filter(({ kind, device }) => !this.#has(kind, device))
    for (const [kind, tuners] of this.#tuners) {
      const told = new Set<TrialRegistry>()
      for (const tuner of tuners) {
        if (!tuner?.registry.isWorthKeeping || told.has(tuner.registry)) continue
        told.add(tuner.registry)
        const { bandwidth } = tuner.choice
        const { name: device } = tuner.device
        const before = this.#learned.find(one => one.kind === kind.name && one.device === device)
        const spent = tuner.registry.spent || (before?.spent ?? 0)
        all.push({ kind: kind.name, device, bandwidth, spent, trials: [...tuner.registry.trials] })
      }
    }
    return all
  }

  #has(name: string, deviceName: string): boolean {
    for (const [kind, tuners] of this.#tuners) {
      if (kind.name !== name) continue
      if (tuners.some(tuner => tuner?.device.name === deviceName && tuner.registry.isWorthKeeping))
        return true
    }
    return false
  }

  #tellAdaptive(limit: AdaptiveLimit, kind: Kind, device: Device): void {
    const observer = this.#observer()
    const trials = observer && limit.news(kind)
    if (!observer || !trials) return
    const about = { at: this.#now, kind: kind.id, device: device.index }
    for (const trial of trials) observer({ type: 'trial', ...about, ...trial })
    const { limit: concurrency, throughput } = limit
    const reason = `this number gets the most out of ${device.name}, as far as is known`
    const bandwidth = throughput / concurrency
    observer({ type: 'verdict', ...about, bandwidth, concurrency, learned: 0, reason })
  }

  #tellTrial({ kind, device }: AutoTuner, { bandwidth, concurrency, mean }: Trial): void {
    const about = { at: this.#now, kind: kind.id, device: device.index }
    this.#observer()?.({ type: 'trial', ...about, bandwidth, concurrency, mean })
  }

  #tellVerdict({ kind, device, choice, registry }: AutoTuner, waiting: number, reason: string): void {
    const { bandwidth, concurrency } = choice
    const about = { at: this.#now, kind: kind.id, device: device.index }
    const told = { bandwidth, concurrency, learned: registry.spent, waiting, reason }
    this.#observer()?.({ type: 'verdict', ...about, ...told })
  }
}
