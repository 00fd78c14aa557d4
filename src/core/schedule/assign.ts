/** A node that gets a part of the graph. */
export interface Receiver {
  readonly node: number
  /** Its share: parts are made for shares, so only nodes with equal ones can change places. */
  readonly share: number
}

/** Which node gets which part: the one that has most of what the tasks of the part read already. */
export function assignParts(
  receivers: readonly Receiver[],
  bytes: Iterable<readonly [part: number, node: number, bytes: number]>,
): number[] {
  const sums = new Map<string, { part: number; receiver: number; bytes: number }>()
  const indexOf = new Map(receivers.map(({ node }, i) => [node, i]))
  for (const [part, node, size] of bytes) {
    const receiver = indexOf.get(node)
    if (receiver === undefined || receivers[receiver]?.share !== receivers[part]?.share) continue
    const key = `${part} ${receiver}`
    const sum = sums.get(key)
    if (sum) sum.bytes += size
    else sums.set(key, { part, receiver, bytes: size })
  }
  const found = receivers.map(() => -1)
  const isTaken = receivers.map(() => false)
  const take = (part: number, receiver: number): void => {
    if (found[part] !== -1 || isTaken[receiver]) return
    found[part] = (receivers[receiver] as Receiver).node
    isTaken[receiver] = true
  }
  const best = [...sums.values()].sort(
    (a, b) => b.bytes - a.bytes || a.part - b.part || a.receiver - b.receiver,
  )
  for (const { part, receiver } of best) take(part, receiver)
  // What is left goes to what is left, each to one with its share: first its own.
  for (const part of receivers.keys()) take(part, part)
  for (const [part, { share }] of receivers.entries()) {
    if (found[part] !== -1) continue
    const free = receivers.findIndex((other, i) => !isTaken[i] && other.share === share)
    take(part, free)
  }
  return found
}
