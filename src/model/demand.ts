import { totalmem } from 'node:os'
import { MillraceError } from '../core/errors.ts'
import { demandOf, ioDemandOf, roundMemory, withSize } from '../core/demand.ts'
import type { Demand, IoWishes } from '../core/demand.ts'
import { evaluateBandwidth } from './bandwidth.ts'
import type { Definition } from './definition.ts'
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
  const cpus = options.io ? 0 : (evaluate(what, 'cpus', options.cpus, args) ?? 1)
  let memory = evaluate(what, 'memory', options.memory, args) ?? 0
  const { bandwidth, size } = options
  const varies = [options.cpus, options.memory, options.tags, bandwidth, size].some(isFunction)
  if (typeof options.memory === 'function' && roundMemory(memory) <= totalmem()) memory = roundMemory(memory)
  const tags = tagsOf(what, options, args)
  const demand = asksStorage(options)
    ? storageDemand(storageOf(what, options, args), cpus, memory, tags)
    : demandOf(cpus, memory, tags)
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
): Demand {
  const { size } = wishes
  if (!isComputed || size == null) return ioDemandOf(wishes, cpus, memory, tags)
  return withSize(ioDemandOf({ ...wishes, size: roundMemory(size) }, cpus, memory, tags), size)
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
  const value = typeof priority === 'function' ? priority(...args) : priority
  if (typeof value !== 'number' || Number.isNaN(value)) {
    throw new MillraceError(
      'MR_OPTION',
      `task ${definition.name}: priority is ${String(value)}, which is not a number`,
    )
  }
  return value
}

/** Attempts after the first. */
export function retriesOf({ options }: Definition): number {
  return options.retries ?? (options.onFailure === 'retry' ? 2 : 0)
}
