import { MillraceError } from '../../core/errors.ts'
import type { Spread } from '../../core/tasks/demand.ts'
import { parseCount } from '../../general/units.ts'
import { evaluate } from '../options/options.ts'
import type { Constraint } from '../types.ts'

/** Between how many ranks the runtime may choose, by what is free and by measured times. */
export interface ProcessRange {
  readonly min: number
  readonly max: number
}

export const wrong = (message: string, hint: string): MillraceError =>
  new MillraceError('MR_OPTION', message, { hint })

/** How many processes to try: of a range the powers of two between its ends, and these. */
export function countsOf(what: string, processes: unknown): (Constraint<readonly unknown[]> | number)[] {
  if (processes === undefined) throw wrong(`${what} does not say how many processes`, 'Write processes: 4.')
  if (typeof processes !== 'object' || processes === null)
    return [processes as Constraint<readonly unknown[]>]
  const { min, max } = processes as ProcessRange
  if (!Number.isInteger(min) || !Number.isInteger(max) || min < 1 || max < min) {
    throw wrong(`${what}: processes is from ${min} to ${max}`, 'Write for instance { min: 1, max: 8 }.')
  }
  const counts = [min]
  for (let count = 1; count < max; count *= 2) if (count > min) counts.push(count)
  return max > min ? [...counts, max] : counts
}

export function cpusOf(
  what: string,
  count: Constraint<readonly unknown[]>,
  each: number,
): Constraint<readonly unknown[]> {
  const parsed = typeof count === 'function' ? null : parseCount(count)
  if (parsed !== null && parsed >= 1) return parsed * each
  if (typeof count !== 'function' && !(typeof count === 'string' && count.startsWith('$'))) {
    throw wrong(`${what}: processes is '${String(count)}'`, 'Write a whole number from 1.')
  }
  return (...args) => {
    const found = evaluate(what, 'cpus', count, args) ?? 1
    if (Number.isInteger(found)) return found * each
    throw wrong(`${what}: processes is ${found}`, 'Write a whole number from 1.')
  }
}

/** `perNode` ranks with `cpus` CPUs each are on one node at most. */
export function spreadOf(what: string, perNode: number | undefined, cpus: number): Spread {
  if (perNode === undefined) return { unit: cpus, perNode: Number.MAX_SAFE_INTEGER }
  if (Number.isInteger(perNode) && perNode >= 1) return { unit: cpus, perNode: perNode * cpus }
  throw wrong(`${what}: perNode is ${String(perNode)}`, 'Write a whole number from 1.')
}
