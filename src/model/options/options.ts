import { MillraceError } from '../../core/errors.ts'
import type { Spread } from '../../core/tasks/demand.ts'
import type { OnFailure } from '../../core/tasks/task.ts'
import { nearest } from '../../general/nearest.ts'
import { parseBytes, parseCount, parseDuration } from '../../general/units.ts'
import type { BandwidthOption } from './bandwidth.ts'
import type { Cost } from './cost.ts'
import { DIRECTIONS } from './directions.ts'
import type { Direction } from './directions.ts'
import { fromEnvironment } from './environment.ts'
import { checkShapes } from './option-shapes.ts'
import type { Constraint, Known, TagConstraint } from '../types.ts'

/** Options that functions and commands share. */
export interface CommonOptions<A extends readonly unknown[]> {
  /** How the task is called in progress, traces and errors. Default: the function's name. */
  name?: string
  /**
   * What tells a task from others of its kind, as a function of the arguments: `sample => sample.name`. Shown behind the
   * name in progress, failures, stories and traces. @default the name of the first file that it writes, or reads
   */
  label?: (...args: Known<A>) => string
  /** CPUs that it holds while it runs: a whole number, or a share of one such as 0.5, beside which others run. @default 1 */
  cpus?: Constraint<A>
  /** Of MPI tasks: how their CPUs may be on several nodes. @internal */
  spread?: Spread
  /** Memory that it claims: bytes or '512MB'. @default 0 */
  memory?: Constraint<A>
  /** GPUs that it holds while it runs: a whole number, or a share of one such as 0.5. @default 0 */
  gpus?: Constraint<A>
  /** What its node must have: processor kind, software. */
  tags?: TagConstraint<A>
  /**
   * Reads or writes and hardly computes: it holds no CPU but one of the I/O executors, and runs beside tasks
   * that compute. @default false
   */
  io?: boolean
  /**
   * Bandwidth that it claims on its device: MB/s or '200MB/s'; 'auto' or auto(min, max, delta) to have it
   * learned; 'adaptive' to have it tuned all the time. @default no claim and no limit
   */
  bandwidth?: BandwidthOption<A>
  /** Bytes that it writes, or '290MB': room is reserved for them. @default what such tasks wrote before */
  size?: Constraint<A>
  /** Whether its bandwidth is for reading or for writing. @default writing if it writes files */
  direction?: 'read' | 'write'
  /** The name of the only device that its files may be written to. @default the fastest with room */
  storage?: string
  /** What it costs, for `millrace simulate`, which does not run it. */
  cost?: Cost<A>
  /**
   * The files that it writes are for other tasks only: they count as intermediates, are deleted after the last
   * reader that was called before removeFile(), and come to their paths only if waitOnFile() asks. @default false
   */
  temporary?: boolean
  /**
   * Whether its results may be kept for `--resume`. false: it always runs, because it depends on more than its arguments
   * or because of what it does beside. true: they are kept however short it is. @default as the run's `checkpoint` says
   */
  cache?: boolean
  /** What its results depend on beside its arguments and its code: a version, a setting, a date; or a function of the arguments. */
  key?: string | number | ((...args: Known<A>) => string | number)
  /** Programs that it runs, by name or path: when the file of one has changed, kept results do not count. */
  programs?: readonly string[]
  /** Higher runs first among ready tasks. @default 0 */
  priority?: number | ((...args: Known<A>) => number)
  /**
   * What a failure means, after `retries` further attempts. @default 'fail'
   * 'fail' stops the group (or the run): nothing new of it starts. 'retry' is 'fail' with two retries
   * unless `retries` says otherwise. 'ignore' goes on with what was written and `defaults`.
   * 'cancelSuccessors' cancels what depends on it and goes on with the rest.
   */
  onFailure?: OnFailure
  /** Further attempts after a failure, each from the original inputs. @default 0, or 2 for 'retry' */
  retries?: number
  /** Milliseconds, or '30s', after which an attempt is stopped and counts as failed. */
  timeout?: number | string
}

