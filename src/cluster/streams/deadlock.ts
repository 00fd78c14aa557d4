import type { FileLine, Snapshot, WaitLine } from '../../stream/board/snapshot.ts'

/** A node as it was seen last. */
export interface Seen {
  readonly name: string
  readonly snapshot: Snapshot
  /** Instances that have not ended, by step. */
  readonly running: ReadonlyMap<string, number>
  /** The user starts them: some may not have begun. */
  readonly isByHand?: boolean
}

export interface Circle {
  /** The same as long as nothing moves. */
  readonly key: string
  readonly text: string
}

/** Milliseconds for which nothing may have moved. */
const LONG = 5000
/** Looks at each node in that time. */
const LOOKS = 3

/** Steps that wait for each other over several nodes, which no node can see alone. */
export class Deadlocks {
  #key = ''
  #since = 0
  #looks = 0

  /** Called after each look at all nodes; the sentence when it is certain. */
  look(nodes: readonly Seen[], now: number): string | null {
    const circle = circleOf(nodes)
    if (circle?.key !== this.#key) {
      this.#key = circle?.key ?? ''
      this.#since = now
      this.#looks = 0
      return null
    }
    this.#looks++
    const isCertain = circle && now - this.#since >= LONG && this.#looks >= LOOKS * nodes.length
    return isCertain ? circle.text : null
  }
}

/**
 * Everything that is blocked is assumed to stay so, then what waits for a step that can move is freed, until nothing changes.
 * What remains waits for itself. Whatever may be on its way between nodes counts as a move.
 */
export function circleOf(nodes: readonly Seen[]): Circle | null {
  const homes = new Map<string, FileLine>()
  for (const { snapshot } of nodes)
    for (const file of snapshot.files) if (file.kind === 'file') homes.set(file.path, file)
  const waits = nodes.flatMap(({ name, snapshot }) => snapshot.waits.map(wait => ({ node: name, wait })))
  const running = new Set(nodes.flatMap(node => [...node.running.keys()]))
  const stuck = new Set([...running].filter(step => nodes.every(node => isBlocked(node, step))))
  for (let isChanged = true; isChanged;) {
    isChanged = false
    for (const { wait } of waits) {
      if (wait.step === null || !stuck.has(wait.step) || isHopeless(wait, homes, stuck, running)) continue
      stuck.delete(wait.step)
      isChanged = true
    }
  }
  const left = waits.filter(({ wait }) => wait.step !== null && stuck.has(wait.step))
  if (left.length === 0) return null
  return {
    key: left.map(({ node, wait }) => `${node} ${wait.pid} ${wait.path} ${wait.at}`).join('\n'),
    text: left.map(({ node, wait }) => `${wait.sentence} (on ${node})`).join('; '),
  }
}

function isBlocked({ snapshot, running, isByHand }: Seen, step: string): boolean {
  const left = running.get(step) ?? 0
  if (left === 0) return true
  const begun = snapshot.steps.find(({ name }) => name === step)?.running ?? 0
  if (isByHand === true && begun < left) return false
  const processes = snapshot.processes.filter(process => process.step === step)
  return (
    processes.length > 0 &&
    processes.every(({ blocked }) => blocked === true) &&
    snapshot.waits.some(wait => wait.step === step)
  )
}

function isHopeless(
  wait: WaitLine,
  homes: ReadonlyMap<string, FileLine>,
  stuck: ReadonlySet<string>,
  running: ReadonlySet<string>,
): boolean {
  const home = homes.get(wait.path)
  if (home?.state === 'committed' || home?.state === 'failed') return false
  if (wait.for === 'exists' && home?.state === 'growing') return false
  if (wait.for === 'data' && (home?.written ?? 0) > (wait.at ?? 0)) return false
  const producers = (wait.on ?? []).filter(step => running.has(step))
  return producers.length > 0 && producers.every(step => stuck.has(step))
}
