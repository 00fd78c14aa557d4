import type { RunEvent } from '../../core/events.ts'
import { clean } from '../text.ts'
import { Slicer, type Slice, type SliceOutcome } from './trace-slices.ts'
import { writeWhole } from './write-whole.ts'

/**
 * A trace for Paraver, in three files. `.prv` has the records, `.pcf` the words for their numbers, `.row` the names of the
 * lanes. A node is a Paraver task, a lane one of its threads; lanes of CPUs have a CPU, lanes of I/O tasks none. Types of
 * events are those of COMPSs' traces, so that its configurations open: the kind of the task that runs, and its number.
 *
 *     1:cpu:application:task:thread:begin:end:state
 *     2:cpu:application:task:thread:time:type:value[:type:value]
 *     3:cpu:application:task:thread:sent:sent:cpu:application:task:thread:received:received:bytes:version
 */
export async function writeParaver(events: () => AsyncIterable<RunEvent>, path: string): Promise<void> {
  const base = path.replace(/\.prv$/, '')
  const shape = await readShape(events())
  await writeWhole(`${base}.prv`, prvText(events(), shape))
  await writeWhole(`${base}.pcf`, [pcfText(shape)])
  await writeWhole(`${base}.row`, [rowText(shape)])
}

const KIND_EVENT = 8_000_000
const TASK_EVENT = 8_000_002
const STATES: Record<SliceOutcome, { number: number; name: string; colour: string }> = {
  ok: { number: 1, name: 'Running', colour: '{0,0,255}' },
  failed: { number: 2, name: 'Failed', colour: '{255,0,0}' },
  blocked: { number: 3, name: 'Running, then waits for tasks that it called', colour: '{0,150,200}' },
  cancelled: { number: 4, name: 'Cancelled', colour: '{255,140,0}' },
  returned: { number: 5, name: 'Lost, and run again', colour: '{160,60,160}' },
  unfinished: { number: 6, name: 'Not ended', colour: '{120,120,120}' },
}
const CHUNK = 64 * 1024

/** What the header needs before the first record. */
interface Shape {
  readonly startedAt: Date
  /** Nanoseconds. */
  readonly length: number
  readonly nodes: readonly { name: string; cpus: number; lanes: number }[]
  readonly kinds: ReadonlyMap<number, string>
}

async function readShape(events: AsyncIterable<RunEvent>): Promise<Shape> {
  let startedAt = new Date(0)
  const nodes: { name: string; cpus: number; lanes: number }[] = []
  const kinds = new Map<number, string>()
  const slicer = new Slicer(({ node, lane, end }) => {
    const at = (nodes[node] ??= { name: `node ${node}`, cpus: 0, lanes: 0 })
    at.lanes = Math.max(at.lanes, lane + 1)
    length = Math.max(length, end)
  })
  let length = 0
  for await (const event of events) {
    slicer.observe(event)
    if (event.type === 'kind-defined') kinds.set(event.kind, event.name)
    else if (event.type === 'run-started') {
      startedAt = new Date(event.wallTime)
      event.nodes.forEach(({ name, cpus }, i) => (nodes[i] = { name, cpus, lanes: cpus }))
    }
  }
  slicer.finish()
  return { startedAt, length: Math.max(length, slicer.latest), nodes, kinds }
}

/** Where a lane is, in the numbers of a record. */
function placesOf({ nodes }: Shape): (node: number, lane: number) => string {
  const firstCpu: number[] = []
  let cpus = 1
  for (const [i, node] of nodes.entries()) {
    firstCpu[i] = cpus
    cpus += node.cpus
  }
  return (node, lane) => {
    const cpu = lane < (nodes[node]?.cpus ?? 0) ? (firstCpu[node] as number) + lane : 0
    return `${cpu}:1:${node + 1}:${lane + 1}`
  }
}

