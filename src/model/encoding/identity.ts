/**
 * Which object is which, when a task has written a value.
 *
 * The objects of a value that tasks write are numbered in the order in which the encoding meets them, and the program
 * keeps that list. What comes back says of each object which number it had, or that it is new; where the order is still
 * the same, nothing has to be said. So objects that a task moved are the program's own ones again, cycles and shared
 * parts lead to them, and what a task took out of the value has what the task did to it.
 */
export interface Graph {
  /** In the order of the encoding. */
  readonly objects: readonly object[]
  /** The number that each has for the program, -1 when it is new. Null: its place in the list. */
  readonly origins: readonly number[] | null
}

/** Whether those that were known come first, in their order: then their places say which they are. */
export function isSameOrder(seen: ReadonlyMap<object, number>, { objects, origins }: Graph): boolean {
  if (origins || seen.size < objects.length) return false
  let i = 0
  for (const object of seen.keys()) {
    if (i === objects.length) return true
    if (object !== objects[i++]) return false
  }
  return true
}

/** The numbers of those that the program has. */
export function originsOf({ objects, origins }: Graph): Map<object, number> {
  const numbers = new Map<object, number>()
  objects.forEach((object, i) => {
    const number = origins ? (origins[i] as number) : i
    if (number >= 0) numbers.set(object, number)
  })
  return numbers
}
