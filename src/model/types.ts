import type {
  Direction,
  ListDirection,
  PathDirection,
  ValueDirection,
  ValueWriteDirection,
} from './options/directions.ts'
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
    : [T] extends [null]
      ? 'IN'
      : [T] extends [string | null]
        ? 'IN' | PathDirection
        : [T] extends [Primitive]
          ? 'IN'
          : [T] extends [readonly (string | null)[]]
            ? WritesOf<T> | ListDirection
            : WritesOf<T>

/** What a task can do with an object of this type. */
type WritesOf<T> =
  IsReadonly<T> extends true
    ? 'IN'
    : 'IN' | Exclude<ValueWriteDirection, 'CONCURRENT'> | (IsMemory<T> extends true ? 'CONCURRENT' : never)

/** Arrays and collections that a function says it does not change. */
type IsReadonly<T> = [T] extends [readonly unknown[]]
  ? [T] extends [unknown[]]
    ? false
    : true
  : [T] extends [{ clear(): void }]
    ? false
    : [T] extends [ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>]
      ? true
      : false

/** What several tasks can write at the same time: numbers in memory, and lists of them. */
type IsMemory<T> = [T] extends [ArrayBufferView | ArrayBufferLike]
  ? true
  : [T] extends [readonly (infer U)[]]
    ? [U] extends [ArrayBufferView | ArrayBufferLike | readonly (ArrayBufferView | ArrayBufferLike)[]]
      ? true
      : false
    : false

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
    : T extends Map<infer K, infer V>
      ? Map<Resolved<K>, Resolved<V>>
      : T extends Set<infer V>
        ? Set<Resolved<V>>
        : T extends Primitive | Whole
          ? T
          : T extends readonly unknown[]
            ? { [K in keyof T]: Resolved<T[K]> }
            : T extends object
              ? T
              : T

/** What `map` of a task takes: a list of its first parameter, a future of it, or a list with futures in it. */
export type MapList<A extends readonly unknown[]> = A extends readonly [infer T, ...unknown[]]
  ? readonly Passable<T>[] | Future<T[]> | (T extends number ? NumberArray : never)
  : never

type NumberArray =
  Float64Array | Float32Array | Int32Array | Uint32Array | Int16Array | Uint16Array | Int8Array | Uint8Array

/** Its further parameters. */
export type RestOf<A extends readonly unknown[]> = A extends readonly [unknown, ...infer R] ? R : never

/** What `map` gives, of a task whose calls give F. */
export type MapResult<F> =
  F extends Future<infer R>
    ? Future<R[]>
    : F extends readonly unknown[]
      ? Future<{ [K in keyof F]: F[K] extends Future<infer R> ? R : never }[]>
      : never

/** The parameters of a command's function, from its directions. */
// eslint-disable-next-line typescript/no-explicit-any
export type CommandParameters<D extends readonly Direction[]> = {
  -readonly [K in keyof D]: D[K] extends PathDirection
    ? string
    : D[K] extends ListDirection
      ? readonly string[]
      : any
}

/** Those that the function says may be null: files that are left out. */
export type LeftOut<A extends readonly unknown[], P extends readonly unknown[]> = {
  [K in keyof A]: K extends keyof P ? (null extends P[K] ? A[K] | null : A[K]) : A[K]
}

/** The parameters as the task's function gives them: functions in the options may take fewer. */
export type Known<A extends readonly unknown[]> = A extends readonly unknown[] ? A : never

/** A number, a number with a unit, the name of an environment variable ('$NAME'), or a function of the arguments. */
export type Constraint<A extends readonly unknown[]> =
  number | string | ((...args: Known<A>) => number | string)

export type TagConstraint<A extends readonly unknown[]> =
  string | readonly string[] | ((...args: Known<A>) => string | readonly string[])
