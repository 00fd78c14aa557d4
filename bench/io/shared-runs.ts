/**
 * For cases that look at the same runs: the program is run once per round, and each view is given the results of the
 * rounds in turn.
 */
export function sharedRuns<T>(run: () => Promise<T>): (view: string) => Promise<T> {
  const results: T[] = []
  const taken = new Map<string, number>()
  return async view => {
    const at = taken.get(view) ?? 0
    const result = (results[at] ??= await run())
    taken.set(view, at + 1)
    return result
  }
}
