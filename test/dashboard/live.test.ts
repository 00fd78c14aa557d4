import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { DashboardServer } from '../../src/report/dashboard/server.ts'
import { Running, makeFolder } from '../cli/folder.ts'
import { sampleRun } from '../report/sample-run.ts'
import { temporaryFolder } from '../report/temporary.ts'
import { openPage, skip, violations } from './browser.ts'
import { journalOf } from './journal-of.ts'
import { behindProxy } from './proxy.ts'

const GATE = `['sh', '-c', 'while [ ! -e go ]; do sleep 0.05; done']`

const CONTROLLED = `
import { command, main, IN } from 'millrace'
const gate = command({ name: 'gate', params: [IN] }, (n: number) => ${GATE})
const late = command({ name: 'late', params: [IN] }, (n: number) => ['touch', 'late' + n])
main(async () => {
  gate(1)
  for (let i = 0; i < 4; i++) late(i)
})
`

const addressOf = (text: string, label: string): string =>
  new RegExp(`^ *${label} +(http\\S+)`, 'm').exec(text)?.[1] ?? ''

const WAYS: [string, (address: string) => string | Promise<string>][] = [
  ['on the page', address => address],
  ['behind a proxy that adds a path', behindProxy],
]

for (const [where, reach] of WAYS) {
  const name = `a run is paused, a task cancelled and others reordered ${where}, and the journal says who did it`
  test(name, { skip }, async () => {
    const home = makeFolder({ 'app.ts': CONTROLLED })
    const args = ['--cpus', '1', '--progress', 'plain', '--dashboard', '--control']
    const running = new Running(home, ['run', 'app.ts', ...args])
    await running.printed('stderr', 'act on the run')
    const looking = (await openPage(await reach(addressOf(running.stderr, 'dashboard')))).page
    const address = await reach(addressOf(running.stderr, 'control'))
    const { page, complaints } = await openPage(address)
    await page.getByRole('button', { name: 'Pause' }).click()
    for (const one of [page, looking]) await one.locator('.badge', { hasText: 'paused' }).waitFor()
    assert.equal(await looking.getByRole('button', { name: 'Go on' }).count(), 0)
    await page.goto(`${address}#overview?task=3`)
    await page.getByLabel('Priority').fill('7')
    await page.getByLabel('all of its kind').check()
    await page.getByRole('button', { name: 'Set' }).click()
    await page.locator('.panel .told', { hasText: 'gave 4 late tasks priority 7' }).waitFor()
    assert.deepEqual(await violations(page), [])
    await page.getByRole('button', { name: 'Cancel task' }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.locator('.panel', { hasText: 'cancelled it on the live page' }).waitFor()
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.locator('.badge', { hasText: 'running' }).waitFor()
    writeFileSync(join(home, 'go'), '')
    // A task that a person took out is missing from the results: the program hears of it.
    const { code, stderr } = await running.ended
    assert.equal(code, 1, stderr)
    const who = /(\S+) paused the run: nothing starts/.exec(stderr)?.[1]
    assert.ok(who)
    for (const text of ['gave 4 late tasks priority 7', 'cancelled late#3', 'let the run go on'])
      assert.ok(stderr.includes(`${who} ${text}`), stderr)
    const story = new Running(home, ['story', '3'])
    assert.match((await story.ended).stdout, new RegExp(`${who} cancelled it on the live page`))
    assert.deepEqual(
      complaints.filter(text => !/ERR_CONNECTION|ERR_INCOMPLETE|Failed to load/.test(text)),
      [],
    )
  })
}

const STREAMING = `
import { command, main, stream, FILE_IN, FILE_OUT } from 'millrace'
const make = command({ name: 'make', params: [FILE_OUT] }, (path: any) => ['sh', '-c', '(head -c 5000 /dev/zero; while [ ! -e "$2" ]; do sleep 0.05; done) > "$1"', 'sh', path, process.cwd() + '/go'])
const use = command({ name: 'use', params: [FILE_IN, FILE_OUT] }, (from: any, to: string) => ['sh', '-c', 'wc -c < "$1" > "$2"', 'sh', from, to])
main(async () => {
  make(stream('grow.dat', { commit: 'on_close', fire: 'no_update' }))
  use('grow.dat', 'size.txt')
})
`

test(
  'a page attaches to a run that was started without one, and shows its streams: how far, who waits for whom',
  { skip },
  async () => {
    const home = makeFolder({ 'app.ts': STREAMING })
    const running = new Running(home, ['run', 'app.ts', '--progress', 'plain'])
    await running.printed('stderr', 'on 1 node')
    const attached = new Running(home, ['dashboard'])
    await attached.printed('stdout', 'dashboard  ')
    const { page } = await openPage(`${addressOf(attached.stdout, 'dashboard')}#streams`)
    const card = page.locator('.card', { hasText: 'grow.dat' })
    await card.locator('.frontier', { hasText: '5.0 kB' }).waitFor()
    await page.locator('.card', { hasText: 'use#2 waits for more from make#1' }).waitFor()
    assert.deepEqual(await violations(page), [])
    writeFileSync(join(home, 'go'), '')
    assert.equal((await running.ended).code, 0, running.stderr)
    await card.locator('.badge', { hasText: 'committed' }).waitFor()
    attached.process.kill('SIGINT')
    assert.equal((await attached.ended).code, 0)
  },
)

test('a simulated run is served until Ctrl-C', { skip }, async () => {
  const home = makeFolder({
    'app.ts': `
import { task, main } from 'millrace'
const square = task({ name: 'square' }, (x: number) => x * x)
main(async () => { for (let i = 0; i < 3; i++) square(i) })
`,
  })
  assert.equal((await new Running(home, ['run', 'app.ts']).ended).code, 0)
  const running = new Running(home, ['simulate', 'last', '--dashboard'])
  await running.printed('stdout', 'dashboard  ')
  const { page } = await openPage(addressOf(running.stdout, 'dashboard'))
  await page.locator('h1', { hasText: 'simulated' }).waitFor()
  await page.locator('.kinds', { hasText: 'square' }).waitFor()
  running.process.kill('SIGINT')
  assert.equal((await running.ended).code, 0, running.stderr)
})

async function serveSample(name: string): Promise<string> {
  const server = new DashboardServer({ journal: await journalOf(join(temporaryFolder(), name), sampleRun) })
  after(() => server.close())
  return (await server.listen()).url
}

test('the page works behind a proxy that adds a path', { skip }, async () => {
  const address = await behindProxy(await serveSample('journal'))
  const { page, complaints } = await openPage(`${address}#overview?task=5`)
  await page.locator('.panel .story li').first().waitFor()
  await page.goto(`${page.url().replace(/#.*/, '')}#timeline`)
  await page.locator('canvas[data-tiles]:not([data-tiles="0"])').waitFor()
  for (const view of ['Graph', 'Storage', 'Streams', 'Data', 'Nodes']) {
    await page.getByRole('link', { name: view, exact: true }).click()
    await page.locator(`main[aria-label="${view}"] :not(.empty)`).first().waitFor()
  }
  assert.ok(page.url().startsWith(address), page.url())
  assert.deepEqual(complaints, [])
  // Without the last slash, the answer leads to the page below the same path.
  const bare = address.replace(/\/$/, '')
  const led = await fetch(bare)
  assert.deepEqual([led.status, led.url], [200, `${bare}/`])
  assert.match(await (await fetch(`${bare}/metrics`)).text(), /^# TYPE millrace_/m)
})

test('every view is reached and used by keyboard alone', { skip }, async () => {
  const { page } = await openPage(await serveSample('keys'))
  await page.locator('.overview').waitFor()
  const views = ['Overview', 'Timeline', 'Graph', 'Storage', 'Streams', 'Data', 'Nodes']
  for (const [i, view] of views.entries()) {
    await page.keyboard.press(String(i + 1))
    await page.locator(`main[aria-label="${view}"]`).waitFor()
  }
  await page.keyboard.press('3')
  const box = page.locator('.graph .node').first()
  await box.focus()
  await page.keyboard.press('Enter')
  await page.locator('.panel .story li').first().waitFor()
  // The panel has the focus, and Escape leads back.
  assert.equal(await page.evaluate('document.activeElement.closest(".panel") !== null'), true)
  await page.keyboard.press('Escape')
  await page.locator('.panel').waitFor({ state: 'detached' })
  await page.keyboard.press('?')
  await page.locator('.keys').waitFor()
})
