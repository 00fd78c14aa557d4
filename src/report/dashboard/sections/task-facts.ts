import type { DemandFacts } from '../../../core/events.ts'
import { formatBytes, plural } from '../../format.ts'
import { tell, type TaskEvent, type World } from '../../story/story-tell.ts'
import { clean } from '../../text.ts'
import type { RunModel } from '../state/run-model.ts'
import { inFolder } from './data.ts'
import type { FoundTask, TaskFacts, VersionFacts } from '../protocol.ts'

const SHOWN_VERSIONS = 50
const SHOWN_READERS = 8

/** One task, for the panel beside the timeline. Logs are added by those who can read files. */
export function taskFacts(model: RunModel, task: number): Omit<TaskFacts, 'logs'> | null {
  const { tasks } = model
  if (!tasks.has(task)) return null
  const kind = tasks.kinds.get(task)
  const node = tasks.nodes.get(task)
  const device = tasks.devices.get(task)
  const parent = tasks.parents.get(task)
  const demand = model.demands.get(tasks.demands.get(task))
  const defined = model.kinds.get(kind)
  const versions = (list: number[]): VersionFacts[] =>
    [...new Set(list)].slice(0, SHOWN_VERSIONS).map(version => versionFacts(model, version, task))
  const lane = tasks.lanes.get(task)
  const cpus = model.nodes[node]?.cpus ?? 0
  return {
    task,
    name: clean(model.taskName(task)),
    label: clean(tasks.labels.get(task) ?? ''),
    state: tasks.stateOf(task),
    kind,
    form: defined?.form ?? 'function',
    module: clean(placeOf(defined?.module ?? '', model)),
    group: nullable(tasks.groups.get(task), clean),
    priority: tasks.priorities.get(task) ?? 0,
    parent: parent < 0 ? null : { task: parent, name: clean(model.taskName(parent)) },
    submittedAt: known(tasks.submittedAt.get(task)),
    readyAt: known(tasks.readyAt.get(task)),
    startedAt: known(tasks.startedAt.get(task)),
    endedAt: known(tasks.endedAt.get(task)),
    attempt: tasks.attempts.get(task),
    place:
      node < 0
        ? null
        : `${clean(model.nodes[node]?.name ?? `node ${node}`)}, ${lane < cpus ? `CPU ${lane}` : `I/O executor ${lane - cpus}`}`,
    device: device < 0 ? null : clean(model.storage.devices[device]?.facts.name ?? ''),
    demand: demand ? demandText(demand) : null,
    arguments: nullable(tasks.arguments.get(task) ?? (tasks.arguments.size > 0 ? 'none' : undefined), clean),
    story: tell(eventsOf(model, task), worldOf(model)).map(clean),
    waits: nullable(model.waits.get(task), clean),
    inputs: versions(tasks.readsOf(task)),
    outputs: versions(tasks.writesOf(task)),
  }
}

/** The path of a module, as short as it goes. */
const placeOf = (module: string, { run }: RunModel): string =>
  inFolder(module.startsWith('file:') ? decodeURI(module.slice(7)) : module, run?.cwd ?? '')

const known = (time: number): number | null => (Number.isNaN(time) ? null : time)
const nullable = (text: string | undefined, of: (text: string) => string): string | null =>
  text === undefined ? null : of(text)

function demandText({ cpus, memory, tags, io, storage }: DemandFacts): string {
  const parts = [io ? 'I/O executor' : plural(cpus, 'CPU')]
  if (memory > 0) parts.push(formatBytes(memory))
  parts.push(...tags.map(clean))
  if (storage !== null) parts.push('storage')
  return parts.join(', ')
}

function versionFacts(model: RunModel, version: number, asking: number): VersionFacts {
  const { versions } = model
  const maker = versions.makers.get(version)
  return {
    version,
    name: clean(inFolder(versions.nameOf(version), model.run?.cwd ?? '')),
    bytes: versions.bytes.get(version),
    maker: maker < 0 || maker === asking ? null : { task: maker, name: clean(model.taskName(maker)) },
    madeAt: known(versions.madeAt.get(version)),
    readers: versions
      .readersOf(version, SHOWN_READERS)
      .filter(task => task !== asking)
      .map(task => ({ task, name: clean(model.taskName(task)) })),
  }
}

