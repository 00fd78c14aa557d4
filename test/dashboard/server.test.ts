import assert from 'node:assert/strict'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createJournal } from '../../src/report/journal/writer.ts'
import { tunnelLine } from '../../src/report/dashboard/address.ts'
import { DashboardServer } from '../../src/report/dashboard/server.ts'
import type { ControlOrder } from '../../src/report/dashboard/protocol.ts'
import type { DashboardOptions } from '../../src/report/dashboard/server.ts'
import { runStarted, sampleRun } from '../report/sample-run.ts'
import { temporaryFolder } from '../report/temporary.ts'
import { journalOf } from './journal-of.ts'

const folder = temporaryFolder()
const finished = await journalOf(join(folder, 'finished', 'journal'), sampleRun)

async function serve(
  options: Partial<DashboardOptions> = {},
): Promise<{ url: string; controlUrl: string | null; server: DashboardServer }> {
  const server = new DashboardServer({ journal: finished, ...options })
  const { url, controlUrl } = await server.listen()
  after(() => server.close())
  return { url, controlUrl, server }
}

/** Sections as they come, until `isDone` says so. */
async function sections(
  url: string,
  names: string,
  isDone: (name: string, data: unknown) => boolean,
): Promise<void> {
  const response = await fetch(`${url}events?sections=${names}`)
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    const messages = text.split('\n\n')
    text = messages.pop() ?? ''
    for (const message of messages) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(message) ?? []
      if (name && data && isDone(name, JSON.parse(data))) return
    }
  }
}

test('without the token there is nothing, whatever is asked for', async () => {
  const { url } = await serve()
  const { origin, pathname } = new URL(url)
  const wrong = pathname.replace(/.\/$/, pathname.at(-2) === '0' ? '1/' : '0/')
  for (const path of [
    '/',
    '/app.js',
    `${wrong}`,
    `${wrong}events`,
    `${wrong}metrics`,
    '//metrics',
    '/%2e%2e/etc/passwd',
  ]) {
    const response = await fetch(origin + path)
    assert.equal(response.status, 404, path)
    assert.doesNotMatch(await response.text(), /brisk-otter/)
  }
})

test('the page has a strict policy, no cookie, and relative addresses only', async () => {
  const { url } = await serve()
  const response = await fetch(url)
  assert.equal(response.status, 200)
  const policy = response.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'/)
  assert.doesNotMatch(policy, /unsafe|https?:|\*/)
  assert.equal(response.headers.get('set-cookie'), null)
  assert.equal(response.headers.get('referrer-policy'), 'no-referrer')
  const text = await response.text()
  assert.doesNotMatch(text, /(src|href)="\//)
  const bare = await fetch(url.slice(0, -1), { redirect: 'manual' })
  assert.equal(bare.status, 308)
  assert.doesNotMatch(bare.headers.get('location') ?? '', /^\//)
})

test('nothing can be changed', async () => {
  const { url } = await serve()
  for (const method of ['POST', 'PUT', 'DELETE']) assert.equal((await fetch(url, { method })).status, 405)
})

test('a page gets the sections that it asks for, and no others', async () => {
  const { url } = await serve()
  const seen = new Set<string>()
  await sections(url, 'run,overview,nonsense', (name, data) => {
    seen.add(name)
    if (name === 'run') assert.equal((data as { state: string }).state, 'failed')
    return seen.size === 2
  })
  assert.deepEqual([...seen], ['run', 'overview'])
})

test('a run that goes on is followed as its journal grows, and a late page gets all that was before', async () => {
  const path = join(folder, 'growing', 'journal')
  const journal = createJournal(path, { flushEvery: Infinity })
  const alive = { ...runStarted, pid: process.pid } as (typeof sampleRun)[number]
  const rest = sampleRun.slice(1)
  const half = rest.findIndex(event => event.type === 'blocked')
  for (const event of [alive, ...rest.slice(0, half)]) journal.observe(event)
  journal.flushSync()
  const { url } = await serve({ journal: path })
  const states: string[] = []
  await sections(url, 'run', (_name, data) => {
    const { state, counts } = data as { state: string; counts: { submitted: number } }
    states.push(state)
    if (state === 'running' && counts.submitted === 4) {
      for (const event of rest.slice(half)) journal.observe(event)
      journal.flushSync()
    }
    return state === 'failed'
  })
  assert.equal(states[0], 'running')
  await sections(url, 'failures', (_name, data) => {
    assert.equal((data as { count: number }).count, 1)
    return true
  })
  await journal.close()
})

test('metrics are in the format of Prometheus', async () => {
  const { url } = await serve()
  const response = await fetch(`${url}metrics`)
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const text = await response.text()
  for (const line of text.trimEnd().split('\n')) {
    assert.match(
      line,
      /^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="(\\.|[^"\\])*"(,[a-z]+="(\\.|[^"\\])*")*\})? -?[0-9.e+-]+)$/,
    )
  }
  assert.match(text, /millrace_tasks\{run="brisk-otter",kind="project",state="done"\} 2/)
})

