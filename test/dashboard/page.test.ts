import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer, connect, type Server, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { RunEvent } from '../../src/core/events.ts'
import { compareRuns } from '../../src/report/compare/compare.ts'
import { writeComparison, writeReport } from '../../src/report/dashboard/report-file.ts'
import { DashboardServer } from '../../src/report/dashboard/server.ts'
import { RunModel } from '../../src/report/dashboard/state/run-model.ts'
import { createJournal } from '../../src/report/journal/writer.ts'
import { runStarted, sampleRun } from '../report/sample-run.ts'
import { temporaryFolder } from '../report/temporary.ts'
import { Running, makeFolder } from '../cli/folder.ts'
import { openPage, skip, violations } from './browser.ts'
import { journalOf, manyTasks } from './journal-of.ts'
import { richRun } from './rich-run.ts'

const folder = temporaryFolder()
const VIEWS = ['overview', 'timeline', 'graph', 'storage', 'streams', 'data', 'nodes']

async function serve(journal: string): Promise<string> {
  const server = new DashboardServer({ journal })
  const { url } = await server.listen()
  after(() => server.close())
  return url
}

/** Both themes, on a laptop and on a phone. */
const LOOKS = [false, true].flatMap(dark => [1280, 390].map(width => ({ dark, width })))

/** That axe finds nothing, and that the page is not wider than the window. */
async function check(page: Page, what: string, { dark, width }: (typeof LOOKS)[number]): Promise<void> {
  assert.deepEqual(await violations(page), [], `${what}, ${dark ? 'dark' : 'light'}, ${width}`)
  const excess = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
  assert.ok(excess <= 0, `${what} is ${excess} pixels too wide on ${width}`)
}

test('every view is drawn in both themes and on a phone, and axe finds nothing', { skip }, async () => {
  const url = await serve(await journalOf(join(folder, 'rich', 'journal'), richRun()))
  for (const look of LOOKS) {
    const { page, complaints } = await openPage(`${url}#overview`, look)
    for (const view of VIEWS) {
      await page.goto(`${url}#${view}`)
      await page.locator(`main[aria-label="${view[0]?.toUpperCase()}${view.slice(1)}"] > div`).waitFor()
      await check(page, view, look)
      if (view === 'storage') await checkTrials(page)
    }
    assert.deepEqual(complaints, [])
    await page.close()
  }
})

/** That each trial is a dot, that the limit that was taken is marked at its place, and that all of it is said in words. */
async function checkTrials(page: Page): Promise<void> {
  const plot = page.locator('.trials .plot')
  assert.equal(await plot.locator('svg .trial').count(), 4)
  assert.equal(
    await plot.locator('svg').getAttribute('aria-label'),
    'Tasks per second of project on nvme: 1 at one time, 8.3; 2 at one time, 25, taken; 4 at one time, 41',
  )
  const middle = async (what: string): Promise<number> => {
    const box = await plot.locator(what).boundingBox()
    assert.ok(box)
    return box.x + box.width / 2
  }
  const diamond = await middle('.diamond')
  assert.ok(Math.abs(diamond - (await middle('.tick.taken'))) < 1)
  assert.ok(Math.abs(diamond - (await middle('svg .verdict'))) < 1)
}

