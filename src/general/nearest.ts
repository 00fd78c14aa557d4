/** The candidate that a mistyped word most likely means, or null when none is near. Short words allow fewer mistakes. */
export function nearest(written: string, candidates: Iterable<string>): string | null {
  const { length } = written
  const allowed = length < 5 ? Math.min(1, length - 1) : Math.min(3, Math.floor(length / 3))
  let best: string | null = null
  let least = allowed + 1
  for (const candidate of candidates) {
    const distance = editDistance(written.toLowerCase(), candidate.toLowerCase(), least)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** Insertions, deletions, replacements and swaps of neighbours; gives up above `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = (previous[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let cost = Math.min(replace, (previous[j] as number) + 1, (row[j - 1] as number) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (before[j - 2] as number) + 1)
      }
      row.push(cost)
    }
    before = previous
    previous = row
  }
  return previous[b.length] as number
}
