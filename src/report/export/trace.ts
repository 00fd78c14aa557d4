import { withLabel } from '../label.ts'
import { createGzip } from 'node:zlib'
import { STEPS } from '../../core/events.ts'
import type { AttemptSteps, RunEvent } from '../../core/events.ts'
import { Slicer, nanos, type Slice } from './trace-slices.ts'
import { writeWhole } from './write-whole.ts'

/**
 * Chrome Trace Event JSON, which Perfetto opens: a process for each node (pid = node + 1), a thread for each
 * lane, a slice for each interval in which an attempt ran, arrows from producers to consumers, and counters on a
 * process 0 that stands for the run. Same events, same bytes.
 */
export async function writeTrace(events: AsyncIterable<RunEvent>, path: string): Promise<void> {
  await writeWhole(path, traceText(events), path.endsWith('.gz') ? createGzip() : undefined)
}

/** The text of a trace in pieces of about 64 KiB. */
export async function* traceText(
  events: AsyncIterable<RunEvent>,
  maxArrows = MAX_ARROWS,
): AsyncGenerator<string> {
  const tracer = new Tracer(maxArrows)
  yield '{"traceEvents":[\n'
  for await (const event of events) {
    tracer.observe(event)
    if (tracer.length >= CHUNK) yield tracer.take()
  }
  tracer.finish()
  yield tracer.take()
  yield `\n],"displayTimeUnit":"ms","otherData":${JSON.stringify(tracer.about())}}\n`
}

const CHUNK = 64 * 1024
/** More arrows than this make every viewer crawl; the trace says from which task on they are left out. */
const MAX_ARROWS = 100_000
const MAX_VERSIONS = 4 * MAX_ARROWS
const WHY_NO_ARROWS = 'viewers cannot draw that many'
const NONE: number[] = []
type Submitted = Extract<RunEvent, { type: 'submitted' }>
/** Counter samples are at least this far apart, and further as the run goes on: a thousandth of it. */
const SAMPLE_NANOS = 1e6
const SAMPLE_SHARE = 1000
const COUNTERS = ['running', 'ready', 'waiting'] as const

interface Anchor {
  pid: number
  tid: number
  at: number
}

class Tracer {
  readonly #maxArrows: number
  #text = ''
  #isFirst = true
  #run: Extract<RunEvent, { type: 'run-started' }> | null = null
  readonly #kinds = new Map<number, { name: string; form: string }>()
  readonly #processes = new Set<number>()
  readonly #threads = new Set<string>()
  readonly #slicer = new Slicer(slice => this.#slice(slice))
  /** Where each version was made, those that are still to be made, and who reads them already. */
  readonly #made = new Map<number, Anchor>()
  readonly #makers = new Set<number>()
  readonly #awaited = new Map<number, Anchor[]>()
  #arrows = 0
  #drawnSteps = 0
  #expectedArrows = 0
  #versions = 0
  #noArrowsFrom: number | null = null
  #changedAt = -Infinity
  #sampledAt = -Infinity
  readonly #sampled: Record<(typeof COUNTERS)[number], number> = { running: -1, ready: -1, waiting: -1 }

  constructor(maxArrows: number) {
    this.#maxArrows = maxArrows
  }

  get length(): number {
    return this.#text.length
  }

