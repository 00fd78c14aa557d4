import { MillraceError } from '../core/errors.ts'
import type { Future } from './future.ts'
import type { TaskFunction } from './task.ts'

/**
 * Combines all values of a list by a task of two parameters, in a tree: each call begins when its two values are there,
 * so as many run at once as the data allow. Values keep their order; the task has to be associative.
 *
 *     export const add = task({}, (a: number, b: number) => a + b)
 *     const total = await reduce(add, parts.map(part => count(part)))
 */
export function reduce<T>(
  combine: TaskFunction<[T, T], Future<T>>,
  list: readonly (T | Future<T>)[],
): Future<T> | T {
  if (list.length === 0) {
    throw new MillraceError('MR_OPTION', 'reduce: the list is empty, so there is nothing to return', {
      hint: 'Put the value of an empty list into it, such as 0 for a sum.',
    })
  }
  let level: (T | Future<T>)[] = [...list]
  while (level.length > 1) {
    const next: (T | Future<T>)[] = []
    for (let i = 0; i + 1 < level.length; i += 2) {
      next.push((combine as (a: unknown, b: unknown) => Future<T>)(level[i], level[i + 1]))
    }
    if (level.length % 2 === 1) next.push(level.at(-1) as T | Future<T>)
    level = next
  }
  return level[0] as T | Future<T>
}
