import { MillraceError } from '../core/errors.ts'
import { FORMS } from '../core/tasks/form.ts'
import { evaluateBandwidth } from './options/bandwidth.ts'
import { currentHost } from './client.ts'
import type { Argv, CommandForm } from './command-form.ts'
import { define, definitionFor, noteModule } from './definition.ts'
import type { Definition } from './definition.ts'
import type { Direction } from './options/directions.ts'
import { mapCalls } from './map.ts'
import { makeMethods, methodDecorator } from './methods.ts'
import type { MakeMethod, MethodOptions, TaskDecorator, TaskMethod } from './methods.ts'
import { parseLimits } from './options/process-limits.ts'
import type { ProcessLimits } from './options/process-limits.ts'
import type { CommonOptions, Defaults } from './options/options.ts'
import {
  COMMAND_OPTIONS,
  TASK_OPTIONS,
  checkOptions,
  evaluate,
  evaluateTimeout,
  streamRoom,
} from './options/options.ts'
import type { StreamSettings } from './options/options.ts'
import type { Future } from './future.ts'
import { countsOf, cpusOf, spreadOf, wrong } from './mpi/processes.ts'
import type {
  Arguments,
  CommandParameters,
  Constraint,
  LeftOut,
  MapList,
  MapResult,
  RestOf,
  DirectionsFor,
  Futures,
  Known,
  ResultOf,
  ReturnedFor,
} from './types.ts'

export type { Argv } from './command-form.ts'

/** @internal */
export const DEFINITION: unique symbol = Symbol.for('millrace.definition') as never

/** What `task` returns: call it like the function, and get a future of its result. */
export interface TaskFunction<A extends readonly unknown[], F> {
  (...args: Arguments<A>): F
  /**
   * Calls it for each value of a list, with the same further arguments, and gives one future of all results, in order. Meant
   * for very short work: many calls are one task, which costs some tens of nanoseconds for each call.
   *
   *     const roots = await root.map(numbers)
   */
  map(list: MapList<A>, ...rest: Arguments<RestOf<A>>): MapResult<F>
  /** @internal */
  readonly [DEFINITION]?: Definition
}

export interface TaskOptions<A extends readonly unknown[]> extends CommonOptions<A> {
  /** One direction per parameter. @default IN for all */
  params?: DirectionsFor<A>
  defaults?: Defaults
}

/**
 * With `returns: n` the function returns an array of n values, and a call gives n futures. A function of the arguments says n for
 * each call.
 */
export interface SeveralOptions<A extends readonly unknown[]> extends TaskOptions<A> {
  returns: number | ((...args: A) => number)
}

/** A function that returns one value; or a generator, which releases each value that it yields. */
export interface SingleOptions<A extends readonly unknown[]> extends TaskOptions<A>, StreamSettings {
  returns?: never
}

export const isGenerator = (run: Function): boolean => /Generator/.test(run.constructor.name)

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
/**
 * As a decorator it makes tasks of methods and static methods of an exported class. What the method does with its object is
 * `this`: INOUT, unless the options say IN.
 *
 *     export class Block {
 *       @task({}) scale(by: number): void { … }
 *       @task({ this: IN }) async norm(): Promise<number> { … }
 *     }
 */
export function task(options: MethodOptions): TaskDecorator
export function task(given: object, run?: Function): unknown {
  if (typeof given !== 'object' || given === null) {
    const what = typeof given === 'function' ? 'a function' : String(given)
    throw new MillraceError('MR_OPTION', `task: the first argument is ${what}, not the options`, {
      hint: 'Write task({}, function): options come first, even if there are none.',
    })
  }
  if (arguments.length === 1) return methodDecorator(given, defineMethod)
  const options = given as TaskOptions<readonly unknown[]> & { returns?: number | Definition['returnsOf'] }
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
  const returnsOf = typeof options.returns === 'function' ? options.returns : undefined
  const returns = typeof options.returns === 'function' ? 0 : (options.returns ?? 0)
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
      ...(returnsOf && { returnsOf }),
      stream: isStream ? streamRoom(what, settings) : null,
      options: checked,
      timeout: evaluateTimeout(what, checked.timeout),
      variants: [{ name, module: '', options: checked, run }],
      command: null,
    }),
  )
}

/**
 * Makes tasks of methods and static methods of an exported class, by their names, where decorators cannot be used:
 *
 *     taskMethods(Block, { scale: {}, norm: { this: IN } })
 */
export function taskMethods<T extends { readonly name: string; readonly prototype: object }>(
  owner: T,
  methods: { readonly [K in MethodNames<T['prototype']> | MethodNames<T>]?: MethodOptions },
): void {
  makeMethods(owner, methods as Record<string, MethodOptions>, defineMethod)
}

type MethodNames<T> = { [K in keyof T]: T[K] extends TaskMethod ? K : never }[keyof T] & string

