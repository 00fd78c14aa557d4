import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

/** What code made from the published definitions of OTLP offers for each message. */
interface Message {
  fromObject(body: unknown): object
  verify(message: object): string | null
  toObject(message: object, options: object): unknown
}

const require = createRequire(import.meta.url)
const { collector } = (
  require('@opentelemetry/otlp-proto-exporter-base/build/src/generated/root.js') as {
    opentelemetry: {
      proto: {
        collector: {
          trace: { v1: { ExportTraceServiceRequest: Message } }
          metrics: { v1: { ExportMetricsServiceRequest: Message } }
        }
      }
    }
  }
).opentelemetry.proto

const REQUESTS: Record<string, Message> = {
  '/v1/traces': collector.trace.v1.ExportTraceServiceRequest,
  '/v1/metrics': collector.metrics.v1.ExportMetricsServiceRequest,
}

/** Ids are bytes. OTLP writes them in hexadecimal, where JSON of protobuf has base64. */
const ID_BYTES: Record<string, number> = { traceId: 16, spanId: 8, parentSpanId: 8 }

/** The body with ids in base64. */
function asProtobuf(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map(one => asProtobuf(one))
  const bytes = ID_BYTES[key]
  if (bytes !== undefined) {
    assert.ok(typeof value === 'string' && /^[0-9a-f]*$/.test(value), `${key} is not hexadecimal`)
    assert.equal(value.length, 2 * bytes, `${key} has the wrong length: ${value}`)
    return Buffer.from(value, 'hex').toString('base64')
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, asProtobuf(one, name)]))
}

/** Leaves out empty lists that `sent` does not have: protobuf cannot tell them from absent ones. */
function withoutAdded(value: unknown, sent: unknown): unknown {
  const at = (key: string | number): unknown => (sent as Record<string, unknown> | undefined)?.[key]
  if (Array.isArray(value)) return value.map((one, i) => withoutAdded(one, at(i)))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, one]) => !(Array.isArray(one) && one.length === 0 && at(key) === undefined))
      .map(([key, one]) => [key, withoutAdded(one, at(key))]),
  )
}

/**
 * Throws unless this is the body of a request by the published definitions. It is read as the message and written again: fields
 * that the definitions do not have are lost on the way, and values of a wrong type come back as others.
 */
export function checkOtlp(path: string, body: unknown): void {
  const message = REQUESTS[path]
  assert.ok(message, `there is no request ${path}`)
  const sent = asProtobuf(body)
  const read = message.fromObject(sent)
  assert.equal(message.verify(read), null)
  const written = message.toObject(read, { longs: String, bytes: String, arrays: true })
  assert.deepEqual(withoutAdded(written, sent), sent)
}
