import { MillraceError } from '../../core/errors.ts'
import { define } from '../definition.ts'
import type { Definition, Variant } from '../definition.ts'
import type { Future } from '../future.ts'
import type { Direction } from '../options/directions.ts'
import type { CommonOptions, Defaults, StreamSettings } from '../options/options.ts'
import { MPI_OPTIONS, checkOptions, evaluateTimeout, streamRoom } from '../options/options.ts'
import { callable, evaluateFixed, isGenerator } from '../task.ts'
import type { TaskFunction } from '../task.ts'
import type { Constraint, DirectionsFor } from '../types.ts'
import type { Stream } from '../value-stream.ts'
import type { Comm, ReduceOp } from './comm.ts'
import { REDUCE_OPS } from './comm.ts'
import type { Layout, MpiForm } from './form.ts'
import { countsOf, cpusOf, spreadOf, wrong } from './processes.ts'
import type { ProcessRange } from './processes.ts'

export interface MpiOptions<A extends readonly unknown[]> extends Omit<CommonOptions<A>, 'cpus' | 'io'> {
  /** How many ranks: a number, '$NAME' of a variable, a function of the arguments, or a range. */
  processes: Constraint<A> | ProcessRange
  /** Ranks on one node at most. @default as many as it has CPUs for */
  perNode?: number
  /** CPUs of each rank, for threads of its own. @default 1 */
  cpus?: number
  /** `processes` are counted for one CPU each: there are `cpus` times as many ranks, with one CPU. @default false */
  scaleByCpu?: boolean
  /** One direction per parameter behind `comm`. @default IN for all */
  params?: DirectionsFor<A>
  /** Arrays and lists of which each rank gets a part, by the position of the parameter behind `comm`. */
  layout?: Readonly<Record<number, Layout>>
  /** Each task gets an mpirun of its own. @default false */
  isolate?: boolean
  defaults?: Defaults
}

/** The result is the list of what the ranks return; of generators, a stream of lists of what they yield. */
export interface MpiListOptions<A extends readonly unknown[]> extends MpiOptions<A>, StreamSettings {
  returns?: 'list'
  reduce?: never
  root?: never
}

/** The result is what one rank returns, or what all return made one by `reduce`: numbers or arrays. */
export interface MpiOneOptions<A extends readonly unknown[]> extends MpiOptions<A>, StreamSettings {
  returns?: never
  reduce?: ReduceOp
  root?: number
}

/** A future for each rank, which is there as soon as that rank has returned. */
export interface MpiEachOptions<A extends readonly unknown[]> extends MpiOptions<A> {
  processes: number
  returns: 'each'
  reduce?: never
  root?: never
}

/** A function that runs in each rank. */
// eslint-disable-next-line typescript/no-explicit-any
export type MpiBody = (comm: Comm, ...args: any[]) => unknown

/** What the ranks yield, if they do. */
type Yielded<R> = R extends Generator<infer Y> | AsyncGenerator<infer Y> ? Y : never
type OneOf<R> = [Yielded<R>] extends [never] ? Future<Awaited<R>> : Stream<Yielded<R>>
type ListOf<R> = [Yielded<R>] extends [never] ? Future<Awaited<R>[]> : Stream<Yielded<R>[]>

/** Its parameters behind `comm`. */
type Behind<F extends MpiBody> = F extends (comm: Comm, ...args: infer A) => unknown ? A : never

/**
 * Marks a function as an MPI task: it runs in several processes at the same time, each with a number (its rank), which send
 * each other messages by `comm`.
 *
 *     export const norm = mpi({ name: 'norm', processes: 4, layout: { 0: 'block' }, root: 0 },
 *       (comm, x: Float64Array) => Math.sqrt(comm.allreduce(dot(x, x), 'sum')))
 */