function defineMethod(
  name: string,
  given: MethodOptions,
  params: readonly Direction[] | null,
  run: Function,
  { isStatic, isOpen }: { isStatic: boolean; isOpen: boolean },
): ReturnType<MakeMethod> {
  const what = `method ${name}`
  checkOptions(what, given, TASK_OPTIONS)
  const options = given as Definition['options']
  evaluateFixed(what, options)
  const definition = define(name, {
    form: 'function',
    unnamed: false,
    isMethod: !isStatic,
    isOpen,
    params,
    returns: 0,
    stream: null,
    options,
    timeout: evaluateTimeout(what, options.timeout),
    variants: [{ name, module: '', options, run }],
    command: null,
  })
  return { definition, call: args => currentHost().client().call(definition, args) }
}

/** How an MPI program is started. */
export interface MpiProgram<A extends readonly unknown[]> {
  /** A number, '$NAME' of a variable, or a function of the arguments. */
  readonly processes: Constraint<A>
  /** Processes on one node at most. @default as many as it has CPUs for */
  readonly perNode?: number
}

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
  limits?: ProcessLimits
  /** It is an MPI program: mpirun starts it as this many processes, with `cpus` CPUs each. */
  mpi?: MpiProgram<A>
  /** Its arguments are secret: where it fails, neither messages nor the journal show more than the program. @default false */
  secret?: boolean
}

/**
 * Marks a program as a task. The function gives its argument list; there is no shell in between. The
 * future gives the exit code.
 *
 *     export const project = command({ name: 'mProject', params: [FILE_IN, FILE_OUT] },
 *       (raw, out) => ['mProject', raw, out, 'region.hdr'])
 */
export function command<
  const D extends readonly Direction[],
  A extends CommandParameters<D>,
  F extends (...args: A) => Argv,
>(
  options: CommandOptions<D, A>,
  argv: F & ((...args: A) => Argv),
): TaskFunction<Extract<LeftOut<A, Parameters<F>>, readonly unknown[]>, Future<number>> {
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
  const { stdin, stdout, stderr, cwd, env, exitCodes, secret } = options
  for (const [stream, position] of Object.entries({ stdin, stdout, stderr })) {
    const direction = position === undefined ? 'FILE_' : (params?.[position] ?? 'nothing')
    if (!direction.startsWith('FILE_')) {
      throw new MillraceError(
        'MR_DIRECTION',
        `${what}: ${stream} is parameter ${position}, which is ${direction}, not a file`,
      )
    }
  }
  const checked = withProcesses(what, options as unknown as Definition['options'], options.mpi)
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
      command: {
        stdin,
        stdout,
        stderr,
        // They are called with the arguments that the program's types have checked.
        cwd: cwd as CommandForm['cwd'],
        env: env as CommandForm['env'],
        exitCodes,
        secret,
        limits: parseLimits(what, options.limits),
        mpi: options.mpi ? { cpus: (options.cpus as number | undefined) ?? 1 } : undefined,
      },
    }),
  ) as TaskFunction<Extract<LeftOut<A, Parameters<F>>, readonly unknown[]>, Future<number>>
}

/** The CPUs of an MPI program are those of all its processes. */
function withProcesses(
  what: string,
  options: Definition['options'],
  program: MpiProgram<never> | undefined,
): Definition['options'] {
  if (!program) return options
  const { cpus = 1 } = options
  if (typeof cpus !== 'number' || !Number.isInteger(cpus) || cpus < 1) {
    throw wrong(
      `${what}: cpus is '${String(cpus)}'`,
      'For an MPI program, write the CPUs of one process as a number.',
    )
  }
  const [count] = countsOf(what, program.processes)
  const spread = spreadOf(what, program.perNode, cpus)
  return { ...options, spread, cpus: cpusOf(what, count as Constraint<readonly unknown[]>, cpus) }
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
  if (!definition || FORMS[definition.form].runsOn !== 'threads') {
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
  checkOptions(what, options, ['name', 'cpus', 'gpus', 'memory', 'tags'])
  const checked = options as CommonOptions<readonly unknown[]>
  for (const option of ['cpus', 'gpus', 'memory', 'tags'] as const) {
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
export function evaluateFixed(what: string, options: CommonOptions<readonly unknown[]>): void {
  const inEnvironment = (constraint: unknown): boolean =>
    typeof constraint === 'string' && constraint.startsWith('$')
  for (const option of ['cpus', 'gpus', 'memory', 'size'] as const) {
    if (!inEnvironment(options[option])) evaluate(what, option, options[option], null)
  }
  if (!inEnvironment(options.bandwidth)) evaluateBandwidth(what, options.bandwidth, null)
}

export function callable(definition: Definition): unknown {
  const call = definition.returnsOf
    ? (...args: unknown[]): unknown => currentHost().client().call(definitionFor(definition, args), args)
    : (...args: unknown[]): unknown => currentHost().client().call(definition, args)
  Object.defineProperty(call, 'name', { value: definition.name })
  Object.defineProperty(call, DEFINITION, { value: definition })
  Object.defineProperty(call, 'map', {
    value: (list: unknown, ...rest: unknown[]) => mapCalls(definition, list, rest),
  })
  return call
}
