import { isThenable } from '../general/async.ts'
import { availableParallelism } from 'node:os'
import { MillraceError } from '../core/errors.ts'
import { currentClient } from './client.ts'
import { derivable, deriveDefinition } from './definition.ts'
import type { Definition } from './definition.ts'
import { Future } from './future.ts'

/** An array, or what is as good as one. */
type List = ArrayLike<unknown>

/**
 * Number of parts into which a list is split. Parts are tasks: a CPU takes the next one when it has ended one, so at the end none
 * waits for longer than one part takes.
 */
const PARTS = 256
const PARTS_PER_CPU = 16
/** As many numbers as go to a thread without memory of their own. */
const LARGEST_PART = 4000

/** The results of calls for each value of a list. Awaited it gives them; tasks take it as they take any future of a list. */
class MappedFuture extends Future<unknown[]> {
  readonly #parts: readonly unknown[]
  /** Each part is a list; else each is one result. */
  readonly #areLists: boolean

  constructor(definition: Definition, parts: readonly unknown[], areLists: boolean) {
    super(() => call(definition, 'list', [parts, areLists]).datum)
    this.#parts = parts
    this.#areLists = areLists
  }

  override async wait(): Promise<unknown[]> {
    // `waitOn` puts values in the place of the futures.
    const parts = (await currentClient().waitOn(this.#parts.map(part => copyOf(part)))) as unknown[]
    return this.#areLists ? joined(parts as List[]) : parts
  }

  remove(): void {
    for (const part of this.#parts.flat()) currentClient().remove(part)
  }
}

const copyOf = (part: unknown): unknown => (Array.isArray(part) ? [...(part as unknown[])] : part)

/** The list, if it is one that `map` gave: its parts are waited for, and need not be joined by a task. */
export const mappedList = (value: unknown): Promise<unknown[]> | null =>
  value instanceof MappedFuture ? value.wait() : null

export const removeMapped = (value: unknown): boolean => {
  if (!(value instanceof MappedFuture)) return false
  value.remove()
  return true
}

/** Calls the task for each value of a list, with the same further arguments; see `TaskFunction`. */
export function mapCalls(definition: Definition, list: unknown, rest: readonly unknown[]): Future<unknown[]> {
  if (definition.stream) {
    throw new MillraceError('MR_OPTION', `${definition.name}.map: a generator cannot be mapped`, {
      hint: 'Call it for each value; each call gives a stream.',
    })
  }
  if (definition.returnsOf) {
    const what = `${definition.name}.map: a task whose \`returns\` is a function cannot be mapped`
    throw new MillraceError('MR_OPTION', what, { hint: 'Call it for each value.' })
  }
  if (list instanceof Future) return call(definition, 'split', [list, ...rest]) as Future<unknown[]>
  if (!isList(list)) {
    throw new MillraceError('MR_OPTION', `${definition.name}.map needs a list, and got ${typeof list}`, {
      hint: 'Give an array, a typed array, or a future of one.',
    })
  }
  const client = currentClient()
  if (!isPlain(definition) || client.callsOneByOne) {
    const ones = Array.from(list, item => client.call(definition, [item, ...rest]))
    return new MappedFuture(definition, ones, false)
  }
  const size = sizeOfParts(list.length)
  const parts: Future<unknown>[] = []
  for (let from = 0; from < list.length; from += size) {
    const values = packed(list, from, Math.min(list.length, from + size))
    parts.push(call(definition, 'part', [values, from, ...rest]))
  }
  return new MappedFuture(definition, parts, true)
}

function sizeOfParts(length: number): number {
  const parts = Math.max(PARTS, availableParallelism() * PARTS_PER_CPU)
  return Math.min(LARGEST_PART, Math.ceil(length / parts))
}

const call = (definition: Definition, suffix: string, args: readonly unknown[]): Future<unknown> =>
  currentClient().call(deriveDefinition(definition, suffix) as Definition, args) as Future<unknown>

const isList = (value: unknown): value is List =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))

/** What it asks for is the same for all calls, and it only reads: then several calls can be one task. */
function isPlain({ form, readsOnly, returns, timeout, variants, options }: Definition): boolean {
  const { cpus, memory, tags, priority, io, bandwidth, size, storage } = options
  const varies = [cpus, memory, tags, priority].some(option => typeof option === 'function')
  const isStored = [bandwidth, size, storage].some(option => option !== undefined)
  const isFunction = form === 'function' && returns === 0 && variants.length === 1
  return isFunction && readsOnly && timeout === 0 && !varies && !io && !isStored
}

// --- numbers, which most long lists are made of, go as one block of memory ---

function packed(list: List, from: number, to: number): List {
  if (ArrayBuffer.isView(list)) return (list as Float64Array).slice(from, to)
  const numbers = new Float64Array(to - from)
  for (let i = from; i < to; i++) {
    const value = list[i]
    if (typeof value !== 'number') return (list as unknown[]).slice(from, to)
    numbers[i - from] = value
  }
  return numbers
}

function joined(parts: readonly List[]): unknown[] {
  const all: unknown[] = []
  for (const part of parts) for (let i = 0; i < part.length; i++) all.push(part[i])
  return all
}

// --- what runs in threads ---

/** A value that fails is tried again by a task of its own, where its definition says what a failure means. */
const hasOwnFailures = ({ options }: Definition): boolean =>
  (options.retries ?? 0) > 0 || options.onFailure === 'retry' || options.onFailure === 'ignore'

function runPart(base: Definition, list: List, rest: readonly unknown[]): unknown {
  const run = base.variants[0]?.run as Function
  const results: unknown[] = []
  for (let i = 0; i < list.length; i++) {
    const result: unknown = run(list[i], ...rest)
    if (isThenable(result)) return runOn(base, list, rest, results, result)
    results.push(result)
  }
  return packed(results, 0, results.length)
}

/** One after the other, from a value on that is a promise. */
async function runOn(
  base: Definition,
  list: List,
  rest: readonly unknown[],
  results: unknown[],
  first: PromiseLike<unknown> | null,
): Promise<unknown> {
  const run = base.variants[0]?.run as Function
  for (let i = results.length; i < list.length; i++) {
    try {
      const result: unknown = first ?? run(list[i], ...rest)
      first = null
      results.push(await result)
    } catch (error) {
      first = null
      if (!hasOwnFailures(base)) throw error
      results.push(currentClient().call(base, [list[i], ...rest]))
    }
  }
  if (results.some(result => result instanceof Future)) await currentClient().waitOn(results)
  return packed(results, 0, results.length)
}

derivable('part', base => {
  const { cpus, memory, tags, priority, onFailure } = base.options
  const run = base.variants[0]?.run
  const isAsync = run?.constructor.name === 'AsyncFunction' || hasOwnFailures(base)
  return {
    name: `${base.name}.map`,
    params: null,
    options: {
      ...(cpus !== undefined && { cpus }),
      ...(memory !== undefined && { memory }),
      ...(tags !== undefined && { tags }),
      ...(priority !== undefined && { priority }),
      ...(onFailure === 'cancelSuccessors' && { onFailure }),
      label: (...[list, from]: readonly unknown[]) =>
        `[${String(from)}..${(from as number) + (list as List).length - 1}]`,
    },
    // Only in a function of this form can tasks be called later than at its beginning.
    run: isAsync
      ? async (list: List, _from: number, ...rest: unknown[]) => runOn(base, list, rest, [], null)
      : (list: List, _from: number, ...rest: unknown[]) => runPart(base, list, rest),
  }
})

/** A list that is not known yet is split when it is there. */
derivable('split', base => ({
  name: `${base.name}.map`,
  params: null,
  options: {},
  run: async (list: unknown, ...rest: unknown[]) => mapCalls(base, list, rest),
}))

derivable('list', base => ({
  name: `${base.name}.map`,
  params: null,
  options: {},
  run: (parts: List[], areLists: boolean) => (areLists ? joined(parts) : parts),
}))