/** The events of a task, as far as they are kept; those that come by the million are made again from the columns. */
function eventsOf(model: RunModel, task: number): TaskEvent[] {
  const { tasks, versions } = model
  const reads = tasks.readsOf(task)
  const writes = tasks.writesOf(task)
  const files = [...reads, ...writes].flatMap(version => {
    const path = versions.paths.get(version)
    return path === undefined ? [] : [{ version, path }]
  })
  const parent = tasks.parents.get(task)
  const events: TaskEvent[] = [
    {
      type: 'submitted',
      at: tasks.submittedAt.get(task),
      task,
      kind: tasks.kinds.get(task),
      parent: parent < 0 ? null : parent,
      group: tasks.groups.get(task) ?? null,
      priority: tasks.priorities.get(task) ?? 0,
      reads,
      writes,
      files,
      ...(tasks.labels.has(task) ? { label: tasks.labels.get(task) as string } : {}),
    },
  ]
  const told = tasks.toldOf(task)
  const attempt = tasks.attempts.get(task)
  const readyAt = tasks.readyAt.get(task)
  const startedAt = tasks.startedAt.get(task)
  const isToldOften = told.some(({ type }) => type === 'failed' || type === 'returned' || type === 'blocked')
  if (!Number.isNaN(readyAt) && !isToldOften) events.push({ type: 'ready', at: readyAt, task })
  const started = !Number.isNaN(startedAt) && !told.some(({ type }) => type === 'started')
  if (started && !told.some(({ type }) => type === 'resumed')) {
    const place = { node: tasks.nodes.get(task), lane: tasks.lanes.get(task) }
    events.push({ type: 'started', at: startedAt, task, attempt, ...place, cpus: cpusOf(model, task) })
  }
  events.push(...told)
  if (tasks.stateOf(task) === 'done' && !told.some(({ type }) => type === 'finished' || type === 'kept'))
    events.push({ type: 'finished', at: tasks.endedAt.get(task), task, attempt })
  const order = (event: TaskEvent): number => (event.type === 'submitted' ? -1 : event.at)
  return events.toSorted((a, b) => order(a) - order(b))
}

function cpusOf(model: RunModel, task: number): number {
  const demand = model.demands.get(model.tasks.demands.get(task))
  return demand ? (demand.io ? 0 : demand.cpus) : 1
}

function worldOf(model: RunModel): World {
  const { versions } = model
  return {
    runEndedAt: model.statistics.outcome === null ? null : model.statistics.elapsed,
    hasNodes: model.nodes.length > 1,
    nodeName: node => model.nodes[node]?.name ?? `node ${node}`,
    deviceName: device => model.storage.devices[device]?.facts.name ?? `device ${device}`,
    nameOf: task => model.taskName(task),
    makersOf: version => (versions.makers.get(version) < 0 ? [] : [versions.makers.get(version)]),
    madeAt: version => known(versions.madeAt.get(version)),
    bytesOf: version => versions.bytes.get(version),
  }
}

/** Tasks by number, by name, by state or by a part of a file's path. */
export function findTasks(model: RunModel, query: string, limit = 50): FoundTask[] {
  const { tasks, versions } = model
  const found = new Set<number>()
  const add = (task: number): boolean => {
    if (tasks.has(task)) found.add(task)
    return found.size >= limit
  }
  const text = query.trim().toLowerCase()
  const number = /^(?:.*#)?(\d+)$/.exec(text)
  if (number) add(Number(number[1]))
  const state = /^state:(\w+)$/.exec(text)?.[1]
  const kinds = new Set(
    [...model.kinds.values()].filter(({ name }) => name.toLowerCase().includes(text)).map(kind => kind.kind),
  )
  for (let task = 0; task <= tasks.last && found.size < limit && text !== ''; task++) {
    const isMeant = state === undefined ? kinds.has(tasks.kinds.get(task)) : tasks.stateOf(task) === state
    if (isMeant && add(task)) break
  }
  if (text.length > 1 && state === undefined) {
    for (const [version, path] of versions.paths) {
      if (found.size >= limit) break
      if (!path.toLowerCase().includes(text)) continue
      const maker = versions.makers.get(version)
      if (maker >= 0) add(maker)
      else for (const reader of versions.readersOf(version, 1)) add(reader)
    }
  }
  return [...found].map(task => ({ task, name: clean(model.taskName(task)), state: tasks.stateOf(task) }))
}
