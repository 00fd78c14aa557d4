import type { Direction, PathDirection, ValueDirection, ValueWriteDirection } from './directions.ts'
import type { Future } from './future.ts'
import type { StreamFile } from './stream.ts'
import type { Stream } from './value-stream.ts'

/** The types that make wrong directions and wrong arguments compile errors. */

type Primitive = string | number | boolean | bigint | symbol | null | undefined

/** Objects that are passed as a whole, never taken apart for futures inside. */
type Whole = ArrayBufferView | ArrayBufferLike | Date | RegExp | Error | Map<unknown, unknown> | Set<unknown>

/** The directions that fit a parameter of type T. */
export type DirectionFor<T> = 0 extends 1 & T
  ? Direction
  : [unknown] extends [T]
    ? ValueDirection
    : [T] extends [string]
      ? 'IN' | PathDirection
      : [T] extends [Primitive]
        ? 'IN'
        : 'IN' | ValueWriteDirection

/** One direction per parameter, each fitting its type. */
export type DirectionsFor<A extends readonly unknown[]> = { readonly [K in keyof A]: DirectionFor<A[K]> }

/** What a caller may give for a parameter of type T: the value, a future of it, or parts that are futures. */
export type Passable<T> =
  Given<T> | ([T] extends [AsyncIterable<unknown> | ((...args: never[]) => unknown)] ? never : Future<T>)

/** For each member of a union by itself: `boolean` is one. */
type Given<T> = T extends Primitive | Whole
  ? T | Future<T> | (string extends T ? StreamFile : never)
  : T extends AsyncIterable<infer U>
    ? Stream<U>
    : T extends (...args: never[]) => unknown
      ? never
      : T extends readonly unknown[]
        ? T | Future<T> | { readonly [K in keyof T]: Passable<T[K]> }
        : T extends object
          ? T | Future<T> | { readonly [K in keyof T]: Passable<T[K]> }
          : T | Future<T>

export type Arguments<A extends readonly unknown[]> = { [K in keyof A]: Passable<A[K]> }

/** A future per returned value, for tasks with `returns: n`. */
export type Futures<R> = R extends readonly unknown[]
  ? { -readonly [K in keyof R]: R[K] extends Future<infer T> ? Future<T> : Future<R[K]> }
  : never

/** What a call gives whose function returns R: a stream for generators, else a future. */
export type ResultOf<R> = 0 extends 1 & R
  ? Future<R>
  : [R] extends [never]
    ? Future<R>
    : [R] extends [Generator<infer Y, unknown, undefined> | AsyncGenerator<infer Y, unknown, undefined>]
      ? Stream<Unwrapped<Y>>
      : Future<Awaited<R>>

/** A generator may also yield the future of a task that it called. */
type Unwrapped<Y> = Y extends Future<infer T> ? T : Y

/** What a function may return whose calls give these futures. */
export type ReturnedFor<F> =
  F extends Stream<infer Y>
    ? Generator<Y, unknown, undefined> | AsyncGenerator<Y, unknown, undefined>
    : F extends Future<infer R>
      ? R | PromiseLike<R>
      : Values<F> | PromiseLike<Values<F>>

type Values<F> = { [K in keyof F]: F[K] extends Future<infer R> ? R : never }

/** What `waitOn` makes of a value with futures inside. */
export type Resolved<T> =
  T extends Future<infer R>
    ? R
    : T extends Primitive | Whole
      ? T
      : T extends readonly unknown[]
        ? { [K in keyof T]: Resolved<T[K]> }
        : T extends object
          ? T
          : T

/** The parameters of a command's function, from its directions. */
// eslint-disable-next-line typescript/no-explicit-any
export type CommandParameters<D extends readonly Direction[]> = {
  -readonly [K in keyof D]: D[K] extends PathDirection ? string : any
}

/** The parameters as the task's function gives them: functions in the options may take fewer. */
export type Known<A extends readonly unknown[]> = A extends readonly unknown[] ? A : never

/** A number, a number with a unit, the name of an environment variable ('$NAME'), or a function of the arguments. */
export type Constraint<A extends readonly unknown[]> =
  number | string | ((...args: Known<A>) => number | string)

export type TagConstraint<A extends readonly unknown[]> =
  string | readonly string[] | ((...args: Known<A>) => string | readonly string[])
