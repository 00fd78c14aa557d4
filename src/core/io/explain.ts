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
      return `${name} is ready; ${explainIo(task, io) ?? 'it waits for free CPUs or memory'}`
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

/** Why a ready task does not start, as far as I/O is the reason. */
export function explainIo(task: Task, io: IoCore): string | null {
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
    return `temporary data take ${bytesText(bound.alive)} of ${bytesText(bound.limit)}, and ${why}`
  }
  if (!about) return null
  if (task.demand.io && !storage.hasSlots()) {
    return `all ${storage.nodes.reduce((sum, { executors }) => sum + executors, 0)} I/O executors are busy`
  }
  if (!about.needsDevice) return null
  const reasons = storage.devices
    .filter(device => !about.pinned || about.pinned === device)
    .sort((a, b) => a.rank - b.rank)
    .map(device => obstacle(task, about, device, io))
  const all = [...new Set(reasons.filter(reason => reason !== null))]
  return all.length === 0 ? null : all.join('; ')
}

function obstacle(task: Task, about: TaskIo, device: Device, { storage, limits }: IoCore): string | null {
  const { name, offline, learner } = device
  const { direction } = about
  if (offline !== null) return `${name} cannot be used (${offline})`
  const size = direction === 'write' ? storage.sizeOf(task) : 0
  if (!device.hasRoom(size, about.isTemporary)) {
    const limit = about.isTemporary ? device.maxIntermediate - device.temporary : Infinity
    return `${name} has ${bytesText(Math.min(device.free, limit))} free and it needs ${bytesText(size)}`
  }
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
