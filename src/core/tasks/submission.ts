import { pathIn } from '../data/datum.ts'
import type { Access } from '../data/datum.ts'
import { MillraceError } from '../errors.ts'
import type { AttemptSteps, Observer, RunEvent, TaskUsage } from '../events.ts'
import type { Node } from '../schedule/machine.ts'
import type { Demand } from './demand.ts'
import type { Task, TaskSpec } from './task.ts'

/** Says what of the demand no node has. */
export function refuse({ kind, demand }: TaskSpec, nodes: readonly Node[]): never {
  const most = (pick: (node: Node) => number): number => Math.max(...nodes.map(pick))
  const { cpus, memory, tags, gpus } = demand
  let wrong =
    tags.length > 0
      ? `tags [${tags.join(', ')}], but no node has them all together with ${cpus} CPUs and ${memory} bytes of memory`
      : `${cpus} CPUs and ${memory} bytes of memory, but no node has both`
  if (memory > most(node => node.memory)) {
    wrong = `${memory} bytes of memory, but the largest node has ${most(node => node.memory)}`
  }
  if (gpus > most(node => node.gpus.count)) {
    wrong = `${gpus} GPUs, but no node has more than ${most(node => node.gpus.count)}`
  }
  const { spread } = demand
  if (spread && (cpus > spread.perNode || nodes.some(node => node.sharesRanks))) {
    const each = spread.perNode >= Number.MAX_SAFE_INTEGER ? '' : ` with at most ${spread.perNode} on a node`
    const sharing = nodes.filter(node => node.sharesRanks)
    const those = (sharing.length > 0 ? sharing : nodes.slice(0, 1)).map(node => node.cpus).join(' + ')
    wrong = `${cpus} CPUs${each}, but the nodes over which its ranks can be spread have ${those}`
  } else if (cpus > most(node => node.cpus)) {
    wrong = `${cpus} CPUs, but the largest node has ${most(node => node.cpus)}`
  }
  throw new MillraceError('MR_CONSTRAINT', `task ${kind.name} asks for ${wrong}`)
}

/** `told`: the demands that the observer knows. */
export function tellSubmitted(observer: Observer, task: Task, told: Set<Demand>, now: number): void {
  // Sizes that are computed per call are rounded, or there would be as many demands as tasks.
  const demand = task.demand.alike
  const isTold = isPlain(demand)
  if (!isTold && !told.has(demand)) {
    const { id, cpus, memory, tags, io, storage, gpus } = demand
    const facts = { cpus, memory, tags, io, storage, ...(gpus > 0 && { gpus }) }
    told.add(demand)
    observer({ type: 'demand-defined', at: now, demand: id, ...facts })
  }
  const event = submittedEvent(task, now)
  if (!isTold) event.demand = demand.id
  observer(event)
}

function submittedEvent(task: Task, now: number): Extract<RunEvent, { type: 'submitted' }> {
  const reads = idsOf(task.accesses, 'read')
  const writes = idsOf(task.accesses, 'write')
  let files: { version: number; path: string }[] | undefined
  for (const access of task.accesses) {
    const { read, write } = access
    const path = pathIn(access)
    if (path === null) continue
    files ??= []
    if (read) files.push({ version: read.id, path })
    if (write) files.push({ version: write.id, path })
  }
  const event: Extract<RunEvent, { type: 'submitted' }> = {
    type: 'submitted',
    at: now,
    task: task.id,
    kind: task.kind.id,
    parent: task.parent?.id ?? null,
    group: task.group.name === '' ? null : task.group.name,
    priority: task.priority,
    reads,
    writes,
  }
  if (files) event.files = files
  if (task.label !== '') event.label = task.label
  return event
}

/** One CPU and nothing else: most tasks ask for no more, and nothing has to be said about it. */
const isPlain = ({ cpus, memory, tags, storage, gpus }: Demand): boolean =>
  cpus === 1 && memory === 0 && gpus === 0 && storage === null && tags.length === 0

const NONE: number[] = []

/** Literals where there is one or none, which is nearly always: there are millions. */
function idsOf(accesses: readonly Access[], which: 'read' | 'write'): number[] {
  if (accesses.length === 1) {
    const version = (accesses[0] as Access)[which]
    return version ? [version.id] : NONE
  }
  const ids: number[] = []
  for (const access of accesses) {
    const version = access[which]
    if (version) ids.push(version.id)
  }
  return ids
}

export function startedEvent(task: Task, cpus: number, now: number): RunEvent {
  const event: RunEvent = {
    type: 'started',
    at: now,
    task: task.id,
    attempt: task.attempt,
    node: task.node,
    lane: task.lane,
    cpus,
  }
  if (task.kind.implementations.length > 1) event.implementation = task.implementation.name
  if (task.io?.device) event.device = task.io.device.index
  return event
}

/** What is known of an attempt that ended well, beside its time. */
export interface Measured {
  readonly usage?: TaskUsage | null | undefined
  readonly steps?: AttemptSteps | null | undefined
  /** It made nothing, because the files in place are right. */
  readonly kept?: boolean | undefined
}

export function finishedEvent({ id, attempt }: Task, now: number, measured?: Measured): RunEvent {
  if (measured?.steps && !measured.usage && !measured.kept)
    return { type: 'finished', at: now, task: id, attempt, steps: measured.steps }
  const event: RunEvent = { type: 'finished', at: now, task: id, attempt }
  if (measured?.usage) event.usage = measured.usage
  if (measured?.steps) event.steps = measured.steps
  if (measured?.kept) event.kept = true
  return event
}

export function cancelledEvent({ id, cause, reason, why }: Task, at: number): RunEvent {
  const event: RunEvent = { type: 'cancelled', at, task: id, cause: cause?.id ?? null, reason }
  return why ? { ...event, why: why.kind } : event
}