test(
  'a failure is on the first view with the end of its output; a task opens with its story',
  { skip },
  async () => {
    const url = await serve(await journalOf(join(folder, 'failing', 'journal'), sampleRun))
    const { page, complaints } = await openPage(url)
    await page.locator('.failures').waitFor()
    assert.match(await page.locator('.failures').innerText(), /jpeg#5/)
    await page.locator('.failures button.link').first().click()
    await page.locator('.panel .story li').first().waitFor()
    assert.match(await page.locator('.panel').innerText(), /jpeg#5 was submitted by the main program/)
    assert.deepEqual(await violations(page), [])
    await page.keyboard.press('Escape')
    await page.locator('.panel').waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    await page.keyboard.type('add')
    await page.locator('.found button').first().waitFor()
    await page.keyboard.press('Enter')
    await page.locator('.panel h2', { hasText: 'add#3' }).waitFor()
    assert.match(page.url(), /task=3$/)
    assert.deepEqual(complaints, [])
  },
)

test(
  'a timeline of a million tasks is drawn, moved and asked by keyboard and pointer',
  { skip },
  async () => {
    const url = await serve(await journalOf(join(folder, 'many', 'journal'), manyTasks(1_000_000)))
    const { page, complaints } = await openPage(`${url}#timeline`)
    await page.locator('canvas[data-tiles]:not([data-tiles="0"])').waitFor()
    await page.locator('.numbers', { hasText: '1,000,000 tasks' }).waitFor()
    const canvas = page.locator('canvas')
    await canvas.focus()
    for (const key of ['+', '+', '+', 'ArrowRight', 'd', '+', '+', '+', '+', '+', '+', '+', '+', '+', '+'])
      await page.keyboard.press(key)
    for (let i = 0; i < 20; i++) await page.keyboard.press('+')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    // The panel opens at once; the name comes with the answer of the server.
    await page.locator('.panel', { hasText: /(?:read|compute|store)#\d+/ }).waitFor()
    assert.deepEqual(complaints, [])
    await page.close()
  },
)

/** A wire that can be cut. */
async function wireTo(port: number): Promise<{ port: number; cut(): void; mend(): Promise<void> }> {
  const sockets = new Set<Socket>()
  let server: Server
  const accept = (): Server =>
    createServer(socket => {
      const other = connect(port, '127.0.0.1')
      for (const one of [socket, other]) {
        sockets.add(one)
        one.on('error', () => {}).on('close', () => sockets.delete(one))
      }
      socket.pipe(other).pipe(socket)
    })
  server = accept()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const own = (server.address() as AddressInfo).port
  const cut = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  after(cut)
  return {
    port: own,
    cut,
    mend: () => {
      server = accept()
      return new Promise<void>(resolve => server.listen(own, '127.0.0.1', resolve))
    },
  }
}

test(
  'pages follow a run, say when they are cut off, and come back; two show the same',
  { skip },
  async () => {
    const path = join(folder, 'growing', 'journal')
    const journal = createJournal(path, { flushEvery: Infinity })
    const rest = sampleRun.slice(1)
    const half = rest.findIndex(event => event.type === 'blocked')
    for (const event of [{ ...runStarted, pid: process.pid } as RunEvent, ...rest.slice(0, half)])
      journal.observe(event)
    journal.flushSync()
    const url = new URL(await serve(path))
    const wire = await wireTo(Number(url.port))
    const first = (await openPage(url.href)).page
    url.port = String(wire.port)
    const second = (await openPage(url.href)).page
    for (const page of [first, second]) await page.locator('.badge', { hasText: 'running' }).waitFor()
    wire.cut()
    await second.locator('.badge', { hasText: 'connection lost' }).waitFor()
    for (const event of rest.slice(half)) journal.observe(event)
    journal.flushSync()
    await first.locator('.badge', { hasText: 'failed' }).waitFor()
    await wire.mend()
    await second.locator('.badge', { hasText: 'failed' }).waitFor()
    assert.equal(await second.locator('.badge', { hasText: 'connection lost' }).count(), 0)
    await journal.close()
  },
)

/** A name without a place to break it. */
const LONG = 'a'.repeat(180)

test('hostile names and output are shown as text, and nothing of them runs', { skip }, async () => {
  const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
  const events = sampleRun.map((event): RunEvent => {
    if (event.type === 'run-started') return { ...event, run: 'evil', program: evil, cwd: evil }
    if (event.type === 'kind-defined')
      return { ...event, name: event.kind === 1 ? LONG : `${evil}${event.name}` }
    if (event.type === 'failed')
      return {
        ...event,
        failure: { ...event.failure, message: evil, tail: `${evil}\n\u001b[31m\u202egnp.exe`, command: evil },
      }
    if (event.type === 'note') return { ...event, text: evil }
    return event
  })
  const journal = await journalOf(join(folder, 'evil', 'journal'), events)
  const url = await serve(journal)
  const report = join(folder, 'evil.html')
  await writeReport(journal, report)
  const addresses = [...VIEWS.map(view => `${url}#${view}`), `${url}#overview?task=5`, `file://${report}`]
  for (const [address, width] of addresses.flatMap(one => [1280, 390].map(wide => [one, wide] as const))) {
    const { page, complaints } = await openPage(address, { width })
    await page.locator('main > div, main > p').first().waitFor()
    await page.locator('h1').waitFor()
    const excess = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    assert.ok(excess <= 0, `${address} is ${excess} pixels too wide on ${width}`)
    const over = await page.evaluate<number>(
      `Math.max(0, ...[...document.querySelectorAll('th.kind')].map(cell => cell.scrollWidth - cell.clientWidth))`,
    )
    assert.ok(over <= 0, `the name of a kind is ${over} pixels wider than its column`)
    assert.equal(await page.evaluate(() => (globalThis as { hacked?: number }).hacked), undefined)
    assert.equal(await page.locator('img').count(), 0)
    assert.deepEqual(complaints, [])
    await page.close()
  }
})

test(
  'a report opens without a server, has the timeline and the failures, and axe finds nothing',
  { skip },
  async () => {
    const report = join(folder, 'run.html')
    await writeReport(await journalOf(join(folder, 'reported', 'journal'), richRun()), report)
    for (const look of LOOKS) {
      const { page, complaints } = await openPage(`file://${report}`, look)
      await page.locator('canvas[data-tiles]:not([data-tiles="0"])').waitFor()
      const text = await page.locator('main').innerText()
      for (const part of ['Timeline', 'Storage', 'Kinds', 'Critical path', 'About the run'])
        assert.ok(text.includes(part), part)
      await check(page, 'the report', look)
      assert.deepEqual(complaints, [])
      await page.close()
    }
  },
)

test('the page of a comparison names the kinds, and axe finds nothing', { skip }, async () => {
  const file = join(folder, 'compare.html')
  const model = (): RunModel => {
    const run = new RunModel()
    for (const event of richRun()) run.observe(event)
    return run
  }
  await writeComparison({ comparison: compareRuns(model(), model()) }, file)
  for (const look of LOOKS) {
    const { page, complaints } = await openPage(`file://${file}`, look)
    await page.locator('main', { hasText: 'project' }).waitFor()
    await check(page, 'the comparison', look)
    assert.deepEqual(complaints, [])
    await page.close()
  }
})

const PROGRAM = `
import { command, task, main, IN, FILE_OUT, FILE_IN } from 'millrace'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
const write = task({ io: true, params: [IN, FILE_OUT] }, async (n: number, path: string) => writeFile(path, String(n)))
const count = command({ name: 'count', params: [FILE_IN, FILE_OUT] }, (a: string, b: string) => ['sh', '-c', 'wc -c < "$1" > "$2"', 'sh', a, b])
const gate = command({ name: 'gate', params: [IN] }, (name: string) => ['sh', '-c', 'while [ ! -e ' + name + ' ]; do sleep 0.05; done'])
main(async () => {
  for (let i = 0; i < 5; i++) {
    write(i, 'in' + i)
    count('in' + i, 'out' + i)
  }
  await gate('go')
})
`

test(
  'a live run of commands and I/O tasks is on the page while it runs; a wrong token shows nothing',
  { skip },
  async () => {
    const home = makeFolder({ 'app.ts': PROGRAM })
    const running = new Running(home, ['run', 'app.ts', '--cpus', '2', '--dashboard', '--progress', 'plain'])
    await running.printed('stderr', 'dashboard  ')
    const url = /http:\S+/.exec(running.stderr)?.[0] ?? ''
    const { page, complaints } = await openPage(url)
    await page.locator('.badge', { hasText: 'running' }).waitFor()
    await page
      .locator('.kinds tbody tr', { hasText: 'count' })
      .locator('td', { hasText: /^5$/ })
      .first()
      .waitFor()
    const wrong = await openPage(url.replace(/.\/$/, url.at(-2) === '0' ? '1/' : '0/'))
    assert.doesNotMatch(await wrong.page.locator('body').innerText(), /count/)
    writeFileSync(join(home, 'go'), '')
    assert.equal((await running.ended).code, 0, running.stderr)
    await page.locator('.badge', { hasText: 'done' }).waitFor()
    assert.deepEqual(
      complaints.filter(text => !/ERR_CONNECTION|ERR_INCOMPLETE|Failed to load/.test(text)),
      [],
    )
  },
)

test(
  'a report is printed in dark ink on white, and its tables are as wide as the paper',
  { skip },
  async () => {
    const report = join(folder, 'printed.html')
    await writeReport(await journalOf(join(folder, 'printed', 'journal'), richRun()), report)
    const { page } = await openPage(`file://${report}`, { width: 718, dark: true })
    await page.locator('canvas[data-tiles]:not([data-tiles="0"])').waitFor()
    // What is on paper is seen after its styles are in force and before the page is as it was.
    await page.emulateMedia({ media: 'print' })
    await page.evaluate(`dispatchEvent(new Event('beforeprint'))`)
    const printed = await page.evaluate<{ ink: string; corner: number[]; excess: number }>(`(() => {
    const canvas = document.querySelector('canvas')
    return {
      ink: getComputedStyle(document.querySelector('h1')).color,
      corner: [...canvas.getContext('2d').getImageData(1, 1, 1, 1).data],
      excess: Math.max(...[...document.querySelectorAll('.scroll')].map(one => one.scrollWidth - one.clientWidth)),
    }
  })()`)
    assert.deepEqual(printed, { ink: 'rgb(23, 32, 42)', corner: [255, 255, 255, 255], excess: 0 })
    await page.evaluate(`dispatchEvent(new Event('afterprint'))`)
    assert.equal(await page.evaluate('document.documentElement.dataset.theme'), undefined)
  },
)
