import type { Version } from '../data/datum.ts'
import type { StorageDemand } from '../tasks/demand.ts'
import type { Task } from '../tasks/task.ts'
import type { Begun } from './adaptive.ts'
import type { Device } from './device.ts'
import type { Lesson } from './learning.ts'
import type { IoClass } from './io-queue.ts'

/** What the core knows of a task's I/O; made when it becomes ready, kept until it ends. */
export interface TaskIo {
  /** Where its files go, or where it reads; null if it runs without a device. */
  device: Device | null
  /** It may run on no other device than this. */
  pinned: Device | null
  /** The node that holds most of what it reads: it runs there if it can. */
  readonly home: number | null
  /** A task that writes files and reads others: where those lie. */
  source: Device | null
  direction: 'read' | 'write'
  /** Whether it has to do with a device at all. */
  needsDevice: boolean
  /** Bytes per second that it holds on its device, and on the device that it reads from. */
  bandwidth: number
  sourceBandwidth: number
  /** What it held before it was blocked. */
  paused: number
  /** It makes temporary data. */
  isTemporary: boolean
  /** It starts though there is no room for it: nothing else would make room. */
  ignoresRoom: boolean
  /** Bytes that are reserved on its device until it ends. */
  reserved: number
  /** Bytes that it moved, if the runtime knows better than the sizes of its files. */
  bytes: number | null
  startedAt: number
  /** It has its lane and bandwidth: not while it is blocked. */
  holds: boolean
  /** Why it waits has been reported. */
  isReported: boolean
  /** If it is learned from: what was known when it began. */
  lesson: Lesson | null
  /** For tasks whose limit adapts: what was known when it began. */
  begun: Begun | null
  /** Where it waits while it is ready. */
  queuedIn: IoClass | null
}

/** A version of a file or directory that lies on a device, or is being written there. */
export interface Place {
  device: Device
  /** Bytes that it is counted for there; 0 until its producer has ended. */
  bytes: number
  /** The runtime has said how large it is. */
  measured: number | null
  readonly temporary: boolean
  move: Move | null
}

/** Data on its way from one device to another. Until it has arrived it is read where it was. */
export interface Move {
  readonly id: number
  readonly why: 'flush' | 'prefetch'
  readonly version: Version
  readonly from: Device
  readonly to: Device
  readonly bytes: number
  /** The file at `from` is the user's: it stays when the copy is made. */
  readonly keepsOriginal: boolean
  /** Bytes per second that it may use now; 0 means: pause. `pace` says when this changes. */
  rate: number
}

export type MoveInstruction = { type: 'move' | 'pace'; move: Move }

const isFile = (version: Version | null): version is Version =>
  version !== null && version.datum.path !== null

export const writesFiles = (task: Task): boolean => task.accesses.some(({ write }) => isFile(write))

export function* writtenFiles(task: Task): Generator<Version> {
  for (const { write } of task.accesses) if (isFile(write)) yield write
}

/** The device on which most of what the task reads lies. */
export function inputDevice(task: Task): Device | null {
  let most: Version | null = null
  for (const { read } of task.accesses) {
    if (!isFile(read) || !read.place) continue
    if (!most?.place || read.place.bytes > most.place.bytes) most = read
  }
  return most?.place?.device ?? null
}

export function bytesRead(task: Task): number {
  let sum = 0
  for (const { read } of task.accesses) sum += read?.place?.measured ?? 0
  return sum
}

/** The device that a team of writers has begun on. */
function teamDevice(task: Task): Device | null {
  for (const { write } of task.accesses) if (write?.team && write.place) return write.place.device
  return null
}

/** Looks at what the task reads and writes; its inputs are all there by now. */
export function describeIo(task: Task, devices: readonly Device[], home: number | null): TaskIo {
  const { storage, io } = task.demand
  const writes = writesFiles(task)
  const input = inputDevice(task)
  const isTemporary = task.accesses.some(({ write }) => isFile(write) && write.datum.temporary)
  const readsOnly = !writes && task.accesses.some(({ read }) => isFile(read))
  const direction = storage?.direction ?? (readsOnly ? 'read' : 'write')
  const pinned =
    named(storage, devices) ?? teamDevice(task) ?? (direction === 'read' && !writes ? input : null)
  return {
    device: null,
    pinned,
    home,
    source: writes && direction === 'write' && input !== null ? input : null,
    direction,
    needsDevice:
      devices.length > 0 && (storage !== null || isTemporary || (io && (writes || input !== null))),
    bandwidth: 0,
    sourceBandwidth: 0,
    paused: 0,
    isTemporary,
    ignoresRoom: false,
    reserved: 0,
    bytes: null,
    startedAt: -1,
    holds: false,
    isReported: false,
    lesson: null,
    begun: null,
    queuedIn: null,
  }
}

const named = (storage: StorageDemand | null, devices: readonly Device[]): Device | null =>
  (storage?.device != null && devices.find(({ name }) => name === storage.device)) || null
