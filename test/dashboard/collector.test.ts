import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { sendOtlp } from '../../src/report/export/otlp.ts'
import { temporaryFolder } from '../report/temporary.ts'
import { richRun } from './rich-run.ts'

const otelcol = process.env['OTELCOL'] ?? 'otelcol'
const skip =
  spawnSync(otelcol, ['--version']).status === 0
    ? false
    : `no OpenTelemetry collector with the receiver otlp and the exporter otlphttp: ${otelcol}`

type Json = Record<string, unknown>

async function listen(server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listen(server)
  await new Promise(resolve => server.close(resolve))
  return port
}

/** Keeps what is posted to it. */
async function receiver(): Promise<{ url: string; got: Map<string, Json[]> }> {
  const got = new Map<string, Json[]>()
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const path = request.url ?? ''
      got.set(path, [...(got.get(path) ?? []), JSON.parse(text) as Json])
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
    })
  })
  const port = await listen(server)
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${port}`, got }
}

/** A collector that passes on what it takes, uncompressed and as JSON. It serves when this resolves. */
async function collectorTo(url: string): Promise<{ address: string; end: () => Promise<void> }> {
  const port = await freePort()
  const config = join(temporaryFolder(), 'collector.yaml')
  const exporter = { endpoint: url, encoding: 'json', compression: 'none', tls: { insecure: true } }
  const pipeline = { receivers: ['otlp'], exporters: ['otlphttp'] }
  // JSON is YAML.
  writeFileSync(
    config,
    JSON.stringify({
      receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
      exporters: { otlphttp: exporter },
      service: {
        telemetry: { metrics: { level: 'none' } },
        pipelines: { traces: pipeline, metrics: pipeline },
      },
    }),
  )
  const child = spawn(otelcol, ['--config', `file:${config}`], { stdio: ['ignore', 'ignore', 'pipe'] })
  const gone = new Promise<void>(resolve => child.on('close', () => resolve()))
  after(() => child.kill('SIGKILL'))
  let log = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (log.includes('Everything is ready')) resolve()
    })
    void gone.then(() => reject(new Error(log)))
  })
  const end = async (): Promise<void> => {
    child.kill('SIGTERM')
    await gone
  }
  return { address: `http://127.0.0.1:${port}`, end }
}

/** All spans and metrics, by id and name, without what says nothing. */
function contentOf(got: ReadonlyMap<string, Json[]>): Record<string, unknown> {
  const found: [string, unknown][] = []
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const { spanId, name, description } = value as Json
    if (typeof name === 'string' && spanId !== undefined) found.push([String(spanId), told(value)])
    else if (typeof name === 'string' && description !== undefined) found.push([name, told(value)])
    else for (const one of Object.values(value)) walk(one)
  }
  for (const bodies of got.values()) bodies.forEach(walk)
  return Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Empty texts and lists are left out by some, and sent by others. A double of 0 is a value. */
function told(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(told)
  if (typeof value !== 'object' || value === null) return value
  const isEmpty = (one: unknown): boolean => one === '' || (Array.isArray(one) && one.length === 0)
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => !isEmpty(one))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, told(one)]),
  )
}

test('a real collector takes spans, links and metrics, and passes on what was sent', { skip }, async () => {
  async function* events(): AsyncGenerator<RunEvent> {
    yield* richRun()
  }
  const direct = await receiver()
  const sent = await sendOtlp(events(), direct.url)
  const passedOn = await receiver()
  const collector = await collectorTo(passedOn.url)
  assert.deepEqual(await sendOtlp(events(), collector.address), sent)
  // It sends what it still has before it ends.
  await collector.end()
  const content = contentOf(passedOn.got)
  assert.equal(Object.keys(content).filter(key => /^[0-9a-f]{16}$/.test(key)).length, sent.spans)
  assert.ok(Object.values(content).some(one => (one as { links?: unknown[] }).links?.length === 2))
  assert.ok('millrace.device.used' in content && 'millrace.attempts' in content)
  assert.deepEqual(content, contentOf(direct.got))
})
