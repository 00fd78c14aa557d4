import { fileURLToPath, pathToFileURL } from 'node:url'
import { MillraceError } from '../core/errors.ts'
import { FORMS } from '../core/tasks/form.ts'
import type { Form, FormTraits } from '../core/tasks/form.ts'
import type { Kind } from '../core/tasks/task.ts'
import type { CommandForm } from './command-form.ts'
import type { Direction } from './options/directions.ts'
import type { MpiForm } from './mpi/form.ts'
import { globalState } from './global-state.ts'
import { urlHere } from './module-root.ts'
import type { CommonOptions, Defaults, StreamRoom } from './options/options.ts'

/** One way to carry out a task. The first is the one that `task` was given, `implement` adds others. */
export interface Variant {
  readonly name: string
  readonly module: string
  readonly options: CommonOptions<readonly unknown[]>
  readonly run: Function
}

/** What `task` or `command` defined, found again in every thread under the same key. */
export interface Definition {
  readonly key: string
  /** As given, or the function's; a task without either is called after the name that its module exports it by. */
  name: string
  readonly unnamed: boolean
  readonly form: Form
  readonly module: string
  readonly params: readonly Direction[] | null
  /** Its first parameter is the object that it is called on. */
  readonly isMethod?: boolean
  /** Parameters beyond those with a direction are IN. */
  readonly isOpen?: boolean
  /** All its parameters are IN. */
  readonly readsOnly: boolean
  /** Number of values it returns as futures of their own; 0 for the usual single one. */
  readonly returns: number
  /** Where that number depends on the arguments: see `definitionFor`. */
  readonly returnsOf?: (...args: readonly unknown[]) => unknown
  /** It is a generator: the room for its values. */
  readonly stream: StreamRoom | null
  readonly options: CommonOptions<readonly unknown[]> & { defaults?: Defaults }
  readonly timeout: number
  readonly variants: Variant[]
  /** The core's view of it, made at the first call. */
  kind: Kind | null
  /** Null for functions. */
  readonly command: CommandForm | null
  /** Null but for MPI tasks. */
  readonly mpi?: MpiForm | null
}

const { definitions: byKey, modules, counts } = globalState

/** Modules that define tasks; their exported classes can cross between threads. */
export const taskModules = (): ReadonlySet<string> => modules

/**
 * Names in a module are numbered, so that two tasks of one name differ. The order is the order of
 * evaluation, which is the same in every thread that loads the module.
 */
export function define(
  name: string,
  facts: Omit<Definition, 'key' | 'name' | 'module' | 'kind' | 'readsOnly'>,
): Definition {
  const module = callerModule()
  const counted = `${module}#${name}`
  const count = (counts.get(counted) ?? 0) + 1
  counts.set(counted, count)
  const readsOnly = facts.params?.every(direction => direction === 'IN') ?? true
  const definition: Definition = { ...facts, readsOnly, name, module, key: `${counted}#${count}`, kind: null }
  byKey.set(definition.key, definition)
  modules.add(module)
  return definition
}

/** Whether this holds for some task; tasks whose modules are not loaded yet do not count. */
export const someDefinition = (is: (definition: Definition) => boolean): boolean =>
  [...byKey.values()].some(is)

/** Whether tasks are defined so far that run on threads, or as programs. */
export const hasTasksOn = (place: FormTraits['runsOn']): boolean =>
  someDefinition(({ form }) => FORMS[form].runsOn === place)

/** The forms of the tasks that are defined so far. */
export const formsInUse = (): Set<Form> => new Set([...byKey.values()].map(({ form }) => form))

/** Some definitions are derived from another one, in each thread where they are asked for. */
export function findDefinition(key: string): Definition | undefined {
  const known = byKey.get(key)
  const end = known ? -1 : key.lastIndexOf('~')
  const base = end > 0 ? byKey.get(key.slice(0, end)) : undefined
  if (!base) return known
  const suffix = key.slice(end + 1)
  return base.returnsOf ? returning(base, Number(suffix)) : deriveDefinition(base, suffix)
}

