import { totalmem } from 'node:os'
import { MillraceError } from '../../core/errors.ts'
import { demandOf, ioDemandOf, roundMemory, withSize } from '../../core/tasks/demand.ts'
import type { Demand, IoWishes } from '../../core/tasks/demand.ts'
import { Implementation } from '../../core/tasks/task.ts'
import type { Kind } from '../../core/tasks/task.ts'
import { tidyLabel } from '../../core/tasks/label.ts'
import { messageOf } from '../../general/thrown.ts'
import { evaluateBandwidth } from './bandwidth.ts'
import type { Definition } from '../definition.ts'
import { fromEnvironment } from './environment.ts'
import { evaluate } from './options.ts'
import type { CommonOptions } from './options.ts'

type Options = CommonOptions<readonly unknown[]>

const fixed = new WeakMap<Options, Demand>()

/** What a call asks of its node. Functions of the arguments are evaluated per call, the rest once. */
export function buildDemand(definition: Definition, options: Options, args: readonly unknown[]): Demand {
  const known = fixed.get(options)
  if (known) return known
  const what = `task ${definition.name}`
  try {
    return computeDemand(what, options, args)
  } catch (error) {
    throw overFuture(what, error)
  }
}

/** The core's view of versions of a task that came after the first. */
export function addVariants({ implementations }: Kind, definition: Definition): void {
  for (const { name, options } of definition.variants.slice(implementations.length)) {
    implementations.push(new Implementation(name, buildDemand(definition, options, [])))
  }
}

/** A constraint is a function of what is given: what is still a future has no value at the call. */
function overFuture(what: string, error: unknown): unknown {
  if (!(error instanceof MillraceError) || error.code !== 'MR_NOT_AWAITED') return error
  return new MillraceError(
    error.code,
    `${what}: a constraint is computed from an argument that is a future`,
    {
      hint: 'Await the argument before the call, or compute the constraint from the others.',
      cause: error,
    },
  )
}

function computeDemand(what: string, options: Options, args: readonly unknown[]): Demand {
  const cpus = options.io ? 0 : (evaluate(what, 'cpus', options.cpus, args) ?? 1)
  let memory = evaluate(what, 'memory', options.memory, args) ?? 0
  const { bandwidth, size } = options
  const gpus = evaluate(what, 'gpus', options.gpus, args) ?? 0
  const varies = [options.cpus, options.memory, options.tags, options.gpus, bandwidth, size].some(isFunction)
  if (typeof options.memory === 'function' && roundMemory(memory) <= totalmem()) memory = roundMemory(memory)
  const tags = tagsOf(what, options, args)
  const demand = asksStorage(options)
    ? storageDemand(storageOf(what, options, args), cpus, memory, tags, gpus)
    : demandOf(cpus, memory, tags, false, null, gpus, options.spread ?? null)
  if (!varies) fixed.set(options, demand)
  return demand
}

const isFunction = (option: unknown): boolean => typeof option === 'function'

const asksStorage = ({ io, bandwidth, size, direction, storage }: Options): boolean =>
  io === true || [bandwidth, size, direction, storage].some(option => option !== undefined)

function storageOf(what: string, options: Options, args: readonly unknown[]) {
  const { storage, direction } = options
  const size = evaluate(what, 'size', options.size, args)
  return {
    bandwidth: evaluateBandwidth(what, options.bandwidth, args),
    size,
    isComputed: isFunction(options.size),
    direction: direction ?? null,
    device: storage?.startsWith('$') ? fromEnvironment(what, 'storage', storage.slice(1)) : (storage ?? null),
  }
}

/** Each demand has a queue of its own: sizes that are computed per call share those of rounded ones. */
function storageDemand(
  { isComputed, ...wishes }: IoWishes & { isComputed: boolean },
  cpus: number,
  memory: number,
  tags: readonly string[],
  gpus: number,
): Demand {
  const { size } = wishes
  if (!isComputed || size == null) return ioDemandOf(wishes, cpus, memory, tags, gpus)
  return withSize(ioDemandOf({ ...wishes, size: roundMemory(size) }, cpus, memory, tags, gpus), size)
}

function tagsOf(what: string, { tags }: Options, args: readonly unknown[]): readonly string[] {
  const value = typeof tags === 'function' ? tags(...args) : tags
  const list = value === undefined ? [] : typeof value === 'string' ? [value] : value
  for (const tag of list) {
    if (typeof tag !== 'string')
      throw new MillraceError('MR_OPTION', `${what}: tag ${String(tag)} is not a string`)
  }
  return list.map(tag => (tag.startsWith('$') ? (process.env[tag.slice(1)] ?? tag) : tag))
}

export function priorityOf(definition: Definition, args: readonly unknown[]): number {
  const { priority } = definition.options
  if (priority === undefined) return 0
  const what = `task ${definition.name}`
  let value: unknown = priority
  try {
    if (typeof priority === 'function') value = priority(...args)
  } catch (error) {
    throw overFuture(what, error)
  }
  if (typeof value !== 'number' || Number.isNaN(value)) {
    throw new MillraceError('MR_OPTION', `${what}: priority is ${String(value)}, which is not a number`)
  }
  return value
}

/** What tells the task from others of its kind; nothing where that depends on a future. */
export function labelOf(definition: Definition, args: readonly unknown[]): string {
  const { label } = definition.options
  if (label === undefined) return ''
  let text: unknown
  try {
    text = label(...args)
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'MR_NOT_AWAITED') return ''
    throw new MillraceError('MR_OPTION', `task ${definition.name}: label threw: ${messageOf(error)}`, {
      cause: error,
    })
  }
  return typeof text === 'string' || typeof text === 'number' ? tidyLabel(String(text)) : ''
}

/** What a call asks for, besides its data. */
export interface Wishes {
  readonly demand: Demand
  readonly priority: number
  readonly label: string
  /** The node that it was assigned to, if the graph was divided among nodes. */
  readonly near?: number
}

export const wishesOf = (definition: Definition, args: readonly unknown[]): Wishes => ({
  demand: buildDemand(definition, definition.variants[0]?.options ?? {}, args),
  priority: priorityOf(definition, args),
  label: labelOf(definition, args),
})

/** What `key` says about a call. */
export function extraKeyOf(definition: Definition, args: readonly unknown[]): string {
  const { key } = definition.options
  const what = `task ${definition.name}`
  let value: unknown = key
  try {
    if (typeof key === 'function') value = key(...args)
  } catch (error) {
    throw overFuture(what, error)
  }
  if (typeof value !== 'string' && typeof value !== 'number') {
    throw new MillraceError(
      'MR_OPTION',
      `${what}: key is ${String(value)}, which is neither a text nor a number`,
    )
  }
  return JSON.stringify(value)
}

/** Attempts after the first. */
export function retriesOf({ options }: Definition): number {
  return options.retries ?? (options.onFailure === 'retry' ? 2 : 0)
}
