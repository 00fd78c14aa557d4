import { nearest } from '../../general/nearest.ts'
import { MillraceError } from '../errors.ts'
import { before } from '../schedule/ready-queue.ts'
import type { Kind, Task } from '../tasks/task.ts'
import type { TaskOrder } from './class-tree.ts'
import type { Device } from './device.ts'
import { staticBandwidth } from './io-queue.ts'
import type { IoQueue } from './io-queue.ts'
import { IoWalk } from './io-walk.ts'
import type { Surroundings } from './io-walk.ts'
import type { Spot } from './storage.ts'

/** What an I/O policy may ask and do in one round. Within a round things only get taken, never free. */
export interface IoRound extends Surroundings {
  readonly queue: IoQueue
  readonly devices: readonly Device[]
  /** Algorithm 1: the highest layer that has room for the task now, or null. */
  find(task: Task, avoid?: ReadonlySet<Device>): Spot | null
  start(task: Task, spot: Spot): void
  /** Whether any I/O is under way that will end and make room. */
  isBusy(): boolean
  /** Whether any executor is free; if not, nothing can start. */
  hasSlots(): boolean
  /** Whether the task could run on the device but for the bandwidth that others hold. */
  couldUse(task: Task, device: Device): boolean
  /** The devices on which the task could run but for the bandwidth that others hold, highest first. */
  hopes(task: Task): Device[]
  /** Milliseconds that tasks of this kind take on the device, and until the first one there ends. */
  estimate(task: Task, device: Device): number | undefined
  untilFirstEnds(device: Device): number | undefined
}

/** In which order ready I/O tasks are tried, and which of them may start. */
export interface IoPolicy {
  readonly name: string
  /** Among tasks of one line. */
  readonly order: TaskOrder
  run(round: IoRound): void
}

/** A task that others were started past so often goes first, and nothing starts where it could run. */
const MOST_PASSES = { fcfs: 16, others: 256 }

/** First come, first served (Algorithm 2): who does not fit waits, and the next one is tried. */
const fcfs: IoPolicy = {
  name: 'fcfs',
  order: before,
  run(round) {
    const waiting: Task[] = []
    const held = new Set<Device>()
    const walk = new IoWalk(round.queue, round, (a, b) => before(a.task, b.task))
    while (round.hasSlots()) {
      const next = walk.next()
      if (!next) return
      const { task } = next
      const spot = round.find(task, held)
      if (spot) {
        round.start(task, spot)
        for (const other of waiting) if (spot.device && round.couldUse(other, spot.device)) other.bypassed++
        walk.goOn(next)
      } else if (task.state === 'ready') {
        waiting.push(task)
        // Of the devices that it could use, the highest is kept for it.
        const [device] = task.bypassed < MOST_PASSES.fcfs ? [] : round.hopes(task)
        if (device) held.add(device)
        walk.refused(next, held)
      } else walk.goOn(next)
    }
  },
}

/** By priority unless the user's does not count, then bandwidth, then age. */
const wider =
  (isPaper: boolean): TaskOrder =>
  (a, b) => {
    if (!isPaper && a.priority !== b.priority) return a.priority > b.priority
    const ofA = staticBandwidth(a.demand.storage?.bandwidth)
    const ofB = staticBandwidth(b.demand.storage?.bandwidth)
    return ofA === ofB ? before(a, b) : ofA > ofB
  }

const walkByWidth = (round: IoRound, isPaper: boolean): IoWalk =>
  new IoWalk(round.queue, round, (a, b) => {
    if (!isPaper && a.task.priority !== b.task.priority) return a.task.priority > b.task.priority
    return a.bandwidth === b.bandwidth ? before(a.task, b.task) : a.bandwidth > b.bandwidth
  })

/** Starts tasks that have waited too long; returns the first of them that cannot start. */
function startPassed(round: IoRound): Task | null {
  for (;;) {
    const task = round.hasSlots() ? round.queue.passed(MOST_PASSES.others) : null
    if (!task) return null
    const spot = round.find(task)
    if (spot) round.start(task, spot)
    else if (task.state === 'ready') return task
  }
}

/**
 * Those that ask for the most bandwidth first (Algorithm 3). Nothing overtakes, and a task also waits if a
 * higher layer will soon be free and is worth it.
 */
