import type { RunEvent } from '../../core/events.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** A generator may release any number of versions; readers of older ones are not looked for. */
const REMEMBERED = 65_536

interface Early {
  producer: number
  /** Since when it runs; -1 while it does not. */
  since: number
  counted: boolean
}

/**
 * What early release was good for: the tasks that began before the task that feeds them had ended, and how
 * long they ran until then. Memory grows with the tasks that are alive, never with tasks that have ended.
 */
export class EarlyStarts {
  tasks = 0
  workMs = 0
  /** Versions that were released, with the task that made them and still runs. */
  readonly #released = new Map<number, number>()
  /** Tasks that make several versions may release some: their versions, and the tasks that wait for those. */
  readonly #several = new Map<number, readonly number[]>()
  readonly #awaited = new Map<number, number[]>()
  readonly #early = new Map<number, Early>()
  /** Tasks that have released something, with the readers of it that have not ended. */
  readonly #fed = new Map<number, Set<number>>()

  observe(event: RunEvent): void {
    switch (event.type) {
      case 'submitted':
        return this.#submitted(event)
      case 'released':
        return this.#release(event)
      case 'started':
      case 'resumed':
        return this.#run(event.task, event.at)
      case 'blocked':
      case 'returned':
        return this.#pause(event.task, event.at)
      case 'failed':
        if (event.next === 'retry') return this.#pause(event.task, event.at)
        return this.#end(event.task, event.at)
      case 'finished':
      case 'kept':
      case 'cancelled':
        return this.#end(event.task, event.at)
      default:
    }
  }

  #submitted({ task, reads, writes }: Of<'submitted'>): void {
    if (writes.length > 1) {
      this.#several.set(task, writes)
      for (const version of writes) this.#awaited.set(version, [])
    }
    if (this.#released.size === 0 && this.#awaited.size === 0) return
    for (const version of reads) {
      const producer = this.#released.get(version)
      if (producer !== undefined) this.#feed(task, producer)
      else this.#awaited.get(version)?.push(task)
    }
  }

  #release({ task, version }: Of<'released'>): void {
    if (!this.#fed.has(task)) this.#fed.set(task, new Set())
    this.#released.set(version, task)
    for (const reader of this.#awaited.get(version) ?? []) this.#feed(reader, task)
    this.#awaited.delete(version)
    if (this.#released.size <= REMEMBERED) return
    const [oldest] = this.#released.keys()
    this.#released.delete(oldest as number)
  }

  #feed(task: number, producer: number): void {
    if (this.#early.has(task) || !this.#fed.has(producer)) return
    this.#early.set(task, { producer, since: -1, counted: false })
    this.#fed.get(producer)?.add(task)
  }

  #run(task: number, at: number): void {
    const early = this.#early.get(task)
    if (!early) return
    early.since = at
    if (early.counted) return
    early.counted = true
    this.tasks++
  }

  #pause(task: number, at: number): void {
    const early = this.#early.get(task)
    if (!early || early.since < 0) return
    this.workMs += Math.max(0, at - early.since)
    early.since = -1
  }

  #end(task: number, at: number): void {
    this.#pause(task, at)
    const own = this.#early.get(task)
    this.#early.delete(task)
    if (own) this.#fed.get(own.producer)?.delete(task)
    for (const version of this.#several.get(task) ?? []) this.#awaited.delete(version)
    this.#several.delete(task)
    const readers = this.#fed.get(task)
    if (!readers) return
    // From here on they do what they would do anyway.
    for (const reader of readers) {
      this.#pause(reader, at)
      this.#early.delete(reader)
    }
    this.#fed.delete(task)
    if (this.#fed.size === 0) this.#released.clear()
  }
}
