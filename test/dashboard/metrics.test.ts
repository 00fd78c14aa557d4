import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { DashboardServer } from '../../src/report/dashboard/server.ts'
import { temporaryFolder } from '../report/temporary.ts'
import { journalOf, manyTasks } from './journal-of.ts'
import { richRun } from './rich-run.ts'

async function serve(name: string, events: Iterable<RunEvent>): Promise<string> {
  const server = new DashboardServer({ journal: await journalOf(join(temporaryFolder(), name), events) })
  after(() => server.close())
  return (await server.listen()).url
}

/** Two kinds of one name, the same device on two nodes, and names with all that must be escaped. */
function* oddRun(): Generator<RunEvent> {
  for (const event of richRun()) {
    if (event.type === 'kind-defined') yield { ...event, name: 'a "kind"\\ of\nlines' }
    else if (event.type === 'run-started') {
      const devices = (event.devices ?? []).map((device, i) => ({ ...device, name: 'ssd', node: i }))
      yield { ...event, devices }
    } else yield event
  }
}

const LABEL = String.raw`[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"`
const SAMPLE = new RegExp(
  `^([a-zA-Z_:][\\w:]*)\\{(${LABEL}(?:,${LABEL})*)\\} (-?\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)$`,
)

test('metrics keep to the text format of Prometheus: each series once, below its type', async () => {
  const text = await (await fetch(`${await serve('odd', oddRun())}metrics`)).text()
  assert.ok(text.endsWith('\n'))
  const seen = new Set<string>()
  const types = new Set<string>()
  let current = ''
  for (const line of text.split('\n').slice(0, -1)) {
    const about = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line)
    if (about) {
      current = about[2] as string
      if (about[1] === 'TYPE') {
        assert.ok(!types.has(current), `${current} has two types`)
        assert.match(about[3] as string, /^(gauge|counter)$/)
        types.add(current)
      }
      continue
    }
    const sample = SAMPLE.exec(line)
    assert.ok(sample, line)
    assert.equal(sample[1], current)
    const series = line.slice(0, line.lastIndexOf(' '))
    assert.ok(!seen.has(series), `${series} is there twice`)
    seen.add(series)
  }
  assert.ok([...seen].some(series => series.includes('device="ssd",node="n2"')))
})

const promtool = process.env['PROMTOOL'] ?? 'promtool'
const hasPromtool = spawnSync(promtool, ['--version']).status === 0

test(
  "Prometheus' own tool finds nothing wrong with the metrics",
  { skip: hasPromtool ? false : `no promtool (Debian: prometheus): ${promtool}` },
  async () => {
    const text = await (await fetch(`${await serve('odd-too', oddRun())}metrics`)).text()
    const check = (input: string): number | null =>
      spawnSync(promtool, ['check', 'metrics'], { input, encoding: 'utf8' }).status
    assert.equal(check(text), 0)
    assert.notEqual(check(`${text}${text}`), 0)
  },
)

test('connections that are never read hold up no other page', async () => {
  const url = new URL(await serve('many', manyTasks(20_000, 64)))
  // It asks for all, often enough to fill any buffer between the two, and never reads.
  const stuck = connect(Number(url.port), url.hostname)
  after(() => stuck.destroy())
  stuck.pause()
  for (let i = 0; i < 400; i++) {
    stuck.write(`GET ${url.pathname}section?name=timeline HTTP/1.1\r\nHost: x\r\n\r\n`)
    stuck.write(`GET ${url.pathname}section?name=overview HTTP/1.1\r\nHost: x\r\n\r\n`)
  }
  const silent = connect(Number(url.port), url.hostname)
  after(() => silent.destroy())
  silent.pause()
  silent.write(`GET ${url.pathname}events?sections=overview,timeline,graph HTTP/1.1\r\nHost: x\r\n\r\n`)
  const response = await fetch(`${url.href}events?sections=run`)
  let read = ''
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    read += Buffer.from(chunk).toString()
    if (read.includes('"state":"failed"') && read.includes('"isCaughtUp":true')) break
  }
  assert.equal((await fetch(`${url.href}section?name=overview`)).status, 200)
  assert.equal(stuck.bytesRead, 0)
})
