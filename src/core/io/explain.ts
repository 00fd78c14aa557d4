import type { Version } from '../data.ts'
import type { Task } from '../task.ts'
import type { Device } from './device.ts'
import type { IoCore } from './io-core.ts'
import type { Storage } from './storage.ts'
import { bytesText, rateText } from './words.ts'

/** Why a task is where it is, in one sentence. */
export function explain(task: Task, io: IoCore): string {
  const { name } = task
  switch (task.state) {
    case 'waiting':
      return `${name} waits for ${waitsFor(task)}`
    case 'ready':
      return `${name} is ready; ${explainIo(task, io.storage) ?? 'it waits for free CPUs or memory'}`
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
  producer?.name ?? (team ? `a team of ${team.live} tasks` : 'something that nobody makes yet')

/** Why a ready task does not start, as far as I/O is the reason. */
function explainIo(task: Task, storage: Storage): string | null {
  const { io, demand } = task
  if (!io || task.state !== 'ready') return null
  if (demand.io && storage.nodes.every(({ freeSlots }) => freeSlots <= 0)) {
    return `all ${storage.nodes.reduce((sum, { executors }) => sum + executors, 0)} I/O executors are busy`
  }
  if (!io.needsDevice) return null
  const size = io.direction === 'write' ? storage.sizeOf(task) : 0
  const bandwidth = typeof demand.storage?.bandwidth === 'number' ? demand.storage.bandwidth : 0
  const reasons = storage.devices
    .filter(device => !io.pinned || io.pinned === device)
    .sort((a, b) => a.rank - b.rank)
    .map(device => obstacle(device, io.direction, size, bandwidth))
  const all = [...new Set(reasons.filter(reason => reason !== null))]
  return all.length === 0 ? null : all.join('; ')
}

function obstacle(device: Device, way: 'read' | 'write', size: number, bandwidth: number): string | null {
  const { name, offline } = device
  if (offline !== null) return `${name} cannot be used (${offline})`
  if (size > device.free) return `${name} has ${bytesText(device.free)} free and it needs ${bytesText(size)}`
  if (!device[way].fits(bandwidth)) {
    return `${name} has ${rateText(device[way].free)} of ${rateText(device[way].limit)} left and it asks for ${rateText(bandwidth)}`
  }
  return null
}
