import type { Looks } from '../../../src/core/io/looks.ts'
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
  readonly #running: { task: Task; from: number; until: number }[] = []

  /** What tasks write is seen while they run. */
  readonly #isSeen: boolean

  constructor(rig: IoRig, speed: Speed, bytes: number, isSeen = true, vary: () => number = () => 1) {
    this.#isSeen = isSeen
    this.#rig = rig
    this.#speed = speed
    this.#bytes = () => bytes * vary()
  }

  get running(): number {
    return this.#running.length
  }

  begin(task: Task): void {
    const from = this.#served
    const until = from + this.#bytes(task)
    let at = this.#running.length
    while (at > 0 && (this.#running[at - 1] as { until: number }).until > until) at--
    this.#running.splice(at, 0, { task, from, until })
  }

  /** Lets the next task end, or the core look at what tasks have written, if it would before; null if none runs. */
  step(): Task | null {
    const [next] = this.#running
    if (!next) return null
    const device = next.task.io?.device
    if (!device) throw new Error(`${next.task.name} runs on no device`)
    const n = this.#running.length
    const { now } = this.#rig
    const rate = this.#speed(n, device, now) / n
    const end = now + (next.until - this.#served) / rate
    if (this.#isSeen && this.#looks.next < end) {
      this.#served += (this.#looks.next - now) * rate
      this.#look(this.#looks.next)
      return next.task
    }
    this.#running.shift()
    this.#served = next.until
    this.#rig.finish(next.task, end, this.#bytes(next.task))
    return next.task
  }

  get #looks(): Looks {
    return this.#rig.engine.io.limits.looks
  }

  #look(now: number): void {
    this.#rig.now = now
    for (const task of this.#looks.due(now)) {
      const running = this.#running.find(one => one.task === task)
      if (running) this.#looks.seen(task, this.#served - running.from, now)
    }
  }

  run(each: () => void = () => undefined): void {
    do {
      for (const task of this.#rig.go()) this.begin(task)
      each()
    } while (this.step())
  }
}
