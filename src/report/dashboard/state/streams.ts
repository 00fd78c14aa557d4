import type { RunEvent } from '../../../core/events.ts'
import { Series } from './series.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** Generators that are kept; files of `stream run` are all kept. */
const KEPT_GENERATORS = 500

/** A file that grows while others read it. */
export interface GrowingFile {
  latest: Of<'stream'>
  readonly over: Series
}

/** A task that gives out values before it ends. */
export interface Generator {
  task: number
  values: number
  lastVersion: number
  lastAt: number
  readonly over: Series
}

export class StreamHistory {
  readonly files = new Map<string, GrowingFile>()
  readonly generators = new Map<number, Generator>()
  leftOut = 0

  get isEmpty(): boolean {
    return this.files.size === 0 && this.generators.size === 0
  }

  observe(event: Of<'stream'>): void {
    const known = this.files.get(event.path)
    if (!known) {
      const over = new Series()
      if (event.bytes > 0) over.spread(event.at, event.at, event.bytes)
      this.files.set(event.path, { latest: event, over })
      return
    }
    const grown = event.bytes - known.latest.bytes
    if (grown > 0) known.over.spread(known.latest.at, event.at, grown)
    known.latest = event
  }

  released({ task, version, at }: Of<'released'>): void {
    let generator = this.generators.get(task)
    if (!generator) {
      if (this.generators.size >= KEPT_GENERATORS) {
        this.leftOut++
        return
      }
      generator = { task, values: 0, lastVersion: version, lastAt: at, over: new Series() }
      this.generators.set(task, generator)
    }
    generator.values++
    generator.lastVersion = version
    generator.lastAt = at
    generator.over.spread(at, at, 1)
  }
}
