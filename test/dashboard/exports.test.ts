import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { compareKind, compareRuns } from '../../src/report/compare/compare.ts'
import { RunModel } from '../../src/report/dashboard/state/run-model.ts'
import { packLane, unpackLane } from '../../src/report/dashboard/report-data.ts'
import { writeCrate } from '../../src/report/export/crate.ts'
import { sendOtlp } from '../../src/report/export/otlp.ts'
import type { Span } from '../../src/report/export/otlp.ts'
import { runStarted, sampleRun } from '../report/sample-run.ts'
import { temporaryFolder } from '../report/temporary.ts'
import { checkOtlp } from './otlp-schema.ts'
import { richRun } from './rich-run.ts'

async function* each(events: Iterable<RunEvent>): AsyncGenerator<RunEvent> {
  yield* events
}

interface Received {
  path: string
  body: Record<string, unknown>
}

/** A collector that keeps what it gets; `refuse` answers with an error. */
async function collector(refuse = false): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', chunk => (text += String(chunk)))
    request.on('end', () => {
      assert.equal(request.headers['content-type'], 'application/json')
      received.push({ path: request.url ?? '', body: JSON.parse(text) as Record<string, unknown> })
      response.writeHead(refuse ? 503 : 200, { 'Content-Type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received }
}

/** What OTLP says of spans beyond the types of its fields. */
function checkSpan(span: Span): void {
  assert.doesNotMatch(span.traceId, /^0+$/)
  assert.doesNotMatch(span.spanId, /^0+$/)
  assert.match(span.startTimeUnixNano, /^\d{19}$/)
  assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano))
  assert.ok(span.name.length > 0)
  for (const { key, value } of span.attributes) {
    assert.ok(key.length > 0)
    assert.equal(Object.keys(value).length, 1)
  }
}

test('a collector gets a span for each attempt, with links for what it reads, and metrics', async () => {
  const { url, received } = await collector()
  const sent = await sendOtlp(each(richRun()), `${url}/`)
  for (const { path, body } of received) checkOtlp(path, body)
  const spans = received
    .filter(({ path }) => path === '/v1/traces')
    .flatMap(
      ({ body }) =>
        (body as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] }).resourceSpans[0]!.scopeSpans[0]!
          .spans,
    )
  assert.equal(spans.length, sent.spans)
  spans.forEach(checkSpan)
  const ids = new Set(spans.map(span => span.spanId))
  assert.equal(ids.size, spans.length)
  for (const span of spans) {
    if (span.parentSpanId !== undefined) assert.ok(ids.has(span.parentSpanId), span.name)
    for (const link of span.links) assert.ok(ids.has(link.spanId), span.name)
  }
  const add = spans.find(span => span.name === 'add')
  assert.equal(add?.links.length, 2)
  const shrink = spans.find(span => span.name === 'shrink')
  assert.equal(shrink?.parentSpanId, add?.spanId)
  assert.equal(spans.filter(span => span.name === 'project').length, 3)
  assert.deepEqual(spans.find(span => span.name === 'jpeg')?.status.code, 2)
  assert.equal(spans.filter(span => span.parentSpanId === undefined).length, 1)
  const metrics = received.find(({ path }) => path === '/v1/metrics')?.body as {
    resourceMetrics: {
      scopeMetrics: { metrics: { name: string; sum?: { dataPoints: { asDouble: number }[] } }[] }[]
    }[]
  }
  const attempts = metrics.resourceMetrics[0]!.scopeMetrics[0]!.metrics.find(
    ({ name }) => name === 'millrace.attempts',
  )
  assert.ok((attempts?.sum?.dataPoints.length ?? 0) > 0)
  assert.ok(
    metrics.resourceMetrics[0]!.scopeMetrics[0]!.metrics.some(({ name }) => name === 'millrace.device.used'),
  )
})

