import type { Lack } from '../events.ts'
import type { Version } from '../data/datum.ts'
import type { Task } from '../tasks/task.ts'
import type { Device } from './device.ts'
import type { IoCore } from './io-core.ts'
import type { TaskIo } from './task-io.ts'
import { bytesText, rateText } from './words.ts'

/** Why a task is where it is, in one sentence. */
export function explain(task: Task, io: IoCore): string {
  const { name } = task
  switch (task.state) {
    case 'waiting':
      return `${name} waits for ${waitsFor(task)}`
    case 'ready':
      return `${name} is ready; ${explainIo(task, io)?.reason ?? 'it waits for free CPUs or memory'}`
    case 'parked':
      return `${name} waits for another COMMUTATIVE task on the same datum`
    case 'running':
      return `${name} runs${task.io?.device ? ` on ${task.io.device.name}` : ''}`
    case 'blocked':
      return `${name} waits for tasks that it called`
    case 'stopping':
      return `${name} is being stopped: ${task.reason}`
    case 'cancelled':
      return `${name} was cancelled: ${task.reason}`
    default:
      return `${name} has ended (${task.state})`
  }
}

function waitsFor({ accesses }: Task): string {
  const missing = accesses.flatMap(({ read }) => (read && !read.settled ? [read] : []))
  const makers = [...new Set(missing.map(makerOf))]
  if (makers.length === 0) return 'tasks that still read what it writes in place'
  return makers.length > 3
    ? `${makers.slice(0, 3).join(', ')} and ${makers.length - 3} more`
    : makers.join(', ')
}

const makerOf = ({ producer, team }: Version): string =>
  producer?.name ?? (team ? `a team of ${team.live} tasks` : 'something that no task makes yet')

/** What keeps a ready task from starting: for programs, and as a sentence. */
export interface Obstacle {
  lacks: Lack
  reason: string
}

/** Why a ready task does not start, as far as I/O is the reason. */
export function explainIo(task: Task, io: IoCore): Obstacle | null {
  const { storage, bound } = io
  const about = task.io
  if (bound && !bound.allows(task)) {
    const size = storage.sizeOf(task)
    const why =
      size > bound.spare
        ? `it writes ${bytesText(size)}`
        : bound.spare > 0 && storage.knownSizeOf(task) === null
          ? 'how much it writes is known when one of its kind has ended'
          : 'what is left is needed by tasks that come before it'
    return {
      lacks: 'room',
      reason: `temporary data take ${bytesText(bound.alive)} of ${bytesText(bound.limit)}, and ${why}`,
    }
  }
  if (!about) return null
  if (task.demand.io && !storage.hasSlots()) {
    const executors = storage.nodes.reduce((sum, node) => sum + node.executors, 0)
    return { lacks: 'executor', reason: `all ${executors} I/O executors are busy` }
  }
  if (!about.needsDevice) return null
  const obstacles = storage.devices
    .filter(device => !about.pinned || about.pinned === device)
    .sort((a, b) => a.rank - b.rank)
    .flatMap(
      device =>
        noRoom(task, about, device, io) ?? asObstacle('device', notNow(task, about, device, io)) ?? [],
    )
  if (obstacles.length === 0) return null
  const lacks = obstacles.every(one => one.lacks === 'room') ? 'room' : 'device'
  return { lacks, reason: [...new Set(obstacles.map(one => one.reason))].join('; ') }
}

const asObstacle = (lacks: Lack, reason: string | null): Obstacle | null =>
  reason === null ? null : { lacks, reason }

function noRoom(task: Task, about: TaskIo, device: Device, { storage }: IoCore): Obstacle | null {
  const { name, offline } = device
  const size = about.direction === 'write' ? storage.sizeOf(task) : 0
  if (offline !== null || device.hasRoom(size, about.isTemporary)) return null
  const limit = about.isTemporary ? device.maxIntermediate - device.temporary : Infinity
  const free = bytesText(Math.min(device.free, limit))
  return { lacks: 'room', reason: `${name} has ${free} free and it needs ${bytesText(size)}` }
}

/** What keeps it from a device that has room for it. */
function notNow(task: Task, about: TaskIo, device: Device, { limits }: IoCore): string | null {
  const { name, offline, learner } = device
  const { direction } = about
  if (offline !== null) return `${name} cannot be used (${offline})`
  if (learner && learner.kind !== task.kind)
    return `${name} is kept free to learn the limit of ${learner.kind.name}`
  const wish = task.demand.storage?.bandwidth ?? null
  if (wish === 'adaptive') {
    const adaptive = limits.adaptive(device, direction)
    if (!adaptive) return null
    return adaptive.running >= adaptive.limit
      ? `${name} does best with ${adaptive.limit} tasks at a time now, and that many run`
      : `it is the turn of another kind of task on ${name}`
  }
  const choice = typeof wish === 'number' ? null : limits.choiceOf(task.kind, device)
  const bandwidth = typeof wish === 'number' ? wish : (choice?.bandwidth ?? 0)
  if (learner)
    return `${name} is being tried with fewer tasks at a time, to learn the limit of ${task.kind.name}`
  if (!device[direction].fits(bandwidth)) {
    return `${name} has ${rateText(device[direction].free)} of ${rateText(device[direction].limit)} left and it asks for ${rateText(bandwidth)}`
  }
  return choice ? `${choice.concurrency} tasks of ${task.kind.name} at a time are best on ${name}` : null
}
