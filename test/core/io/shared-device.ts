import type { Task } from '../../../src/core/tasks/task.ts'
import type { Speed } from './fake-storage.ts'
import type { IoRig } from './io-rig.ts'

/**
 * One device that serves tasks of equal size in equal parts, however many they are: what each has been served is one number
 * for all, and the task that began first ends first. So thousands of tasks take no time.
 */
export class SharedDevice {
  readonly #rig: IoRig
  readonly #speed: Speed
  readonly #bytes: (task: Task) => number
  /** Bytes that a task has been served that was there all the time. */
  #served = 0
  readonly #running: { task: Task; until: number }[] = []

  constructor(rig: IoRig, speed: Speed, bytes: number, vary: () => number = () => 1) {
    this.#rig = rig
    this.#speed = speed
    this.#bytes = () => bytes * vary()
  }

  get running(): number {
    return this.#running.length
  }

  begin(task: Task): void {
    const until = this.#served + this.#bytes(task)
    let at = this.#running.length
    while (at > 0 && (this.#running[at - 1] as { until: number }).until > until) at--
    this.#running.splice(at, 0, { task, until })
  }

  /** Lets the next task end; null if none runs. */
  step(): Task | null {
    const n = this.#running.length
    const next = this.#running.shift()
    if (!next) return null
    const device = next.task.io?.device
    if (!device) throw new Error(`${next.task.name} runs on no device`)
    const rate = this.#speed(n, device, this.#rig.now) / n
    const time = (next.until - this.#served) / rate
    this.#served = next.until
    this.#rig.finish(next.task, this.#rig.now + time, this.#bytes(next.task))
    return next.task
  }

  run(each: () => void = () => undefined): void {
    do {
      for (const task of this.#rig.go()) this.begin(task)
      each()
    } while (this.step())
  }
}