/** Paraver wants records in the order of their times: slices come by their ends, so all of them are sorted. */
async function* prvText(events: AsyncIterable<RunEvent>, shape: Shape): AsyncGenerator<string> {
  const place = placesOf(shape)
  const kindNumbers = new Map([...shape.kinds.keys()].map((kind, i) => [kind, i + 1]))
  const records: { at: number; rank: number; text: string }[] = []
  const made = new Map<number, { at: number; place: string }>()
  const add = (slice: Slice): void => {
    const { start, end, node, lane, task, outcome } = slice
    const where = place(node, lane)
    const kind = kindNumbers.get(task.kind) ?? 0
    // At equal times an end comes before what begins.
    records.push({ at: start, rank: 1, text: `1:${where}:${start}:${end}:${STATES[outcome].number}` })
    const began = `${KIND_EVENT}:${kind}:${TASK_EVENT}:${task.id}`
    records.push({ at: start, rank: 2, text: `2:${where}:${start}:${began}` })
    records.push({ at: end, rank: 0, text: `2:${where}:${end}:${KIND_EVENT}:0:${TASK_EVENT}:0` })
    if (slice.isFirst) {
      for (const version of new Set(task.reads)) {
        const source = made.get(version)
        if (!source || source.at > start) continue
        const sent = `3:${source.place}:${source.at}:${source.at}`
        records.push({
          at: source.at,
          rank: 3,
          text: `${sent}:${where}:${start}:${start}:${sizes.get(version) ?? 0}:${version}`,
        })
      }
    }
    if (outcome === 'ok') for (const version of task.writes) made.set(version, { at: end, place: where })
  }
  const sizes = new Map<number, number>()
  const slicer = new Slicer(add)
  for await (const event of events) {
    if (event.type === 'committed' && event.bytes > 0) sizes.set(event.version, event.bytes)
    slicer.observe(event)
  }
  slicer.finish()
  records.sort((a, b) => a.at - b.at || a.rank - b.rank)
  let text = `${header(shape)}\n`
  for (const record of records) {
    text += `${record.text}\n`
    if (text.length < CHUNK) continue
    yield text
    text = ''
  }
  yield text
}

function header({ startedAt, length, nodes }: Shape): string {
  const two = (number: number): string => String(number).padStart(2, '0')
  const day = [startedAt.getUTCDate(), startedAt.getUTCMonth() + 1].map(two).join('/')
  const time = `${two(startedAt.getUTCHours())}:${two(startedAt.getUTCMinutes())}`
  const cpus = nodes.map(node => node.cpus).join(',')
  const threads = nodes.map(({ lanes }, i) => `${lanes}:${i + 1}`).join(',')
  const date = `${day}/${startedAt.getUTCFullYear()} at ${time}`
  return `#Paraver (${date}):${length}_ns:${nodes.length}(${cpus}):1:${nodes.length}(${threads})`
}

function pcfText({ kinds }: Shape): string {
  const states = Object.values(STATES)
  return [
    'DEFAULT_OPTIONS',
    '',
    'LEVEL               THREAD',
    'UNITS               NANOSEC',
    '',
    'STATES',
    '0    Idle',
    ...states.map(({ number, name }) => `${number}    ${name}`),
    '',
    'STATES_COLOR',
    '0    {200,200,200}',
    ...states.map(({ number, colour }) => `${number}    ${colour}`),
    '',
    'EVENT_TYPE',
    `0    ${KIND_EVENT}    Task`,
    'VALUES',
    '0      End',
    ...[...kinds.values()].map((name, i) => `${i + 1}      ${clean(name)}`),
    '',
    'EVENT_TYPE',
    `0    ${TASK_EVENT}    Task IDs`,
    '',
    '',
  ].join('\n')
}

function rowText({ nodes }: Shape): string {
  const cpus = nodes.flatMap(({ name, cpus: count }) =>
    Array.from({ length: count }, (_, i) => `${clean(name)}.${i}`),
  )
  const threads = nodes.flatMap(({ name, cpus: count, lanes }) =>
    Array.from({ length: lanes }, (_, i) =>
      i < count ? `${clean(name)} lane ${i}` : `${clean(name)} I/O ${i - count}`,
    ),
  )
  const level = (title: string, names: readonly string[]): string[] => [
    `LEVEL ${title} SIZE ${names.length}`,
    ...names,
    '',
  ]
  return [
    ...level('CPU', cpus),
    ...level(
      'NODE',
      nodes.map(({ name }) => clean(name)),
    ),
    ...level('THREAD', threads),
    '',
  ].join('\n')
}
