import assert from 'node:assert/strict'
import type { Device } from '../../../src/core/io/device.ts'
import type { Task } from '../../../src/core/tasks/task.ts'
import type { IoRig } from './io-rig.ts'

/** Bytes per millisecond that a device gives to n tasks together. */
export type Speed = (n: number, device: Device, now: number) => number

/** A device that gives every task the same, whatever their number. */
export const fair =
  (megabytes: number): Speed =>
  () =>
    megabytes * 1e3

/** A disk that loses with every further task, and cannot be filled by one alone. */
export const seeking =
  (megabytes: number, best: number, loss: number): Speed =>
  n =>
    megabytes * 1e3 * (n <= best ? n / best : 1 / (1 + loss * (n - best)))

interface Running {
  task: Task
  left: number
  bytes: number
}

/** Devices that serve their tasks at one time in equal parts, on the virtual clock of a rig. */
export class FakeStorage {
  readonly running = new Map<Task, Running>()
  readonly ended: { task: Task; at: number; bytes: number }[] = []
  /** The most tasks at one time on each device. */
  readonly peaks = new Map<Device, number>()
  readonly #rig: IoRig
  readonly #speed: Speed
  readonly #size: (task: Task) => number

  constructor(rig: IoRig, speed: Speed, size: number | ((task: Task) => number)) {
    this.#rig = rig
    this.#speed = speed
    this.#size = typeof size === 'number' ? () => size : size
  }

  /** Runs until nothing is left, or until `enough` says so. */
  run(enough: () => boolean = () => false): void {
    for (;;) {
      for (const task of this.#rig.go()) this.#begin(task)
      if (enough() || !this.step()) break
    }
  }

  #begin(task: Task): void {
    const bytes = this.#size(task)
    this.running.set(task, { task, left: bytes, bytes })
    const device = task.io?.device as Device
    this.peaks.set(device, Math.max(this.peaks.get(device) ?? 0, device.running.size))
  }

  /** Lets the next task end; false if none runs. */
  step(): boolean {
    const rig = this.#rig
    let first: Running | null = null
    let least = Infinity
    for (const one of this.running.values()) {
      const time = one.left / this.#rateOf(one.task)
      if (time < least) [first, least] = [one, time]
    }
    if (!first) return false
    const rates = new Map([...this.running.keys()].map(task => [task, this.#rateOf(task)]))
    for (const one of this.running.values()) one.left -= least * (rates.get(one.task) as number)
    this.running.delete(first.task)
    rig.finish(first.task, rig.now + least, first.bytes)
    this.ended.push({ task: first.task, at: rig.now, bytes: first.bytes })
    return true
  }

  #rateOf(task: Task): number {
    const device = task.io?.device
    assert(device, `${task.name} runs on no device`)
    const n = [...this.running.keys()].filter(one => one.io?.device === device).length
    return this.#speed(n, device, this.#rig.now) / n
  }

  /** Bytes per millisecond over the last so many tasks. */
  rate(last: number): number {
    const tail = this.ended.slice(-last - 1)
    const begin = tail[0]?.at ?? 0
    const bytes = tail.slice(1).reduce((sum, one) => sum + one.bytes, 0)
    return bytes / (this.#rig.now - begin)
  }
}