/** What a call with these arguments is a call of: the definition itself, or the one that returns as many values. */
export function definitionFor(definition: Definition, args: readonly unknown[]): Definition {
  if (!definition.returnsOf) return definition
  const count = definition.returnsOf(...args)
  if (Number.isInteger(count) && (count as number) > 0) return returning(definition, count as number)
  const given = typeof count === 'number' ? String(count) : `${typeof count}`
  throw new MillraceError(
    'MR_OPTION',
    `${definition.name}: returns gives ${given} for these arguments, which is not a whole number from 1`,
    { hint: 'It is called with the arguments as they are given: futures among them have no value yet.' },
  )
}

/** The number is part of the name: tasks that return other numbers of values are other kinds of tasks. */
function returning(base: Definition, returns: number): Definition {
  const key = `${base.key}~${returns}`
  const known = byKey.get(key)
  if (known) return known
  const { returnsOf: _, ...facts } = base
  const definition: Definition = { ...facts, name: `${base.name}[${returns}]`, key, returns, kind: null }
  byKey.set(key, definition)
  return definition
}

type Derive = (base: Definition) => Pick<Definition, 'name' | 'options' | 'params'> & { run: Function }
const derivations = new Map<string, Derive>()

/** All definitions get one more of this suffix, made when it is first needed. */
export function derivable(suffix: string, derive: Derive): void {
  derivations.set(suffix, derive)
}

export function deriveDefinition(base: Definition, suffix: string): Definition | undefined {
  const key = `${base.key}~${suffix}`
  const known = byKey.get(key)
  const derive = derivations.get(suffix)
  if (known || !derive) return known
  const { run, ...facts } = derive(base)
  const { module } = base
  const variants = [{ name: facts.name, module: '', options: facts.options, run }]
  const fixed = {
    form: 'function',
    unnamed: false,
    returns: 0,
    stream: null,
    timeout: 0,
    kind: null,
  } as const
  const definition = { ...fixed, ...facts, key, module, readsOnly: true, variants, command: null }
  byKey.set(key, definition)
  return definition
}

export function noteModule(): string {
  const module = callerModule()
  modules.add(module)
  return module
}

/** The folder of Millrace's own code: `dist`, or in tests of single modules `src/model`. */
const own = ownFolder(import.meta.url)

/** Bundled into a program, this module has another name, or none where the bundle is CommonJS. */
function ownFolder(url: string | undefined): string {
  if (url && /\/(?:dist\/millrace-[\w-]+\.js|src\/model\/definition\.ts)(?:\?.*)?$/.test(url))
    return new URL('.', url).href
  throw new MillraceError(
    'MR_BUNDLED',
    'a bundler has put Millrace into the program, so threads cannot load it',
  )
}

/** The module outside Millrace that is executing: the one that defines a task. */
function callerModule(): string {
  const { prepareStackTrace, stackTraceLimit } = Error
  let sites: NodeJS.CallSite[] = []
  try {
    Error.stackTraceLimit = 30
    Error.prepareStackTrace = (_error, found) => (sites = found)
    void new Error('where').stack
  } finally {
    Error.prepareStackTrace = prepareStackTrace
    Error.stackTraceLimit = stackTraceLimit
  }
  for (const site of sites) {
    const name = site.getFileName()
    if (!name || name.startsWith('node:')) continue
    const url = name.startsWith('file:') ? name : pathToFileURL(name).href
    if (!url.startsWith(own)) return urlHere(url.replace(/[?#].*$/, ''))
  }
  throw new MillraceError('MR_NOT_TOP_LEVEL', 'the module that defines this task cannot be told', {
    hint: 'Define tasks in a file, not in code given to eval or on the command line.',
  })
}

export const modulePath = (module: string): string =>
  module.startsWith('file:') ? fileURLToPath(module) : module