test('questions of the page are answered', async () => {
  const { url } = await serve()
  const ask = async (question: string): Promise<unknown> => (await fetch(url + question)).json()
  await ask('section?name=run')
  assert.equal(((await ask('task?id=3')) as { name: string }).name, 'add#3')
  assert.deepEqual(await ask('at?row=0&time=500&reach=1'), { task: 1 })
  assert.deepEqual(await ask('at?row=0&time=1e9&reach=1'), { task: null })
  const tile = (await ask('tile?level=8&index=0&group=0')) as { rows: number[][]; isComplete: boolean }
  assert.equal(tile.rows.length, 2)
  assert.ok(tile.isComplete)
  assert.equal((await fetch(`${url}nonsense`)).status, 404)
  assert.equal((await fetch(`${url}section?name=__proto__`)).status, 404)
})

test('behind ssh and on a node of a batch system, the line for a tunnel is printed', () => {
  assert.equal(tunnelLine(8080, {}), null)
  assert.match(
    tunnelLine(8080, { SSH_CONNECTION: '10.0.0.9 51234 10.0.0.2 2222' }) ?? '',
    /^ssh -N -L 8080:127\.0\.0\.1:8080 -p 2222 \S+@10\.0\.0\.2$/,
  )
  assert.match(tunnelLine(8080, { SLURM_SUBMIT_HOST: 'login1' }) ?? '', / -J \S+@login1 \S+@\S+$/)
})

const CONTROL = { 'Content-Type': 'application/json', 'X-Millrace-Control': '1' }

test('a page acts on the run only by the second token, and no other site can make it', async () => {
  const orders: ControlOrder[] = []
  const path = join(folder, 'controlled', 'journal')
  const alive = { ...runStarted, pid: process.pid } as (typeof sampleRun)[number]
  const { url, controlUrl } = await serve({
    journal: await journalOf(path, [alive]),
    controls: async order => {
      orders.push(order)
      return { done: 'it is done' }
    },
  })
  assert.ok(controlUrl !== null && controlUrl !== url)
  const post = (base: string, headers: Record<string, string>, body: unknown): Promise<Response> =>
    fetch(`${base}control`, { method: 'POST', headers, body: JSON.stringify(body) })
  const pause = { action: 'pause' }
  assert.equal((await post(url, CONTROL, pause)).status, 405)
  assert.equal((await post(controlUrl.replace(/[^/]+\/$/, 'x/'), CONTROL, pause)).status, 404)
  // What a form, an image or a script of another site can send.
  assert.equal((await post(controlUrl, {}, pause)).status, 403)
  assert.equal((await post(controlUrl, { 'Content-Type': 'text/plain' }, pause)).status, 403)
  assert.equal((await post(controlUrl, { ...CONTROL, 'Content-Type': 'text/plain' }, pause)).status, 403)
  assert.equal((await post(controlUrl, { ...CONTROL, 'Sec-Fetch-Site': 'cross-site' }, pause)).status, 403)
  const asked = await fetch(`${controlUrl}control`, { method: 'OPTIONS', headers: { Origin: 'http://evil' } })
  assert.equal(asked.headers.get('access-control-allow-origin'), null)
  for (const wrong of [null, [], {}, { action: 'rm' }, { action: 'cancel' }, { action: 'cancel', task: '1' }])
    assert.equal((await post(controlUrl, CONTROL, wrong)).status, 400, JSON.stringify(wrong))
  assert.equal((await post(controlUrl, CONTROL, { action: 'pause', rest: 'x'.repeat(5000) })).status, 400)
  assert.deepEqual(orders, [])
  const done = await post(controlUrl, { ...CONTROL, 'Sec-Fetch-Site': 'same-origin' }, pause)
  assert.deepEqual(await done.json(), { done: 'it is done' })
  assert.deepEqual(orders, [{ action: 'pause', by: userInfo().username }])
  const may = async (base: string): Promise<unknown> => (await fetch(`${base}control`)).json()
  assert.deepEqual([await may(url), await may(controlUrl)], [{ isAllowed: false }, { isAllowed: true }])
})

test('without --control there is no address to act, and a run that has ended takes no orders', async () => {
  assert.equal((await serve()).controlUrl, null)
  const { controlUrl } = await serve({ controls: async () => ({ done: 'never' }) })
  await fetch(`${controlUrl}section?name=run`)
  const options = { method: 'POST', headers: CONTROL, body: '{"action":"stop"}' }
  assert.deepEqual(await (await fetch(`${controlUrl}control`, options)).json(), {
    problem: 'The run has ended.',
  })
})