test('the published definitions of OTLP refuse what is not in them', async () => {
  const { url, received } = await collector()
  await sendOtlp(each(richRun()), url)
  const refused = (path: string, change: (text: string) => string): void => {
    const text = JSON.stringify(received.find(one => one.path === path)?.body)
    assert.notEqual(change(text), text)
    const body: unknown = JSON.parse(change(text))
    assert.throws(() => checkOtlp(path, body))
  }
  const swap = (from: string | RegExp, to: string) => (text: string) => text.replace(from, to)
  for (const change of [
    swap('"links":', '"link":'),
    swap('"stringValue"', '"textValue"'),
    swap('"kind":1', '"kind":"one"'),
    swap(/"name":"run [^"]*"/, '"name":7'),
    swap('"kind":1', '"kind":17'),
    swap('"code":1', '"code":9'),
    swap(/"startTimeUnixNano":"\d+"/, '"startTimeUnixNano":"now"'),
    swap(/"spanId":"../, '"spanId":"'),
    swap(/"traceId":"[^"]*"/, '"traceId":"AAAAAAAAAAAAAAAAAAAAAQ=="'),
    swap(/"attributes":\[(\{"key":"[^"]*","value":\{[^}]*\}\}).*?\]/, '"attributes":$1'),
  ])
    refused('/v1/traces', change)
  for (const change of [
    swap('"unit"', '"units"'),
    swap('"aggregationTemporality":2', '"aggregationTemporality":8'),
    swap('"isMonotonic":true', '"isMonotonic":"yes"'),
    swap(/"asDouble":[\d.e+]+/, '"asDouble":null'),
    swap(/"asDouble":[\d.e+]+/, '"asDouble":"1"'),
  ])
    refused('/v1/metrics', change)
})

test('a collector that refuses, or is not there, is an error that says so', async () => {
  const { url } = await collector(true)
  await assert.rejects(sendOtlp(each(sampleRun), url), { code: 'MR_EXPORT' })
  await assert.rejects(sendOtlp(each(sampleRun), 'http://127.0.0.1:1'), { code: 'MR_EXPORT' })
})

function crateFolder(): { folder: string; events: RunEvent[] } {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'raw'))
  mkdirSync(join(folder, 'proj'))
  for (const name of ['mosaic.ts', 'raw/a.fits', 'raw/b.fits', 'proj/a.fits', 'proj/b.fits'])
    writeFileSync(join(folder, name), `content of ${name}`)
  const events = sampleRun.map(event => (event.type === 'run-started' ? { ...event, cwd: folder } : event))
  return { folder, events }
}

test('a crate has the program, inputs and outputs with checksums, and what made them', async () => {
  const { folder, events } = crateFolder()
  const path = await writeCrate(each(events))
  const graph = (JSON.parse(readFileSync(path, 'utf8')) as { '@graph': Record<string, unknown>[] })['@graph']
  const entity = (id: string): Record<string, unknown> | undefined => graph.find(one => one['@id'] === id)
  assert.equal(path, join(folder, 'ro-crate-metadata.json'))
  const text = readFileSync(join(folder, 'proj/a.fits'))
  assert.equal(entity('proj/a.fits')?.['sha256'], createHash('sha256').update(text).digest('hex'))
  assert.deepEqual(entity('./')?.['mainEntity'], { '@id': 'mosaic.ts' })
  const action = entity('#run-brisk-otter')
  assert.deepEqual(action?.['object'], [{ '@id': 'raw/a.fits' }, { '@id': 'raw/b.fits' }])
  assert.deepEqual(action?.['result'], [{ '@id': 'proj/a.fits' }, { '@id': 'proj/b.fits' }])
  assert.deepEqual(entity('#task-1')?.['result'], { '@id': 'proj/a.fits' })
  // out.jpg was never made.
  assert.equal(entity('out.jpg'), undefined)
  const ids = new Set(graph.map(one => one['@id']))
  assert.equal(ids.size, graph.length)
})

const times = (count: number, mean: number, deviation: number) => ({
  count,
  mean,
  deviation,
  median: mean,
  p95: mean,
  busyMs: count * mean,
})

test('a change is called one only beyond noise', () => {
  const verdict = (...args: Parameters<typeof times>[]): string =>
    compareKind('align', times(...args[0]!), times(...args[1]!)).verdict
  assert.equal(verdict([100, 100, 5], [100, 120, 5]), 'slower')
  assert.equal(verdict([100, 100, 5], [100, 80, 5]), 'faster')
  assert.equal(verdict([100, 100, 200], [100, 120, 200]), 'same')
  assert.equal(verdict([100_000, 100, 5], [100_000, 101, 5]), 'same')
  assert.equal(verdict([2, 100, 1], [2, 200, 1]), 'too few')
  assert.equal(compareKind('new', null, times(5, 1, 1)).verdict, 'only after')
})

test('runs are compared kind by kind, and what makes them different is said', () => {
  const model = (events: readonly RunEvent[]): RunModel => {
    const run = new RunModel()
    for (const event of events) run.observe(event)
    return run
  }
  const other = sampleRun.map(event =>
    event.type === 'run-started' ? ({ ...runStarted, run: 'calm-heron', policy: 'lifo' } as RunEvent) : event,
  )
  const { before, after: second, kinds, doubts } = compareRuns(model(sampleRun), model(other))
  assert.deepEqual([before.name, second.name], ['brisk-otter', 'calm-heron'])
  assert.deepEqual(doubts, ['policy: fifo before, lifo after'])
  assert.ok(kinds.some(({ name, verdict }) => name === 'project' && verdict === 'too few'))
})

test('lanes survive being packed into a report', () => {
  const model = new RunModel()
  for (const event of sampleRun) model.observe(event)
  for (const lane of model.lanes.rows) {
    const again = unpackLane(packLane(lane))
    assert.equal(again.size, lane.size)
    for (let i = 0; i < lane.size; i++) {
      assert.ok(Math.abs(again.starts.get(i) - lane.starts.get(i)) < 0.001)
      assert.equal(again.tasks.get(i), lane.tasks.get(i))
    }
  }
})