/** Room for values of a generator task that are released and still needed. */
export interface StreamRoom {
  readonly items: number
  readonly bytes: number
}

export interface StreamSettings {
  /**
   * How many values may be under way: released, and not yet taken, or still read by tasks. The generator is
   * not asked for more until there is room. @default 256
   */
  buffer?: number
  /** How many bytes they may have; the value that goes beyond is the last. @default '64MB' */
  bufferBytes?: number | string
}

export function streamRoom(what: string, { buffer = 256, bufferBytes = '64MB' }: StreamSettings): StreamRoom {
  if (!Number.isInteger(buffer) || buffer < 1) {
    throw new MillraceError('MR_OPTION', `${what}: buffer is ${String(buffer)}`, {
      hint: 'Write a whole number of values from 1; bufferBytes bounds their size.',
    })
  }
  const bytes = parseBytes(bufferBytes)
  if (bytes === null || bytes < 1) {
    throw new MillraceError(
      'MR_UNIT',
      `${what}: bufferBytes is '${String(bufferBytes)}', which is not a size such as 64MB`,
    )
  }
  return { items: Math.min(buffer, LARGEST_ROOM), bytes: Math.min(bytes, LARGEST_ROOM) }
}

/** Counters of 32 bits can tell such differences. */
const LARGEST_ROOM = 2 ** 30

export interface Defaults {
  /**
   * The return value of an ignored failure; with `returns: n`, and for a generator, an array by position:
   * values that were released stay, those that were not come from here.
   */
  returns?: unknown
  /** Values of OUT and INOUT parameters of an ignored failure, by position; for files, the path of a file to copy. */
  params?: Readonly<Record<number, unknown>>
}

const COMMON = [
  'name',
  'label',
  'params',
  'cpus',
  'memory',
  'tags',
  'gpus',
  'io',
  'bandwidth',
  'size',
  'direction',
  'storage',
  'cost',
  'temporary',
  'priority',
  'onFailure',
  'retries',
  'timeout',
  'defaults',
  'cache',
  'key',
  'programs',
]
export const TASK_OPTIONS = [...COMMON, 'returns', 'buffer', 'bufferBytes']
export const MPI_OPTIONS = [
  ...COMMON.filter(name => name !== 'io'),
  'processes',
  'perNode',
  'layout',
  'returns',
  'reduce',
  'root',
  'isolate',
  'buffer',
  'bufferBytes',
  'scaleByCpu',
]
export const COMMAND_OPTIONS = [
  ...COMMON,
  'cwd',
  'env',
  'stdin',
  'stdout',
  'stderr',
  'exitCodes',
  'limits',
  'mpi',
  'secret',
]

export function checkOptions(what: string, options: object, known: readonly string[]): void {
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue
    const close = nearest(key, known)
    throw new MillraceError(
      'MR_OPTION',
      `${what} has no option '${key}'${close ? `; did you mean '${close}'?` : ''}`,
      {
        hint: `Options: ${known.join(', ')}.`,
      },
    )
  }
  checkShapes(what, options as Record<string, unknown>)
  checkIo(what, options)
  const { onFailure, params, retries } = options as {
    onFailure?: unknown
    params?: unknown
    retries?: unknown
  }
  const forms = ['retry', 'fail', 'ignore', 'cancelSuccessors']
  if (onFailure !== undefined && !forms.includes(onFailure as string)) {
    const close = nearest(String(onFailure), forms)
    throw new MillraceError(
      'MR_OPTION',
      `${what}: onFailure cannot be '${String(onFailure)}'${close ? `; did you mean '${close}'?` : ''}`,
      { hint: `It is one of ${forms.join(', ')}.` },
    )
  }
  if (retries !== undefined && !(Number.isInteger(retries) && (retries as number) >= 0)) {
    throw new MillraceError('MR_OPTION', `${what}: retries is ${String(retries)}`, {
      hint: 'Write a whole number from 0.',
    })
  }
  if (params !== undefined) checkDirections(what, params)
}