  take(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  observe(event: RunEvent): void {
    switch (event.type) {
      case 'run-started':
        this.#run = event
        this.#process(0, `run ${event.run}`, -1)
        event.nodes.forEach((node, index) => this.#process(index + 1, node.name, index))
        break
      case 'node-joined':
        this.#run?.nodes.push({ name: event.name, cpus: event.cpus, memory: event.memory })
        this.#process(event.node + 1, event.name, event.node)
        this.#instant(event.at, 'node joined', event.name)
        break
      case 'node-left':
        this.#instant(
          event.at,
          event.isLost ? 'node lost' : 'node given back',
          `${this.#run?.nodes[event.node]?.name ?? event.node}: ${event.reason}`,
        )
        break
      case 'kind-defined':
        this.#kinds.set(event.kind, { name: event.name, form: event.form })
        break
      case 'submitted':
        return this.#follow(this.#withoutArrows(event))
      case 'released':
        this.#released(event)
        break
      case 'finished':
        if (event.steps) this.#steps(event.task, event.steps)
        break
      case 'note':
        this.#instant(event.at, event.level, event.text)
        break
      case 'thread-died':
        this.#instant(event.at, 'thread died', `lane ${event.lane} of node ${event.node}: ${event.reason}`)
        break
      case 'device-failed':
        this.#instant(event.at, 'storage failed', `device ${event.device}: ${event.reason}`)
        break
      case 'interrupted':
        this.#instant(event.at, 'interrupted', event.signal)
        break
      case 'device':
        this.#device(event)
        break
      default:
        break
    }
    this.#follow(event)
  }

  /** Counters per device: bandwidth that is given out, bytes that are taken, tasks that use it. */
  #device({ at, device, read, write, used, running, waiting }: Extract<RunEvent, { type: 'device' }>): void {
    const name = this.#run?.devices?.[device]?.name ?? `device ${device}`
    const where = place({ pid: 0, tid: 0, at: nanos(at) })
    const counter = (what: string, args: object): void =>
      this.#add(
        `{"ph":"C","name":${JSON.stringify(`${name} ${what}`)},${where},"args":${JSON.stringify(args)}}`,
      )
    counter('MB/s', { read: read / 1e6, write: write / 1e6 })
    counter('MB', { used: used / 1e6 })
    counter('tasks', { running, waiting })
  }

  #follow(event: RunEvent): void {
    const { latest } = this.#slicer
    const at = Math.max(latest, nanos(event.at))
    if (at > latest) this.#sample(at)
    this.#slicer.observe(event)
    this.#changedAt = at
  }

  finish(): void {
    this.#slicer.finish()
    this.#sample(Infinity)
  }

  about(): Record<string, unknown> {
    const run = this.#run
    return {
      ...(run && { run: run.run, program: run.program, started: run.wallTime, version: run.version }),
      ...(run && { simulated: run.simulated }),
      ...(this.#noArrowsFrom !== null && { noArrowsFromTask: this.#noArrowsFrom, why: WHY_NO_ARROWS }),
    }
  }

  #slice(slice: Slice): void {
    const { task, attempt, outcome, implementation, detail, usage } = slice
    const kind = this.#kinds.get(task.kind) ?? { name: `kind ${task.kind}`, form: 'function' }
    const pid = slice.node + 1
    const tid = slice.lane
    this.#process(pid, `node ${slice.node}`, slice.node)
    this.#thread(pid, tid)
    const args = {
      task: task.id,
      kind: kind.name,
      ...(task.label !== '' && { label: task.label }),
      attempt,
      ...(task.group !== null && { group: task.group }),
      ...(implementation !== undefined && { implementation }),
      outcome,
      ...(detail !== undefined && { detail }),
      ...usage,
    }
    const name = JSON.stringify(withLabel(kind.name, task.label))
    const span = `"ts":${micros(slice.start)},"dur":${micros(slice.end - slice.start)}`
    const place = `"pid":${pid},"tid":${tid}`
    this.#add(
      `{"ph":"X","name":${name},"cat":"${kind.form}",${place},${span},"args":${JSON.stringify(args)}}`,
    )
    // An arrow holds on to the slice that is there at its time, so it leaves just before the end.
    const anchor = { pid, tid, at: slice.end - 1 }
    if (slice.isFirst) this.#arrowsTo(slice, { pid, tid, at: slice.start })
    if (this.#awaited.size > 0) this.#arrowsFromEarly(slice, anchor)
    if (outcome !== 'ok') return
    for (const version of task.writes) {
      if (!this.#made.has(version)) this.#made.set(version, anchor)
      this.#makers.delete(version)
      this.#awaited.delete(version)
    }
  }

  /**
   * Steps are on tracks of their own, one for each: the files of a task are fetched and committed while others have its lane.
   * What a task waits for is within its run.
   */
  #steps(id: number, steps: AttemptSteps): void {
    const task = this.#slicer.tasks.get(id)
    if (!task?.open) return
    const name = withLabel(this.#kinds.get(task.kind)?.name ?? `kind ${task.kind}`, task.label)
    const pid = task.open.node + 1
    let at = steps.from
    for (const step of STEPS) {
      if (step === 'wait' || steps[step] === 0) continue
      const end = at + steps[step] + (step === 'run' ? steps.wait : 0)
      const head = `"cat":"step","name":"${step}","id":${++this.#drawnSteps}`
      const args = JSON.stringify({ task: id, kind: name, ...(step === 'run' && { waitMs: steps.wait }) })
      this.#add(`{"ph":"b",${head},${place({ pid, tid: 0, at: nanos(at) })},"args":${args}}`)
      this.#add(`{"ph":"e",${head},${place({ pid, tid: 0, at: nanos(end) })}}`)
      at = end
    }
  }

  /** The arrow leaves from the moment of release, while its maker goes on. */
  #released({ at, task, version }: Extract<RunEvent, { type: 'released' }>): void {
    const slice = this.#slicer.tasks.get(task)?.open
    if (!slice || this.#noArrowsFrom !== null) return
    if (!this.#makers.delete(version)) this.#versions++
    this.#made.set(version, { pid: slice.node + 1, tid: slice.lane, at: Math.max(slice.start, nanos(at)) })
  }

  #arrowsTo({ task }: Slice, target: Anchor): void {
    for (const version of new Set(task.reads)) {
      const source = this.#made.get(version)
      if (source) this.#arrow(source, target)
      else if (this.#makers.has(version) && !task.writes.includes(version)) this.#await(version, target)
    }
  }

  /** A version may be released early: its producer goes on, and its slice is written after the reader's. */
  #await(version: number, target: Anchor): void {
    const targets = this.#awaited.get(version)
    if (targets) targets.push(target)
    else this.#awaited.set(version, [target])
  }

  #arrowsFromEarly({ task, start, end }: Slice, { pid, tid }: Anchor): void {
    for (const version of task.writes) {
      for (const target of this.#awaited.get(version) ?? []) {
        if (start <= target.at && target.at < end) this.#arrow({ pid, tid, at: target.at }, target)
      }
    }
  }

  #arrow(source: Anchor, target: Anchor): void {
    const id = ++this.#arrows
    this.#add(`{"ph":"s","name":"data","cat":"data","id":${id},${place(source)}}`)
    this.#add(`{"ph":"f","bp":"e","name":"data","cat":"data","id":${id},${place(target)}}`)
  }

  /** Decided when a task is submitted, so that what will never be drawn is not kept either. */
  #withoutArrows(event: Submitted): Submitted {
    if (this.#expectedArrows < this.#maxArrows && this.#versions < MAX_VERSIONS) {
      for (const version of event.reads)
        if (this.#makers.has(version) || this.#made.has(version)) this.#expectedArrows++
      for (const version of event.writes) this.#makers.add(version)
      this.#versions += event.writes.length
      return event
    }
    if (this.#noArrowsFrom === null) {
      this.#noArrowsFrom = event.task
      this.#instant(event.at, `no arrows from task ${event.task} on`, WHY_NO_ARROWS)
    }
    return { ...event, reads: NONE, writes: NONE }
  }

  #process(pid: number, name: string, order: number): void {
    if (this.#processes.has(pid)) return
    this.#processes.add(pid)
    this.#meta('process_name', pid, 0, { name })
    this.#meta('process_sort_index', pid, 0, { sort_index: order })
  }

  #thread(pid: number, tid: number): void {
    const key = `${pid}/${tid}`
    if (this.#threads.has(key)) return
    this.#threads.add(key)
    const cpus = this.#run?.nodes[pid - 1]?.cpus ?? Infinity
    this.#meta('thread_name', pid, tid, { name: tid < cpus ? `lane ${tid}` : `I/O ${tid - cpus}` })
    this.#meta('thread_sort_index', pid, tid, { sort_index: tid })
  }

  #meta(name: string, pid: number, tid: number, args: object): void {
    this.#add(`{"ph":"M","name":"${name}","pid":${pid},"tid":${tid},"args":${JSON.stringify(args)}}`)
  }

  #instant(at: number, name: string, text: string): void {
    const args = JSON.stringify({ text })
    this.#add(
      `{"ph":"i","s":"p","name":"${name}",${place({ pid: 0, tid: 0, at: nanos(at) })},"args":${args}}`,
    )
  }

  /**
   * Called before each event, with the time of the event. What is drawn is the state that lasted until
   * then, from when it began: bursts are thinned out, and what holds for long is always right.
   */
  #sample(until: number): void {
    const at = this.#changedAt
    if (until - this.#sampledAt < Math.max(SAMPLE_NANOS, until / SAMPLE_SHARE) || at === this.#sampledAt)
      return
    this.#sampledAt = at
    for (const counter of COUNTERS) {
      const tasks = this.#slicer[counter]
      if (tasks === this.#sampled[counter]) continue
      this.#sampled[counter] = tasks
      const where = place({ pid: 0, tid: 0, at })
      this.#add(`{"ph":"C","name":"${counter} tasks",${where},"args":{"tasks":${tasks}}}`)
    }
  }

  #add(json: string): void {
    this.#text += this.#isFirst ? json : `,\n${json}`
    this.#isFirst = false
  }
}

function place({ pid, tid, at }: Anchor): string {
  return `"pid":${pid},"tid":${tid},"ts":${micros(at)}`
}

/** Microseconds with three places: integers up to here, so that no rounding makes slices touch. */
function micros(nanoseconds: number): string {
  const whole = Math.floor(nanoseconds / 1000)
  const rest = nanoseconds % 1000
  return rest === 0 ? String(whole) : `${whole}.${String(rest).padStart(3, '0')}`
}
