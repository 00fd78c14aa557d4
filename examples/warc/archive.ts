import { createReadStream, createWriteStream } from 'node:fs'
import { once } from 'node:events'

/** Web archives in the format of ISO 28500 (WARC 1.0): made here, with uneven records, and read record by record. */

export interface WebRecord {
  uri: string
  body: Uint8Array
}

const VOCABULARY = Array.from(
  { length: 4000 },
  (_, i) => `${syllable(i)}${syllable(i >> 3)}${syllable(i * 7)}`,
)

function syllable(i: number): string {
  return `${'bdfgklmnprstvz'[i % 14]}${'aeiou'[Math.floor(i / 14) % 5]}`
}

/** Few records are long, most are short, as in archives of the web. */
export async function writeArchive(path: string, records: number): Promise<void> {
  const random = generator(7)
  const file = createWriteStream(path)
  const write = async (type: string, uri: string, content: string, block: string): Promise<void> => {
    const head = [
      'WARC/1.0',
      `WARC-Type: ${type}`,
      `WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-${String(Math.floor(random() * 1e12)).padStart(12, '0')}>`,
      'WARC-Date: 2026-11-15T09:00:00Z',
      ...(uri === '' ? [] : [`WARC-Target-URI: ${uri}`]),
      `Content-Type: ${content}`,
      `Content-Length: ${Buffer.byteLength(block)}`,
    ].join('\r\n')
    if (!file.write(`${head}\r\n\r\n${block}\r\n\r\n`)) await once(file, 'drain')
  }
  await write(
    'warcinfo',
    '',
    'application/warc-fields',
    'software: Millrace example\r\nformat: WARC File Format 1.0\r\n',
  )
  for (let i = 0; i < records; i++) {
    const words = Math.round(400 * Math.exp(3.2 * random() ** 2))
    const text: string[] = []
    for (let w = 0; w < words; w++)
      text.push(VOCABULARY[Math.floor(VOCABULARY.length * random() ** 3)] as string)
    const html = `<html><body><p>${text.join(' ')}</p></body></html>`
    const http = `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${html.length}\r\n\r\n${html}`
    await write(
      'response',
      `http://site-${i % 97}.example/page-${i}`,
      'application/http; msgtype=response',
      http,
    )
  }
  file.end()
  await once(file, 'close')
}

/**
 * The responses of an archive, one after the other. With `rate`, in MB/s, it reads no faster than a device of
 * that speed would let it.
 */
export async function* readArchive(path: string, rate = Infinity): AsyncGenerator<WebRecord> {
  let rest: Buffer = Buffer.alloc(0)
  let read = 0
  const start = performance.now()
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>) {
    read += chunk.length
    const early = read / 1e3 / rate - (performance.now() - start)
    if (early > 1) await new Promise(resolve => setTimeout(resolve, early))
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const end = rest.indexOf('\r\n\r\n')
      if (end < 0) break
      const head = rest.toString('latin1', 0, end)
      const length = Number(/^Content-Length: (\d+)$/m.exec(head)?.[1])
      const after = end + 4 + length + 4
      if (rest.length < after) break
      const uri = /^WARC-Target-URI: (.*)$/m.exec(head)?.[1]
      if (/^WARC-Type: response/m.test(head) && uri) {
        yield { uri: uri.trim(), body: new Uint8Array(rest.subarray(end + 4, end + 4 + length)) }
      }
      rest = rest.subarray(after)
    }
  }
}

export function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