export function checkIo(
  what: string,
  options: { io?: unknown; cpus?: unknown; gpus?: unknown; direction?: unknown },
): void {
  const { io, cpus, gpus, direction } = options
  if (io !== undefined && typeof io !== 'boolean') {
    throw new MillraceError('MR_OPTION', `${what}: io is ${String(io)}, which is neither true nor false`)
  }
  if (io && gpus !== undefined) {
    throw new MillraceError('MR_OPTION', `${what} has both io and gpus`, {
      hint: 'I/O tasks hold nothing but an executor. Leave out one of the two.',
    })
  }
  if (io && cpus !== undefined) {
    throw new MillraceError('MR_OPTION', `${what} has both io and cpus`, {
      hint: 'I/O tasks hold no CPU. Leave out one of the two.',
    })
  }
  if (direction !== undefined && direction !== 'read' && direction !== 'write') {
    throw new MillraceError('MR_OPTION', `${what}: direction is '${String(direction)}'`, {
      hint: "It is 'read' or 'write'.",
    })
  }
}

function checkDirections(what: string, params: unknown): asserts params is Direction[] {
  if (!Array.isArray(params)) {
    throw new MillraceError('MR_DIRECTION', `${what}: params is not an array of directions`)
  }
  for (const direction of params as unknown[]) {
    if (typeof direction === 'string' && direction in DIRECTIONS) continue
    const close = nearest(String(direction), Object.keys(DIRECTIONS))
    throw new MillraceError(
      'MR_DIRECTION',
      `${what}: '${String(direction)}' is no direction${close ? `; did you mean ${close}?` : ''}`,
    )
  }
}

/** The value of a constraint that may be a number, a unit string, '$ENV' or a function of the arguments. */
export function evaluate(
  what: string,
  option: 'cpus' | 'gpus' | 'memory' | 'size',
  constraint: Constraint<readonly unknown[]> | undefined,
  args: readonly unknown[] | null,
): number | null {
  if (constraint === undefined) return null
  let value = constraint
  if (typeof value === 'function') {
    if (!args) return null
    value = value(...args)
  }
  if (typeof value === 'string' && value.startsWith('$'))
    value = fromEnvironment(what, option, value.slice(1))
  if (option === 'gpus') return gpusOf(what, value)
  const number = option === 'cpus' ? cpusFrom(value) : parseBytes(value)
  if (number === null) {
    const expected =
      option === 'cpus'
        ? 'a whole number of CPUs from 1, or a share of one such as 0.5'
        : 'a size such as 512MB or 1.5GiB'
    throw new MillraceError('MR_UNIT', `${what}: ${option} is '${String(value)}', which is not ${expected}`)
  }
  return number
}

/** A whole number from 1, or a share of a CPU. */
function cpusFrom(value: number | string): number | null {
  const share = Number(value)
  if (share >= 0.001 && share < 1) return share
  const count = parseCount(value)
  return count !== null && count >= 1 ? count : null
}

function gpusOf(what: string, value: number | string): number {
  const number = typeof value === 'string' && value.trim() === '' ? NaN : Number(value)
  if (number >= 0.001 && (number < 1 || Number.isInteger(number))) return number
  if (number === 0) return 0
  throw new MillraceError(
    'MR_UNIT',
    `${what}: gpus is '${String(value)}', which is neither a whole number nor a share below 1`,
    { hint: 'Write 2 for two devices, or 0.5 for half of one.' },
  )
}

export function evaluateTimeout(what: string, timeout: number | string | undefined): number {
  if (timeout === undefined) return 0
  const value =
    typeof timeout === 'string' && timeout.startsWith('$')
      ? fromEnvironment(what, 'timeout', timeout.slice(1))
      : timeout
  const milliseconds = parseDuration(value)
  if (milliseconds === null || milliseconds <= 0) {
    throw new MillraceError(
      'MR_UNIT',
      `${what}: timeout is '${String(value)}', which is not a duration such as 30s or 5min`,
    )
  }
  return milliseconds
}
