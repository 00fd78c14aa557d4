import { createHash } from 'node:crypto'
import { MillraceError } from '../../core/errors.ts'
import type { RunEvent } from '../../core/events.ts'
import { OtlpMetrics } from './otlp-metrics.ts'
import { attributes, nano, type Attribute } from './otlp-values.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** A span, as OTLP has it in JSON. */
export interface Span {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attribute[]
  links: { traceId: string; spanId: string; attributes: Attribute[] }[]
  events: { timeUnixNano: string; name: string; attributes: Attribute[] }[]
  status: { code: number; message?: string }
}

/** Spans in one request. */
const BATCH = 512
const INTERNAL = 1
const STATUS_OK = 1
const STATUS_ERROR = 2

/**
 * Sends a run to an OpenTelemetry collector: OTLP over HTTP, in JSON. The run is the root span. Each attempt of a task is a
 * span below it, or below the task that called it; the tasks whose results it reads are links, because a span has one parent
 * and a task may have many. Metrics are those of devices and kinds.
 */
export async function sendOtlp(
  events: AsyncIterable<RunEvent>,
  endpoint: string,
): Promise<{ spans: number }> {
  const spans = new Spans()
  const metrics = new OtlpMetrics()
  let sent = 0
  const flush = async (least: number): Promise<void> => {
    while (spans.done.length > least) {
      const batch = spans.done.splice(0, BATCH)
      const scopeSpans = [{ scope: { name: 'millrace', version: spans.version }, spans: batch }]
      await post(endpoint, 'v1/traces', { resourceSpans: [{ resource: spans.resource, scopeSpans }] })
      sent += batch.length
    }
  }
  for await (const event of events) {
    spans.observe(event)
    metrics.observe(event)
    if (spans.done.length >= BATCH * 2) await flush(BATCH)
  }
  spans.finish()
  await flush(0)
  const scopeMetrics = [{ scope: { name: 'millrace', version: spans.version }, metrics: metrics.all() }]
  if (spans.version !== '')
    await post(endpoint, 'v1/metrics', { resourceMetrics: [{ resource: spans.resource, scopeMetrics }] })
  return { spans: sent }
}