export function mpi<F extends MpiBody>(
  options: MpiEachOptions<Behind<F>>,
  run: F,
): TaskFunction<Behind<F>, Future<Awaited<ReturnType<F>>>[]>
export function mpi<F extends MpiBody>(
  options: MpiOneOptions<Behind<F>> & ({ reduce: ReduceOp } | { root: number }),
  run: F,
): TaskFunction<Behind<F>, OneOf<ReturnType<F>>>
export function mpi<F extends MpiBody>(
  options: MpiListOptions<Behind<F>>,
  run: F,
): TaskFunction<Behind<F>, ListOf<ReturnType<F>>>
export function mpi(given: object, run: Function): unknown {
  const options = given as MpiOptions<readonly unknown[]> & {
    returns?: 'list' | 'each'
    reduce?: ReduceOp
    root?: number
  } & StreamSettings
  const name = options?.name ?? (run?.name || 'mpi')
  const what = `mpi task ${name}`
  if (typeof given !== 'object' || given === null || typeof run !== 'function') {
    throw wrong(`${what} needs options and a function`, 'Write mpi({ processes: 4 }, (comm, …) => { … }).')
  }
  checkOptions(what, options, MPI_OPTIONS)
  const params = (options.params as readonly Direction[] | undefined) ?? null
  if (params && run.length - 1 > params.length) {
    throw new MillraceError(
      'MR_DIRECTION',
      `${what} has ${run.length - 1} parameters behind comm and ${params.length} directions`,
    )
  }
  const isStream = isGenerator(run)
  if (!isStream && ('buffer' in options || 'bufferBytes' in options)) {
    throw wrong(`${what}: only a generator function has a buffer`, 'Leave out buffer and bufferBytes.')
  }
  if (isStream && options.returns === 'each') {
    throw wrong(`${what}: a generator gives one stream for all ranks`, "Leave out returns: 'each'.")
  }
  const form = { ...formOf(what, options), ...(isStream && { isolate: true }) }
  const each = options.cpus ?? 1
  const { processes, perNode: _perNode, isolate: _isolate, layout: _layout, returns, ...rest } = options
  const { reduce: _reduce, root: _root, cpus: _cpus, scaleByCpu = false, ...common } = rest
  const counts = countsOf(what, processes)
  // A generator gives its CPUs back while its values wait: that is for one node.
  const spread = isStream ? {} : { spread: spreadOf(what, options.perNode, form.cpus) }
  const variants: Variant[] = counts.map((count, i) => ({
    name: i === 0 && counts.length === 1 ? name : `${name}-${String(count)}`,
    module: '',
    options: { ...common, cpus: cpusOf(what, count, each), ...spread } as Variant['options'],
    run,
  }))
  const own = (variants[0] as Variant).options as Definition['options']
  evaluateFixed(what, own)
  return callable(
    define(name, {
      form: 'mpi',
      unnamed: !options.name && !run.name,
      params,
      returns: returns === 'each' ? (processes as number) * (scaleByCpu ? each : 1) : 0,
      stream: isGenerator(run) ? streamRoom(what, options) : null,
      options: own,
      timeout: evaluateTimeout(what, own.timeout),
      variants,
      command: null,
      mpi: form,
    }),
  )
}

function formOf(
  what: string,
  options: MpiOptions<readonly unknown[]> & { returns?: unknown; reduce?: ReduceOp; root?: number },
): MpiForm {
  const { cpus = 1, layout = {}, isolate = false, returns, reduce, root, processes } = options
  if (!Number.isInteger(cpus) || cpus < 1) {
    throw wrong(`${what}: cpus is ${String(cpus)}`, 'Write a whole number of CPUs for each rank, from 1.')
  }
  if (reduce !== undefined && !REDUCE_OPS.includes(reduce)) {
    throw wrong(`${what}: reduce is '${String(reduce)}'`, `It is one of ${REDUCE_OPS.join(', ')}.`)
  }
  if (root !== undefined && !(Number.isInteger(root) && root >= 0)) {
    throw wrong(`${what}: root is ${String(root)}`, 'Write the number of a rank, from 0.')
  }
  if ([returns, reduce, root].filter(one => one !== undefined).length > 1) {
    throw wrong(`${what} has more than one of returns, reduce and root`, 'Leave out all but one.')
  }
  if (returns !== undefined && returns !== 'list' && returns !== 'each') {
    throw wrong(`${what}: returns is '${String(returns)}'`, "It is 'list' or 'each'.")
  }
  if (returns === 'each' && !Number.isInteger(processes)) {
    throw wrong(
      `${what}: returns: 'each' needs a fixed number of processes`,
      "Write a number, or returns: 'list'.",
    )
  }
  for (const [position, one] of Object.entries(layout)) {
    const fits =
      one === 'block' ||
      (typeof one === 'object' &&
        one !== null &&
        [one.length, one.stride].every(x => Number.isInteger(x) && x >= 0))
    if (!fits)
      throw wrong(
        `${what}: layout of parameter ${position} is not known`,
        "Write 'block', or { length, stride }.",
      )
  }
  return { cpus: options.scaleByCpu ? 1 : cpus, layout, isolate, reduce: reduce ?? null, root: root ?? null }
}
