import type { Kind, Task } from '../tasks/task.ts'
import type { Device } from './device.ts'

/** How long tasks of a kind take on a device: a mean that follows changes. */
export class Estimates {
  readonly #means = new Map<Kind, { count: number; mean: number }[]>()

  record(kind: Kind, device: Device, milliseconds: number): void {
    let ofKind = this.#means.get(kind)
    if (!ofKind) this.#means.set(kind, (ofKind = []))
    const known = (ofKind[device.index] ??= { count: 0, mean: 0 })
    known.count++
    known.mean += (milliseconds - known.mean) * Math.max(1 / known.count, 0.1)
  }

  /** Undefined while no task of the kind has ended there. */
  mean(kind: Kind, device: Device): number | undefined {
    return this.#means.get(kind)?.[device.index]?.mean
  }

  /**
   * What is left of a running task: its mean minus the time that it has run. One that has run longer is taken to need as
   * much again as it is over: to wait for it on and on would leave other devices idle.
   */
  remaining(task: Task, device: Device, now: number): number | undefined {
    const mean = this.mean(task.kind, device)
    return mean === undefined ? undefined : Math.abs(mean - (now - (task.io?.startedAt ?? now)))
  }

  /** When the first of the tasks on a device will end; undefined if nothing is known of any of them. */
  untilFirstEnds(device: Device, now: number): number | undefined {
    let least: number | undefined
    for (const task of device.running) {
      const left = this.remaining(task, device, now)
      if (left !== undefined && (least === undefined || left < least)) least = left
    }
    return least
  }
}
