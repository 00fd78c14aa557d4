import type { RunEvent } from '../../../core/events.ts'
import { clean } from '../../text.ts'
import { valuesOf } from '../state/streams.ts'
import type { NodeHistory, RunModel } from '../state/run-model.ts'
import type { DataSection, NodeRow, NodesSection, StreamRow, StreamsSection } from '../protocol.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

const SHOWN_VERSIONS = 40
const SHOWN_HOLDERS = 4
const SHOWN_STREAMS = 100

/** The largest data that are still there, and the tasks that keep them. */
export function dataSection(model: RunModel, now: number): DataSection {
  const { versions, tasks } = model
  const alive: number[] = []
  const files = { count: 0, bytes: 0 }
  for (const version of versions.sized) {
    if (!versions.isAlive(version)) continue
    alive.push(version)
    if (versions.values.has(version)) continue
    files.count++
    files.bytes += versions.bytes.get(version)
  }
  alive.sort((a, b) => versions.bytes.get(b) - versions.bytes.get(a) || a - b)
  const taskRef = (task: number): { task: number; name: string } => ({
    task,
    name: clean(model.taskName(task)),
  })
  return {
    largest: alive.slice(0, SHOWN_VERSIONS).map(version => {
      const maker = versions.makers.get(version)
      const holders = versions.readersOf(version, 1000).filter(task => !isOver(tasks.stateOf(task)))
      const node = versions.values.get(version)
      return {
        version,
        name: clean(inFolder(versions.nameOf(version), model.run?.cwd ?? '')),
        bytes: versions.bytes.get(version),
        maker: maker < 0 ? null : taskRef(maker),
        holders: holders.slice(0, SHOWN_HOLDERS).map(taskRef),
        holderCount: holders.length,
        isValue: node !== undefined,
        place: node === undefined ? deviceOf(model, versions.devices.get(version)) : nodeOf(model, node),
      }
    }),
    files,
    values: { count: versions.values.size, bytes: versions.valueBytes, most: versions.mostValueBytes },
    madeBytes: model.statistics.bytesCommitted,
    intermediate: model.intermediate && {
      bytes: model.intermediate.bytes,
      limit: model.intermediate.limit,
      over: model.intermediate.over.points(now),
    },
  }
}

function deviceOf({ storage }: RunModel, device: number): string | null {
  const history = storage.devices[device]
  return history === undefined || history.isEmptied ? null : clean(history.facts.name)
}

const nodeOf = ({ nodes }: RunModel, node: number): string | null =>
  node < 0 ? null : clean(nodes[node]?.name ?? `node ${node}`)

/** Files of the run's own folder go by their path in it. */
export const inFolder = (path: string, cwd: string): string =>
  cwd !== '' && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path

const isOver = (state: string): boolean => ['done', 'failed', 'ignored', 'cancelled'].includes(state)

function measuredOf({ measured }: NodeHistory): NodeRow['measured'] {
  if (measured === null) return null
  const { rss, available, memory, load } = measured
  return { rss, available, memory, load }
}

export function nodesSection(model: RunModel, now: number): NodesSection {
  const name = (node: number): string => clean(model.nodes[node]?.name ?? `node ${node}`)
  const busyMs = model.busyMs(now)
  return {
    nodes: model.nodes.map((node, i) => ({
      name: clean(node.name),
      hasLeft: node.hasLeft,
      cpus: node.cpus,
      memory: node.memory,
      claimed: node.claimed,
      running: node.running,
      done: node.done,
      cpusBusy: node.cpusNow,
      busyShare: node.cpus > 0 && now > 0 ? Math.min(1, (busyMs[i] ?? 0) / (node.cpus * now)) : 0,
      busy: node.busy.points(now),
      measured: measuredOf(node),
    })),
    transfers: [...model.transfers.values()]
      .sort((a, b) => b.bytes - a.bytes || b.count - a.count)
      .slice(0, 100)
      .map(({ from, to, count, bytes }) => ({ from: name(from), to: name(to), count, bytes })),
  }
}

export function streamsSection(model: RunModel, now: number): StreamsSection {
  const rows: StreamRow[] = []
  const waits: string[] = []
  const isOver = model.statistics.outcome !== null
  for (const { latest, over } of model.streams.files.values()) {
    const points = over.points(now)
    for (const reader of latest.readers) if (reader.waits !== null && !isOver) waits.push(clean(reader.waits))
    const later = laterReaders(model, latest)
    if (!isOver && latest.state === 'growing')
      for (const reader of later)
        waits.push(`${reader} waits for the end of ${clean(latest.producers.join(', '))}`)
    rows.push({
      name: clean(inFolder(latest.path, model.run?.cwd ?? '')),
      state: isOver && latest.state === 'growing' ? 'cut off' : latest.state,
      producers: latest.producers.map(clean),
      consumers: [
        ...latest.readers.map(reader => ({
          name: clean(reader.name),
          waits: reader.waits !== null && !isOver,
        })),
        ...later.map(name => ({ name, waits: !isOver && latest.state === 'growing' })),
      ],
      frontier: latest.bytes,
      unit: 'bytes',
      rate: latest.state === 'growing' && !isOver ? lateRate(points.values) : 0,
      over: points,
    })
  }
  for (const generator of model.streams.generators.values()) {
    const values = valuesOf(generator)
    if (values === 0) continue
    const points = generator.over.points(now)
    const { stream, lastVersion } = generator
    const readers = new Set(
      [stream, lastVersion].flatMap(version =>
        version === null ? [] : model.versions.readersOf(version, 4),
      ),
    )
    const state = model.tasks.stateOf(generator.task)
    rows.push({
      name: clean(model.taskName(generator.task)),
      state: state === 'running' || state === 'blocked' ? 'growing' : state === 'done' ? 'committed' : state,
      producers: [clean(model.taskName(generator.task))],
      consumers: [...readers].map(task => ({
        name: clean(model.taskName(task)),
        waits: model.tasks.stateOf(task) === 'waiting',
      })),
      frontier: values,
      unit: 'values',
      rate: state === 'running' ? lateRate(points.values) : 0,
      over: points,
    })
  }
  rows.sort(
    (a, b) => Number(b.state === 'growing') - Number(a.state === 'growing') || b.frontier - a.frontier,
  )
  return {
    streams: rows.slice(0, SHOWN_STREAMS),
    leftOut: Math.max(0, rows.length - SHOWN_STREAMS) + model.streams.leftOut,
    waits,
  }
}

/** Tasks that will read the file when it is complete, and not while it grows. */
function laterReaders(model: RunModel, { path, readers }: Of<'stream'>): string[] {
  const version = model.versions.latestOf(path)
  if (version === undefined) return []
  return model.versions
    .readersOf(version, SHOWN_HOLDERS)
    .filter(task => model.tasks.stateOf(task) === 'waiting')
    .map(task => clean(model.taskName(task)))
    .filter(name => !readers.some(reader => clean(reader.name) === name))
}

/** Per second, over the last buckets. */
function lateRate(values: readonly number[]): number {
  const late = values.slice(-6, -1)
  return late.length === 0 ? 0 : (late.reduce((sum, value) => sum + value, 0) / late.length) * 1000
}
