import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { after, test } from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { Feed } from '../../src/report/dashboard/feed.ts'
import { LiveRun } from '../../src/report/dashboard/live-run.ts'
import { createJournal } from '../../src/report/journal/writer.ts'
import { Running, makeFolder } from '../cli/folder.ts'
import { runStarted } from '../report/sample-run.ts'
import { temporaryFolder } from '../report/temporary.ts'
import { manyTasks } from './journal-of.ts'

const folder = temporaryFolder()

/** The connection of a page, which reads at once, or only when it is asked to. */
class Connection extends Writable {
  /** What it has read. */
  text = ''
  isReading: boolean
  #waiting: (() => void) | null = null

  constructor(isReading: boolean) {
    super({ highWaterMark: 16 * 1024 })
    this.isReading = isReading
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const read = (): void => {
      this.text += chunk.toString()
      done()
    }
    if (this.isReading) read()
    else this.#waiting = read
  }

  readAll(): void {
    this.isReading = true
    this.#waiting?.()
    this.#waiting = null
  }

  /** The last state of a section that it has read. */
  latest<T>(section: string): T {
    const message = this.text.split('\n\n').findLast(one => one.startsWith(`event: ${section}\n`))
    assert.ok(message, `it has nothing of ${section}`)
    return JSON.parse(message.slice(message.indexOf('data: ') + 6)) as T
  }

  get response(): ServerResponse {
    return this as unknown as ServerResponse
  }
}

interface Counted {
  counts: { submitted: number }
}

test('what waits for a page that does not read stays small, and other pages have the latest', async () => {
  const path = join(folder, 'many', 'journal')
  const journal = createJournal(path, { flushEvery: Infinity })
  const alive = { ...runStarted, pid: process.pid } as RunEvent
  const events = [...manyTasks(4000)].slice(1, -1)
  journal.observe(alive)
  const run = new LiveRun(path)
  const feed = new Feed(run)
  after(async () => {
    feed.close()
    await Promise.all([run.close(), journal.close()])
  })
  const slow = new Connection(false)
  const quick = new Connection(true)
  for (const page of [slow, quick]) feed.join(page.response, ['run', 'overview', 'timeline', 'storage'])
  const waits: number[] = []
  for (let i = 0; i < 100; i++) {
    for (const event of events.slice((i * events.length) / 100, ((i + 1) * events.length) / 100))
      journal.observe(event)
    journal.flushSync()
    await feed.flush()
    waits.push(slow.writableLength)
    assert.equal(quick.latest<Counted>('run').counts.submitted, run.model.statistics.total.submitted)
  }
  assert.equal(quick.latest<Counted>('run').counts.submitted, 4000)
  assert.ok(quick.text.length > 256 * 1024, `only ${quick.text.length} characters were sent`)
  assert.ok(Math.max(...waits) < 64 * 1024, `${Math.max(...waits)} bytes waited`)
  assert.equal(waits.at(-1), waits[50], 'what waits goes on growing')
  slow.readAll()
  await new Promise(resolve => setImmediate(resolve))
  await feed.flush()
  assert.equal(slow.latest<Counted>('run').counts.submitted, 4000)
})

test('a page that is behind when the run ends has the end when it has read the rest', async () => {
  const path = join(folder, 'behind', 'journal')
  const journal = createJournal(path, { flushEvery: Infinity })
  journal.observe({ ...runStarted, pid: process.pid } as RunEvent)
  const run = new LiveRun(path)
  const feed = new Feed(run)
  const slow = new Connection(false)
  // What it has not read fills its connection.
  slow.write('x'.repeat(32 * 1024))
  feed.join(slow.response, ['run', 'overview', 'timeline', 'storage'])
  const events = [...manyTasks(1000)].slice(1, -1)
  for (let i = 0; i < 10; i++) {
    for (const event of events.slice(i * 400, (i + 1) * 400)) journal.observe(event)
    journal.flushSync()
    await feed.flush()
  }
  const ended: RunEvent = [...manyTasks(1000)].at(-1) as RunEvent
  assert.equal(ended.type, 'run-ended')
  journal.observe(ended)
  journal.flushSync()
  await feed.flush()
  feed.close()
  slow.readAll()
  await finished(slow)
  assert.notEqual(slow.latest<{ state: string }>('run').state, 'running')
  await Promise.all([run.close(), journal.close()])
})

const BUSY = `
import { command, main, task, IN } from 'millrace'
const gate = command({ name: 'gate', params: [IN] }, (n: number) => ['sh', '-c', 'while [ ! -e go ]; do sleep 0.05; done'])
export const work = task({ name: 'work' }, (n: number) => n)
main(() => {
  gate(1)
  for (let i = 0; i < 20_000; i++) work(i)
})
`

test('a run ends, and so does its page, while a page never reads', async () => {
  const home = makeFolder({ 'app.ts': BUSY })
  const running = new Running(home, ['run', 'app.ts', '--cpus', '2', '--progress', 'plain', '--dashboard'])
  await running.printed('stderr', 'http://')
  const url = new URL(/http:\/\/\S+\//.exec(running.stderr)?.[0] ?? '')
  const socket = connect({ port: Number(url.port), host: url.hostname })
  socket.on('error', () => {})
  socket.pause()
  const sections = 'run,overview,failures,timeline,graph,storage,streams,data,nodes'
  socket.write(`GET ${url.pathname}events?sections=${sections} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`)
  after(() => socket.destroy())
  const states: string[] = []
  const response = await fetch(`${url.href}events?sections=run`)
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    // Both pages are open: the run may end.
    if (text.includes('"state":"running"')) writeFileSync(join(home, 'go'), '')
  }
  for (const [, data] of text.matchAll(/^event: run\ndata: (.*)$/gm))
    states.push((JSON.parse(data as string) as { state: string }).state)
  // What became of the run says more than its page.
  const { code, stderr } = await running.ended
  assert.equal(code, 0, stderr)
  assert.equal(states.at(-1), 'ok')
})
