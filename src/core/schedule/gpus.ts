import type { Task } from '../tasks/task.ts'

/** Shares are counted in thousandths, so that three thirds are a whole. */
const WHOLE = 1000

const sharesOf = (gpus: number): number => (gpus < 1 ? Math.floor(gpus * WHOLE) : WHOLE)

/** The GPUs of a node: which task has which, or a share of which. */
export class Gpus {
  readonly ids: readonly string[]
  /** Thousandths that are free, by device. */
  readonly #free: number[]
  readonly #held = new Map<Task, { readonly devices: readonly number[]; readonly share: number }>()

  constructor(ids: readonly string[]) {
    this.ids = ids
    this.#free = ids.map(() => WHOLE)
  }

  get count(): number {
    return this.ids.length
  }

  fits(gpus: number): boolean {
    return this.#choose(gpus) !== null
  }

  take(task: Task, gpus: number): void {
    if (this.#held.has(task)) return
    const devices = this.#choose(gpus) ?? []
    const share = sharesOf(gpus)
    for (const device of devices) this.#free[device] = (this.#free[device] as number) - share
    this.#held.set(task, { devices, share })
  }

  giveBack(task: Task): void {
    const held = this.#held.get(task)
    if (!held) return
    this.#held.delete(task)
    for (const device of held.devices) this.#free[device] = (this.#free[device] as number) + held.share
  }

  /** The tasks that have one, or a share. */
  holders(): Iterable<Task> {
    return this.#held.keys()
  }

  /** The ids of those that a task has. */
  of(task: Task): readonly string[] {
    return this.#held.get(task)?.devices.map(device => this.ids[device] as string) ?? []
  }

  /** For a share: the device with the least left that has enough. */
  #choose(gpus: number): readonly number[] | null {
    const share = sharesOf(gpus)
    const fitting = this.#free.flatMap((free, device) => (free >= share ? [device] : []))
    if (gpus >= 1) return fitting.length >= gpus ? fitting.slice(0, gpus) : null
    fitting.sort((a, b) => (this.#free[a] as number) - (this.#free[b] as number))
    return fitting.length > 0 ? fitting.slice(0, 1) : null
  }
}
