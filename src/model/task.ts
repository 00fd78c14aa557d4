import { MillraceError } from '../core/errors.ts'
import { evaluateBandwidth } from './bandwidth.ts'
import { currentHost } from './client.ts'
import { define, noteModule } from './definition.ts'
import type { Definition } from './definition.ts'
import type { Direction } from './directions.ts'
import { parseLimits } from './limits.ts'
import type { Limits, ParsedLimits } from './limits.ts'
import type { CommonOptions, Defaults } from './options.ts'
import {
  COMMAND_OPTIONS,
  TASK_OPTIONS,
  checkOptions,
  evaluate,
  evaluateTimeout,
  streamRoom,
} from './options.ts'
import type { StreamSettings } from './options.ts'
import type { Future } from './future.ts'
import type {
  Arguments,
  CommandParameters,
  DirectionsFor,
  Futures,
  Known,
  ResultOf,
  ReturnedFor,
} from './types.ts'

export const DEFINITION: unique symbol = Symbol.for('millrace.definition') as never

/** What `task` returns: call it like the function, and get a future of its result. */
export interface TaskFunction<A extends readonly unknown[], F> {
  (...args: Arguments<A>): F
  /** @internal */
  readonly [DEFINITION]?: Definition
}

export interface TaskOptions<A extends readonly unknown[]> extends CommonOptions<A> {
  /** One direction per parameter. @default IN for all */
  params?: DirectionsFor<A>
  defaults?: Defaults
}

/** With `returns: n` the function returns an array of n values, and a call gives n futures. */
export interface SeveralOptions<A extends readonly unknown[]> extends TaskOptions<A> {
  returns: number
}

/** A function that returns one value; or a generator, which releases each value that it yields. */
export interface SingleOptions<A extends readonly unknown[]> extends TaskOptions<A>, StreamSettings {
  returns?: never
}

const isGenerator = (run: Function): boolean => /Generator/.test(run.constructor.name)

/**
 * Marks a function as a task. Define tasks at the top level of a module: compute threads load the module
 * and find them there.
 *
 *     export const multiply = task({ params: [IN, IN, INOUT] },
 *       (a: Float64Array, b: Float64Array, c: Float64Array) => { gemm(a, b, c) })
 */
export function task<A extends readonly unknown[], R extends readonly unknown[]>(
  options: SeveralOptions<A>,
  run: (...args: A) => R | Promise<R>,
): TaskFunction<A, Futures<R>>
export function task<A extends readonly unknown[], R>(
  options: SingleOptions<A>,
  run: (...args: A) => R,
): TaskFunction<A, ResultOf<R>>
export function task(given: object, run: Function): unknown {
  const options = given as TaskOptions<readonly unknown[]> & { returns?: number }
  const name = options.name ?? (run?.name || 'task')
  const what = `task ${name}`
  checkOptions(what, options, TASK_OPTIONS)
  if (typeof run !== 'function') {
    throw new MillraceError('MR_OPTION', `${what}: the second argument is ${typeof run}, not a function`)
  }
  const settings = options as StreamSettings
  const isStream = isGenerator(run)
  if (!isStream && (settings.buffer !== undefined || settings.bufferBytes !== undefined)) {
    throw new MillraceError('MR_OPTION', `${what}: only a generator function has a buffer`)
  }
  if (isStream && options.returns !== undefined) {
    throw new MillraceError('MR_OPTION', `${what}: a generator gives as many values as it yields`, {
      hint: 'Leave out `returns`.',
    })
  }
  const params = (options.params as readonly Direction[] | undefined) ?? null
  if (params && run.length > params.length) {
    throw new MillraceError(
      'MR_DIRECTION',
      `${what} has ${run.length} parameters and ${params.length} directions`,
    )
  }
  const returns = options.returns ?? 0
  if (!Number.isInteger(returns) || returns < 0) {
    throw new MillraceError('MR_OPTION', `${what}: returns is ${String(returns)}, not a whole number`)
  }
  const checked = options as Definition['options']
  evaluateFixed(what, checked)
  return callable(
    define(name, {
      form: 'function',
      unnamed: !options.name && !run.name,
      params,
      returns,
      stream: isStream ? streamRoom(what, settings) : null,
      options: checked,
      timeout: evaluateTimeout(what, checked.timeout),
      variants: [{ name, module: '', options: checked, run }],
      extra: null,
    }),
  )
}

/** What a command's function may return: the arguments of the program, the program first. */
export type Argv = readonly (string | number)[]

export interface CommandOptions<
  D extends readonly Direction[],
  A extends readonly unknown[],
> extends CommonOptions<A> {
  params?: D
  defaults?: Defaults
  /** Working directory. @default that of the coordinator */
  cwd?: string | ((...args: Known<A>) => string)
  /** Variables added to the environment. */
  env?: Readonly<Record<string, string>> | ((...args: Known<A>) => Readonly<Record<string, string>>)
  /** The position of the file parameter that the program reads as standard input. */
  stdin?: number
  /** The position of the file parameter that standard output, or error, is written to. @default the task's log */
  stdout?: number
  stderr?: number
  /** Exit codes that count as success. @default [0] */
  exitCodes?: readonly number[] | ((code: number) => boolean)
  /** What the program may use: { cpuTime, memory, fileSize, openFiles }. @default what this process may */
  limits?: Limits
}

