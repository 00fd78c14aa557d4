import { Pattern } from './pattern.ts'
import type { Wildcards } from './pattern.ts'

/** Values of a wildcard: one or several. */
type Values = string | number | readonly (string | number)[]

/**
 * All paths that come of a pattern with these values, in all combinations:
 *
 *     expand('out/{name}-{part}.txt', { name: ['a', 'b'], part: [1, 2] })
 *
 * A list of wildcards, as `wildcards` gives it, is taken as it is.
 */
export function expand(
  pattern: string,
  values: Readonly<Record<string, Values>> | readonly Wildcards[],
): string[] {
  const parsed = new Pattern(pattern)
  if (isList(values)) return values.map(one => parsed.fill(one))
  const [only] = parsed.names
  if (only !== undefined && parsed.names.length === 1 && Array.isArray(values[only])) {
    return (values[only] as string[]).map(value => parsed.fill({ [only]: String(value) }))
  }
  let sets: Record<string, string>[] = [{}]
  for (const name of parsed.names) {
    const given = values[name]
    if (given === undefined) parsed.fill({})
    const list = [given as Values].flat()
    if (sets.length === 1) sets = list.map(value => ({ ...sets[0], [name]: String(value) }))
    else sets = sets.flatMap(set => list.map(value => ({ ...set, [name]: String(value) })))
  }
  return sets.map(set => parsed.fill(set))
}

const isList = (values: unknown): values is readonly Wildcards[] => Array.isArray(values)
