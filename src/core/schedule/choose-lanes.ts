import type { Lane } from './machine.ts'

/**
 * The lanes of a task with several CPUs: `prefer` is one of them, if it is given. They are in one memory domain where that
 * has enough, the one with the least to spare; else the domains with the most free lanes are used up one by one. Lanes
 * that a blocked task waits for come last.
 */
export function chooseLanes(
  lanes: readonly Lane[],
  domains: readonly number[] | null,
  count: number,
  prefer: Lane | null,
): Lane[] {
  const idle = lanes.filter(lane => lane.idle && lane !== prefer)
  idle.sort((a, b) => Number(b.free) - Number(a.free))
  const needed = count - (prefer ? 1 : 0)
  const first = prefer ? [prefer] : []
  if (!domains) return [...first, ...idle.slice(0, needed)]
  const domainOf = ({ index }: Lane): number => domains[index] ?? 0
  const byDomain = new Map<number, Lane[]>()
  for (const lane of idle) {
    const known = byDomain.get(domainOf(lane))
    if (known) known.push(lane)
    else byDomain.set(domainOf(lane), [lane])
  }
  const groups = [...byDomain.entries()]
  const own = prefer && domainOf(prefer)
  const enough = groups
    .filter(([domain, free]) => free.length >= needed && (own === null || own === domain))
    .sort(([, a], [, b]) => a.length - b.length)[0]
  if (enough) return [...first, ...enough[1].slice(0, needed)]
  groups.sort(([a, x], [b, y]) => Number(b === own) - Number(a === own) || y.length - x.length)
  return [...first, ...groups.flatMap(([, free]) => free).slice(0, needed)]
}
