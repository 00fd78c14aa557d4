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
  /** Values that had no name when it was submitted: those that a generator yields. */
  yielded: number
  /** Those that had one: the stream itself, or results that a task with several of them passed on by `ready`. */
  declared: number
  /** The first of these: who takes a stream as a whole reads it. */
  stream: number | null
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

  released({ task, version, at }: Of<'released'>, isDeclared: boolean): void {
    let generator = this.generators.get(task)
    if (!generator) {
      if (this.generators.size >= KEPT_GENERATORS) {
        this.leftOut++
        return
      }
      generator = {
        task,
        yielded: 0,
        declared: 0,
        stream: null,
        lastVersion: version,
        lastAt: at,
        over: new Series(),
      }
      this.generators.set(task, generator)
    }
    if (isDeclared) {
      generator.declared++
      generator.stream ??= version
      // One alone is the stream of a generator: it holds values and is none.
      if (generator.declared === 1) return
    } else generator.yielded++
    generator.lastVersion = version
    generator.lastAt = at
    generator.over.spread(at, at, 1)
  }
}

/** How many values it has given out. */
export const valuesOf = ({ yielded, declared }: Generator): number =>
  yielded > 0 ? yielded : declared > 1 ? declared : 0
