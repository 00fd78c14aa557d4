import { nearest } from '../../general/nearest.ts'
import { MillraceError } from '../errors.ts'
import { before } from '../ready-queue.ts'
import type { Task } from '../task.ts'
import type { Device } from './device.ts'
import type { IoClass, IoQueue } from './io-queue.ts'
import type { Spot } from './storage.ts'

/** What an I/O policy may ask and do in one round. Within a round things only get taken, never free. */
export interface IoRound {
  readonly queue: IoQueue
  /** Algorithm 1: the highest layer that has room for the task now, or null. */
  find(task: Task, avoid?: ReadonlySet<Device>): Spot | null
  start(task: Task, spot: Spot): void
  /** Bytes per second that the task asks for, or has been found to need. */
  bandwidthOf(task: Task): number
  /** Whether any I/O is under way that will end and make room. */
  isBusy(): boolean
  /** The devices on which the task could run but for the bandwidth that others hold, highest first. */
  hopes(task: Task): Device[]
  /** Milliseconds that tasks of this kind take on the device, and until the first one there ends. */
  estimate(task: Task, device: Device): number | undefined
  untilFirstEnds(device: Device): number | undefined
}

/** In which order ready I/O tasks are tried, and which of them may start. */
export interface IoPolicy {
  readonly name: string
  run(round: IoRound): void
}

/** A task that others were started past so often goes first, and nothing starts where it could run. */
const MOST_PASSES = { fcfs: 16, others: 256 }

/** First come, first served (Algorithm 2): who does not fit waits, and the next one is tried. */
const fcfs: IoPolicy = {
  name: 'fcfs',
  run(round) {
    const waiting = new Map<IoClass, Task>()
    const held = new Set<Device>()
    for (;;) {
      let first: Task | null = null
      let spot: Spot | null = null
      for (const one of round.queue.filled) {
        if (waiting.has(one)) continue
        const task = one.head()
        if (!task || (first && before(first, task))) continue
        const found = round.find(task, held)
        if (found) [first, spot] = [task, found]
        else if (task.state === 'ready') wait(round, waiting, held, one, task)
      }
      if (!first || !spot) return
      if (spot.device && held.has(spot.device)) continue
      round.start(first, spot)
      for (const task of waiting.values()) if (before(task, first)) pass(round, task, first)
    }
  },
}

function wait(
  round: IoRound,
  waiting: Map<IoClass, Task>,
  held: Set<Device>,
  one: IoClass,
  task: Task,
): void {
  waiting.set(one, task)
  if (task.bypassed < MOST_PASSES.fcfs) return
  const [device] = round.hopes(task)
  if (device) held.add(device)
}

/** Counts only those that took what the waiting task hopes for. */
function pass(round: IoRound, waiting: Task, started: Task): void {
  const device = started.io?.device
  if (device && round.hopes(waiting).includes(device)) waiting.bypassed++
}

/**
 * Those that ask for the most bandwidth first (Algorithm 3). Nothing overtakes, and a task also waits if a
 * higher layer will soon be free and is worth it.
 */
const priority: IoPolicy = {
  name: 'priority',
  run(round) {
    const skipped = new Set<IoClass>()
    for (;;) {
      const next = widest(round, skipped)
      if (!next) return
      const { task, from } = next
      const spot = round.find(task)
      if (spot) {
        if (canMaximize(round, task, spot)) return
        startPassing(round, task, spot)
      } else if (task.state === 'ready') {
        // Nothing would ever end and let it in: it waits for room, which only others can make.
        if (round.isBusy()) return
        skipped.add(from)
      }
    }
  },
}

/** Whether it is quicker to wait for a higher layer than to start on this one (Algorithm 4). */
function canMaximize(round: IoRound, task: Task, { device: assigned }: Spot): boolean {
  if (!assigned) return false
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

/** As `priority`, but others may go past one that waits if they will have ended before it can start (Algorithm 5). */
const backfill: IoPolicy = {
  name: 'backfill',
  run(round) {
    const skipped = new Set<IoClass>()
    /** Milliseconds until the first that does not fit may start; null while all fit. */
    let waitingTime: number | null = null
    for (;;) {
      const next = widest(round, skipped)
      if (!next) return
      const { task, from } = next
      const spot = round.find(task)
      if (!spot) {
        if (task.state !== 'ready') continue
        skipped.add(from)
        waitingTime ??= estimateWaiting(round, task)
      } else if (waitingTime === null || endsWithin(round, task, spot, waitingTime)) {
        startPassing(round, task, spot)
      } else skipped.add(from)
    }
  },
}

const endsWithin = (round: IoRound, task: Task, { device }: Spot, time: number): boolean =>
  time === Infinity || (device !== null && (round.estimate(task, device) ?? Infinity) < time)

/** Infinite if nothing will end by itself, zero if nothing is known of what runs. */
function estimateWaiting(round: IoRound, task: Task): number {
  if (!round.isBusy()) return Infinity
  let least = Infinity
  for (const device of round.hopes(task)) least = Math.min(least, round.untilFirstEnds(device) ?? Infinity)
  return least === Infinity ? 0 : least
}

/** The task that comes first by priority, then bandwidth, then age; but for those that have waited too long. */
function widest(
  { queue, bandwidthOf }: IoRound,
  skipped: ReadonlySet<IoClass>,
): { task: Task; from: IoClass } | null {
  let best: { task: Task; from: IoClass; bandwidth: number } | null = null
  for (const from of queue.filled) {
    if (skipped.has(from)) continue
    const task = from.head()
    if (!task) continue
    const bandwidth = bandwidthOf(task)
    if (!best || comesFirst(task, bandwidth, best.task, best.bandwidth)) best = { task, from, bandwidth }
  }
  return best
}

function comesFirst(a: Task, bandwidthA: number, b: Task, bandwidthB: number): boolean {
  const starvedA = a.bypassed >= MOST_PASSES.others
  if (starvedA !== b.bypassed >= MOST_PASSES.others) return starvedA
  if (a.priority !== b.priority) return a.priority > b.priority
  return bandwidthA === bandwidthB ? before(a, b) : bandwidthA > bandwidthB
}

function startPassing(round: IoRound, task: Task, spot: Spot): void {
  round.start(task, spot)
  for (const one of round.queue.filled) {
    const other = one.head()
    if (other && other.turn < task.turn) other.bypassed++
  }
}

const POLICIES: Record<string, IoPolicy> = { fcfs, priority, backfill }

export const IO_POLICIES: readonly string[] = Object.keys(POLICIES)

export function findIoPolicy(name: string): IoPolicy {
  const policy = Object.hasOwn(POLICIES, name) ? POLICIES[name] : undefined
  if (policy) return policy
  const near = nearest(name, IO_POLICIES)
  throw new MillraceError('MR_POLICY', `there is no I/O policy '${name}'`, {
    hint: near ? `Did you mean ${near}?` : `Use ${IO_POLICIES.join(', ')}.`,
  })
}