/** What those who define commands inside Millrace have to say while one runs. */
export interface CommandHooks {
  /**
   * Asked when all inputs are there. Gives the command; or `made` when it has done the work itself, or `kept`
   * when the files that are in place already are right. A signal is made for those who ask for it.
   */
  begin(args: readonly unknown[], signal: () => AbortSignal): Promise<Argv | 'made' | 'kept'>
  /**
   * Everything is written aside and will be moved into place next. Throws what is missing; gives the sizes of plain
   * files, in the order of the paths.
   */
  beforeCommit(
    args: readonly unknown[],
    paths: readonly (string | null)[],
  ): Promise<readonly (number | null | undefined)[]>
  /** How large a file is that is read, where that is known. */
  bytesOf(path: string): number | null
  /** The output in this slot is complete before the command has ended. */
  released(args: readonly unknown[], slot: number, path: string): Promise<void>
}

export type CommandExtra = Pick<
  CommandOptions<readonly Direction[], readonly never[]>,
  'cwd' | 'env' | 'stdin' | 'stdout' | 'stderr' | 'exitCodes'
> & { limits: ParsedLimits | null; hooks?: CommandHooks }

/**
 * Marks a program as a task. The function gives its argument list; there is no shell in between. The
 * future gives the exit code.
 *
 *     export const project = command({ name: 'mProject', params: [FILE_IN, FILE_OUT] },
 *       (raw, out) => ['mProject', raw, out, 'region.hdr'])
 */
export function command<const D extends readonly Direction[], A extends CommandParameters<D>>(
  options: CommandOptions<D, A>,
  argv: (...args: A) => Argv,
): TaskFunction<A, Future<number>> {
  const name = options.name ?? (argv.name || 'command')
  const what = `command ${name}`
  checkOptions(what, options, COMMAND_OPTIONS)
  const params = options.params ?? null
  if (params && argv.length > params.length) {
    throw new MillraceError(
      'MR_DIRECTION',
      `${what} has ${argv.length} parameters and ${params.length} directions`,
    )
  }
  const { stdin, stdout, stderr, cwd, env, exitCodes } = options
  for (const [stream, position] of Object.entries({ stdin, stdout, stderr })) {
    const direction = position === undefined ? 'FILE_' : (params?.[position] ?? 'nothing')
    if (!direction.startsWith('FILE_')) {
      throw new MillraceError(
        'MR_DIRECTION',
        `${what}: ${stream} is parameter ${position}, which is ${direction}, not a file`,
      )
    }
  }
  const checked = options as unknown as Definition['options']
  evaluateFixed(what, checked)
  return callable(
    define(name, {
      form: 'command',
      unnamed: !options.name && !argv.name,
      params,
      returns: 0,
      stream: null,
      options: checked,
      timeout: evaluateTimeout(what, checked.timeout),
      variants: [{ name, module: '', options: checked, run: argv }],
      extra: { stdin, stdout, stderr, cwd, env, exitCodes, limits: parseLimits(what, options.limits) },
    }),
  ) as TaskFunction<A, Future<number>>
}

/**
 * Another way to carry out a task, with constraints of its own. Each version is tried; from then on the
 * fastest that fits where there is room is used.
 */
export function implement<A extends readonly unknown[], F>(
  base: TaskFunction<A, F>,
  options: CommonOptions<A>,
  run: (...args: Known<A>) => ReturnedFor<NoInfer<F>>,
): TaskFunction<A, F> {
  const definition = base[DEFINITION]
  if (!definition || definition.form !== 'function') {
    throw new MillraceError('MR_OPTION', 'implement: the first argument is not a task that is a function')
  }
  if (isGenerator(run) !== (definition.stream !== null)) {
    throw new MillraceError(
      'MR_OPTION',
      `implement: a version of ${definition.name} must ${definition.stream ? '' : 'not '}be a generator function`,
    )
  }
  const name = options.name ?? (run.name || `${definition.name}-${definition.variants.length + 1}`)
  const what = `implementation ${name} of ${definition.name}`
  checkOptions(what, options, ['name', 'cpus', 'memory', 'tags'])
  const checked = options as CommonOptions<readonly unknown[]>
  for (const option of ['cpus', 'memory', 'tags'] as const) {
    if (typeof checked[option] !== 'function') continue
    throw new MillraceError('MR_OPTION', `${what}: ${option} cannot be a function of the arguments here`, {
      hint: 'Give the further version a fixed constraint, or make it a task of its own.',
    })
  }
  evaluateFixed(what, checked)
  definition.variants.push({ name, module: noteModule(), options: checked, run })
  return base
}

/** Constraints that are fixed are wrong at once, not at the first call. */
function evaluateFixed(what: string, options: CommonOptions<readonly unknown[]>): void {
  const inEnvironment = (constraint: unknown): boolean =>
    typeof constraint === 'string' && constraint.startsWith('$')
  for (const option of ['cpus', 'memory', 'size'] as const) {
    if (!inEnvironment(options[option])) evaluate(what, option, options[option], null)
  }
  if (!inEnvironment(options.bandwidth)) evaluateBandwidth(what, options.bandwidth, null)
}

function callable(definition: Definition): unknown {
  const call = (...args: unknown[]): unknown => currentHost().client().call(definition, args)
  Object.defineProperty(call, 'name', { value: definition.name })
  Object.defineProperty(call, DEFINITION, { value: definition })
  return call
}