async function post(endpoint: string, path: string, body: object): Promise<void> {
  const address = `${endpoint.replace(/\/+$/, '')}/${path}`
  let response: Response
  try {
    response = await fetch(address, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  } catch (cause) {
    throw new MillraceError('MR_EXPORT', `the collector at ${address} does not answer`, { cause })
  }
  if (response.ok) return
  const text = (await response.text()).slice(0, 200)
  throw new MillraceError('MR_EXPORT', `the collector at ${address} answered ${response.status}: ${text}`)
}

interface Open {
  attempt: number
  at: number
  node: number
  lane: number
  cpus: number
  device: number | undefined
}

interface Known {
  kind: number
  parent: number | null
  reads: readonly number[]
  group: string | null
  submittedAt: number
  open: Open | null
  attempt: number
  events: Span['events']
}

/** Follows tasks and makes a span of each attempt when it ends. */
class Spans {
  readonly done: Span[] = []
  version = ''
  resource: { attributes: Attribute[] } = { attributes: [] }
  #run: Of<'run-started'> | null = null
  #startMs = 0
  #traceId = ''
  #latest = 0
  #outcome: Of<'run-ended'> | null = null
  readonly #kinds = new Map<number, Of<'kind-defined'>>()
  readonly #tasks = new Map<number, Known>()
  /** By version, the span that made it. */
  readonly #makers = new Map<number, number>()
  readonly #lastAttempt = new Map<number, number>()

  observe(event: RunEvent): void {
    this.#latest = Math.max(this.#latest, event.at)
    switch (event.type) {
      case 'run-started':
        this.#begin(event)
        break
      case 'kind-defined':
        this.#kinds.set(event.kind, event)
        break
      case 'submitted': {
        const { task, kind, parent, reads, group, at } = event
        const fresh = { open: null, attempt: 0, events: [] }
        this.#tasks.set(task, { kind, parent, reads, group, submittedAt: at, ...fresh })
        for (const version of event.writes) if (!this.#makers.has(version)) this.#makers.set(version, task)
        break
      }
      case 'released':
        if (!this.#makers.has(event.version)) this.#makers.set(event.version, event.task)
        break
      case 'started': {
        const known = this.#tasks.get(event.task)
        if (!known) break
        const { attempt, at, node, lane, cpus, device } = event
        known.open = { attempt, at, node, lane, cpus, device }
        known.attempt = attempt
        this.#lastAttempt.set(event.task, attempt)
        break
      }
      case 'blocked':
        this.#note(event.task, event.at, 'blocked', event.reason)
        break
      case 'resumed':
        this.#note(event.task, event.at, 'resumed', '')
        break
      case 'waits':
        this.#note(event.task, event.at, 'waits', event.reason)
        break
      case 'finished':
        this.#end(event.task, event.at, { code: STATUS_OK })
        this.#tasks.delete(event.task)
        break
      case 'failed':
        this.#end(event.task, event.at, {
          code: STATUS_ERROR,
          message: `${event.failure.name}: ${event.failure.message}`,
        })
        if (event.next !== 'retry') this.#tasks.delete(event.task)
        break
      case 'cancelled':
        this.#end(event.task, event.at, { code: STATUS_ERROR, message: 'cancelled' })
        this.#tasks.delete(event.task)
        break
      case 'returned':
        this.#end(event.task, event.at, { code: STATUS_ERROR, message: event.reason })
        break
      case 'run-ended':
        this.#outcome = event
        break
      default:
    }
  }

  /** Closes what is open, and adds the span of the run. */
  finish(): void {
    if (!this.#run) return
    for (const task of this.#tasks.keys())
      this.#end(task, this.#latest, { code: STATUS_ERROR, message: 'the run ended before it did' })
    const { run, program, policy } = this.#run
    const outcome = this.#outcome?.outcome ?? 'killed'
    this.done.push({
      traceId: this.#traceId,
      spanId: spanId(0, 0),
      name: `run ${run}`,
      kind: INTERNAL,
      startTimeUnixNano: this.#time(0),
      endTimeUnixNano: this.#time(this.#latest),
      attributes: attributes({
        'millrace.program': program,
        'millrace.policy': policy,
        'millrace.outcome': outcome,
      }),
      links: [],
      events: [],
      status: outcome === 'ok' ? { code: STATUS_OK } : { code: STATUS_ERROR, message: outcome },
    })
  }

  #begin(event: Of<'run-started'>): void {
    this.#run = event
    this.version = event.version
    this.#startMs = Date.parse(event.wallTime)
    this.#traceId = createHash('sha256')
      .update(`${event.run} ${event.wallTime} ${event.pid}`)
      .digest('hex')
      .slice(0, 32)
    this.resource = {
      attributes: attributes({
        'service.name': 'millrace',
        'service.version': event.version,
        'service.instance.id': event.run,
        'process.pid': event.pid,
        'process.working_directory': event.cwd,
        'host.name': event.nodes[0]?.name ?? '',
      }),
    }
  }

  #note(task: number, at: number, name: string, reason: string): void {
    const note = { timeUnixNano: this.#time(at), name, attributes: attributes(reason ? { reason } : {}) }
    this.#tasks.get(task)?.events.push(note)
  }

  #end(task: number, at: number, status: Span['status']): void {
    const known = this.#tasks.get(task)
    const open = known?.open
    if (!known || !open) return
    known.open = null
    const kind = this.#kinds.get(known.kind)
    const run = this.#run
    const parent = known.parent
    this.done.push({
      traceId: this.#traceId,
      spanId: spanId(task, open.attempt),
      parentSpanId: parent === null ? spanId(0, 0) : spanId(parent, this.#lastAttempt.get(parent) ?? 1),
      name: kind?.name ?? `kind ${known.kind}`,
      kind: INTERNAL,
      startTimeUnixNano: this.#time(open.at),
      endTimeUnixNano: this.#time(Math.max(open.at, at)),
      attributes: attributes({
        'millrace.task': task,
        'millrace.attempt': open.attempt,
        'millrace.kind.form': kind?.form,
        'code.filepath': kind?.module,
        'millrace.group': known.group ?? undefined,
        'millrace.node': run?.nodes[open.node]?.name,
        'millrace.lane': open.lane,
        'millrace.cpus': open.cpus,
        'millrace.device': open.device === undefined ? undefined : run?.devices?.[open.device]?.name,
        'millrace.queued_ms': Math.max(0, open.at - known.submittedAt),
      }),
      links: this.#links(task, known.reads),
      events: known.events.splice(0),
      status,
    })
  }

  #links(task: number, reads: readonly number[]): Span['links'] {
    const makers = new Set<number>()
    for (const version of reads) {
      const maker = this.#makers.get(version)
      if (maker !== undefined && maker !== task && this.#lastAttempt.has(maker)) makers.add(maker)
    }
    return [...makers].map(maker => ({
      traceId: this.#traceId,
      spanId: spanId(maker, this.#lastAttempt.get(maker) ?? 1),
      attributes: attributes({ 'millrace.link': 'data' }),
    }))
  }

  #time(at: number): string {
    return nano(this.#startMs, at)
  }
}

/** The run is 1; attempts have numbers above that of all runs. */
const spanId = (task: number, attempt: number): string =>
  (BigInt(task) * 65_536n + BigInt(attempt) + 1n).toString(16).padStart(16, '0')