const priority = (name: string, isPaper: boolean): IoPolicy => ({
  name,
  order: wider(isPaper),
  run(round) {
    // If nothing will end and let it in, it waits for room, which only others can make.
    if (startPassed(round) && round.isBusy()) return
    const walk = walkByWidth(round, isPaper)
    while (round.hasSlots()) {
      const next = walk.next()
      if (!next) return
      const { task } = next
      const spot = round.find(task)
      if (!spot && task.state === 'ready') {
        if (round.isBusy()) return
        walk.refused(next)
        continue
      }
      if (spot) {
        if (canMaximize(round, task, spot)) return
        round.start(task, spot)
      }
      walk.goOn(next)
    }
  },
})

/** Whether it is quicker to wait for a higher layer than to start on this one (Algorithm 4). */
function canMaximize(round: IoRound, task: Task, { device: assigned }: Spot): boolean {
  if (!assigned || assigned.rank === 0) return false
  const here = round.estimate(task, assigned)
  if (here === undefined) return false
  for (const device of round.hopes(task)) {
    if (device.rank >= assigned.rank) continue
    const wait = round.untilFirstEnds(device)
    const there = round.estimate(task, device)
    if (wait !== undefined && there !== undefined && wait + there < here) return true
  }
  return false
}

/**
 * As `priority`, but others may go past one that waits if they will have ended before it can start (Algorithm 5). In the
 * paper's way they start on the highest layer with room or not at all; else lower layers are tried too.
 */
const backfill = (name: string, isPaper: boolean): IoPolicy => ({
  name,
  order: wider(isPaper),
  run(round) {
    const passed = startPassed(round)
    /** Milliseconds until the first that does not fit may start; null while all fit. */
    let waitingTime = passed && estimateWaiting(round, passed)
    const walk = walkByWidth(round, isPaper)
    const tooSlow = new Map<Kind, ReadonlySet<Device>>()
    while (round.hasSlots()) {
      const next = walk.next()
      if (!next) return
      const { task } = next
      let avoid: ReadonlySet<Device> | undefined
      if (waitingTime !== null && waitingTime !== Infinity) {
        avoid = tooSlow.get(task.kind)
        if (!avoid) tooSlow.set(task.kind, (avoid = slowDevices(round, task, waitingTime)))
      }
      // The end of a task without a device is unknown.
      let spot = avoid && !task.io?.needsDevice ? null : round.find(task, isPaper ? undefined : avoid)
      if (spot?.device && avoid?.has(spot.device)) spot = null
      if (spot) round.start(task, spot)
      if (spot || task.state !== 'ready') walk.goOn(next)
      else {
        waitingTime ??= estimateWaiting(round, task)
        walk.refused(next, avoid)
      }
    }
  },
})

/** Where a task will not have ended in that time, or that is unknown. */
const slowDevices = (round: IoRound, task: Task, time: number): ReadonlySet<Device> =>
  new Set(round.devices.filter(device => (round.estimate(task, device) ?? Infinity) >= time))

/** Infinite if nothing will end by itself, zero if nothing is known of what runs. */
function estimateWaiting(round: IoRound, task: Task): number {
  if (!round.isBusy()) return Infinity
  let least = Infinity
  for (const device of round.hopes(task)) least = Math.min(least, round.untilFirstEnds(device) ?? Infinity)
  return least === Infinity ? 0 : least
}

const POLICIES: Record<string, IoPolicy> = {
  fcfs,
  priority: priority('priority', false),
  backfill: backfill('backfill', false),
  'priority-paper': priority('priority-paper', true),
  'backfill-paper': backfill('backfill-paper', true),
}

export const IO_POLICIES: readonly string[] = Object.keys(POLICIES)

export function findIoPolicy(name: string): IoPolicy {
  const policy = Object.hasOwn(POLICIES, name) ? POLICIES[name] : undefined
  if (policy) return policy
  const near = nearest(name, IO_POLICIES)
  throw new MillraceError('MR_POLICY', `there is no I/O policy '${name}'`, {
    hint: near ? `Did you mean ${near}?` : `Use ${IO_POLICIES.join(', ')}.`,
  })
}
