import { fileURLToPath, pathToFileURL } from 'node:url'
import { MillraceError } from '../core/errors.ts'
import type { Kind } from '../core/task.ts'
import type { Direction } from './directions.ts'
import { globalState } from './global-state.ts'
import type { CommonOptions, Defaults, StreamRoom } from './options.ts'

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
  readonly form: 'function' | 'command'
  readonly module: string
  readonly params: readonly Direction[] | null
  /** All its parameters are IN. */
  readonly readsOnly: boolean
  /** Number of values it returns as futures of their own; 0 for the usual single one. */
  readonly returns: number
  /** It is a generator: the room for its values. */
  readonly stream: StreamRoom | null
  readonly options: CommonOptions<readonly unknown[]> & { defaults?: Defaults }
  readonly timeout: number
  readonly variants: Variant[]
  /** The core's view of it, made at the first call. */
  kind: Kind | null
  /** Anything fixed that the runtime keeps with it. */
  readonly extra: unknown
}

const { definitions: byKey, modules, counts } = globalState

/** Modules that define tasks; their exported classes can cross between threads. */
export const taskModules = (): ReadonlySet<string> => modules

/**
 * Names in a module are numbered, so that two tasks of one name are told apart. The order is the order of
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

/** Whether there are tasks of which this is true; those whose modules are not loaded yet do not count. */
export const someDefinition = (is: (definition: Definition) => boolean): boolean =>
  [...byKey.values()].some(is)

export const findDefinition = (key: string): Definition | undefined => byKey.get(key)

export function noteModule(): string {
  const module = callerModule()
  modules.add(module)
  return module
}

/** Where Millrace's own code is: one folder, once it is built. */
const own = new URL('.', import.meta.url).href

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
    if (!url.startsWith(own)) return url.replace(/[?#].*$/, '')
  }
  throw new MillraceError('MR_NOT_TOP_LEVEL', 'the module that defines this task cannot be told', {
    hint: 'Define tasks in a file, not in code given to eval or on the command line.',
  })
}

export const modulePath = (module: string): string =>
  module.startsWith('file:') ? fileURLToPath(module) : module
