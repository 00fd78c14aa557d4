import { Heap } from '../../general/heap.ts'
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
  run(round: IoRound): void
}

/** A task that others were started past so often goes first, and nothing starts where it could run. */
const MOST_PASSES = { fcfs: 16, others: 256 }

/** First come, first served (Algorithm 2): who does not fit waits, and the next one is tried. */
const fcfs: IoPolicy = {
  name: 'fcfs',
  run(round) {
    const waiting: Task[] = []
    const held = new Set<Device>()
    const heads = headsOf(round.queue, (a, b) => before(a.task, b.task))
    for (let next = heads.pop(); next && round.hasSlots(); next = heads.pop()) {
      const { task, from } = next
      const spot = round.find(task, held)
      if (spot) {
        round.start(task, spot)
        for (const other of waiting) if (spot.device && round.couldUse(other, spot.device)) other.bypassed++
        pushHead(heads, from)
      } else if (task.state === 'ready') {
        waiting.push(task)
        // Of the devices that it could use, the highest is kept for it.
        const [device] = task.bypassed < MOST_PASSES.fcfs ? [] : round.hopes(task)
        if (device) held.add(device)
      } else pushHead(heads, from)
    }
  },
}

interface Head {
  task: Task
  from: IoClass
  bandwidth: number
}

/** The first of each class, in the order in which they are to be tried. */
function headsOf(
  { filled }: IoQueue,
  isBefore: (a: Head, b: Head) => boolean,
  bandwidthOf: (task: Task) => number = () => 0,
): Heap<Head> {
  const heads = new Heap<Head>(isBefore)
  for (const from of filled) pushHead(heads, from, bandwidthOf)
  return heads
}

function pushHead(heads: Heap<Head>, from: IoClass, bandwidthOf: (task: Task) => number = () => 0): void {
  const task = from.head()
  if (task) heads.push({ task, from, bandwidth: bandwidthOf(task) })
}

/**
 * Those that ask for the most bandwidth first (Algorithm 3). Nothing overtakes, and a task also waits if a
 * higher layer will soon be free and is worth it.
 */
const priority: IoPolicy = {
  name: 'priority',
  run(round) {
    const heads = headsOf(round.queue, isWider, round.bandwidthOf)
    for (let next = heads.pop(); next && round.hasSlots(); next = heads.pop()) {
      const { task, from } = next
      const spot = round.find(task)
      if (spot) {
        if (canMaximize(round, task, spot)) return
        startPassing(round, task, spot)
      } else if (task.state === 'ready') {
        // Nothing would ever end and let it in: it waits for room, which only others can make.
        if (round.isBusy()) return
        continue
      }
      pushHead(heads, from, round.bandwidthOf)
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
    const heads = headsOf(round.queue, isWider, round.bandwidthOf)
    /** Milliseconds until the first that does not fit may start; null while all fit. */
    let waitingTime: number | null = null
    for (let next = heads.pop(); next && round.hasSlots(); next = heads.pop()) {
      const { task, from } = next
      const spot = round.find(task)
      if (spot) {
        if (waitingTime !== null && !endsWithin(round, task, spot, waitingTime)) continue
        startPassing(round, task, spot)
      } else if (task.state === 'ready') {
        waitingTime ??= estimateWaiting(round, task)
        continue
      }
      pushHead(heads, from, round.bandwidthOf)
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

/** By priority, then bandwidth, then age; but those that have waited too long come first. */
function isWider(a: Head, b: Head): boolean {
  const isStarved = a.task.bypassed >= MOST_PASSES.others
  if (isStarved !== b.task.bypassed >= MOST_PASSES.others) return isStarved
  if (a.task.priority !== b.task.priority) return a.task.priority > b.task.priority
  return a.bandwidth === b.bandwidth ? before(a.task, b.task) : a.bandwidth > b.bandwidth
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
