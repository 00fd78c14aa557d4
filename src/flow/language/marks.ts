import { streamRules } from '../../model/stream.ts'
import type { StreamOptions, StreamRules } from '../../model/stream.ts'

/** What is special about a file of a rule. */
export interface Marks {
  /** Deleted when the last task that reads it has ended. */
  readonly temp?: true
  /** Never overwritten or cleaned once it is there. */
  readonly keep?: true
  /** Read-only as soon as it is there. */
  readonly protect?: true
  /** An output that need not be made; an input that is left out when it does not exist and no rule makes it. */
  readonly optional?: true
  readonly directory?: true
  /** When an output is complete, and when others may start on it. */
  readonly stream?: StreamRules
}

const BRAND = Symbol.for('millrace.flow.marked')

/** A path, or pattern, with marks. */
export class Marked<P extends string = string> {
  /** A workflow may have a copy of Millrace of its own, other than the one that runs it. */
  static [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && BRAND in value
  }

  readonly [BRAND] = true
  readonly path: P
  readonly marks: Marks

  constructor(path: P, marks: Marks) {
    this.path = path
    this.marks = marks
  }
}

/** Told apart by its type, because a function that reads it may get nothing. */
export class MaybeFile<P extends string = string> extends Marked<P> {
  readonly maybe = true
}

export type FileSpec = string | Marked

const NO_MARKS: Marks = Object.freeze({})

export const pathOf = <P extends string>(spec: P | Marked<P>): P =>
  typeof spec === 'string' ? spec : spec.path

export const marksOf = (spec: FileSpec): Marks => (typeof spec === 'string' ? NO_MARKS : spec.marks)

const mark = <P extends string>(spec: P | Marked<P>, marks: Marks): Marked<P> =>
  new Marked(pathOf(spec), { ...marksOf(spec), ...marks })

/** An output that is deleted when the last task that reads it has ended. */
export const temp = <const P extends string>(spec: P | Marked<P>): Marked<P> => mark(spec, { temp: true })

/** An output that is never overwritten or cleaned once it is there, unless `--force` says so. */
export const keep = <const P extends string>(spec: P | Marked<P>): Marked<P> => mark(spec, { keep: true })

/** An output that is kept, and that others cannot write to by mistake: it is made read-only. */
export const protect = <const P extends string>(spec: P | Marked<P>): Marked<P> =>
  mark(spec, { keep: true, protect: true })

/** An output that need not be made, or an input that is used only where it exists or can be made. */
export const optional = <const P extends string>(spec: P | Marked<P>): MaybeFile<P> =>
  new MaybeFile(pathOf(spec), { ...marksOf(spec), optional: true })

/** A directory, made and read as a whole. */
export const dir = <const P extends string>(spec: P | Marked<P>): Marked<P> => mark(spec, { directory: true })

/**
 * An output with rules of its own: complete when it is closed, or read as it grows by commands that start together
 * with the one that writes it.
 */
export const stream = <const P extends string>(spec: P | Marked<P>, options: StreamOptions = {}): Marked<P> =>
  mark(spec, { stream: streamRules(options) })
