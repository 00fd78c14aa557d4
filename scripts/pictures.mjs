// `node scripts/pictures.mjs [FOLDER]`: takes pictures of the live page, of every view in both themes, on a laptop and on a
// phone, while a run goes on and after it. Look at them after a change of the page. Those that the docs show go to docs/.
// Needs a build and Chromium.
import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { chromium } from 'playwright-core'
import { root } from './shared.mjs'

const VIEWS = ['overview', 'storage', 'data', 'streams', 'timeline', 'graph', 'nodes']
const LOOKS = ['light', 'dark'].flatMap(theme => [
  { theme, name: 'laptop', width: 1180, height: 760 },
  { theme, name: 'phone', width: 390, height: 844 },
])
/** By the picture of the docs, the view and the state of the run that it shows; taken on a laptop. */
const IN_DOCS = {
  'dashboard.png': 'live-storage-light',
  'dashboard-overview.png': 'live-overview-light',
  'dashboard-timeline.png': 'live-timeline-dark',
}

const out = resolve(process.argv[2] ?? mkdtempSync(join(tmpdir(), 'millrace-pictures-')))
const home = mkdtempSync(join(tmpdir(), 'survey-'))
mkdirSync(out, { recursive: true })
mkdirSync(join(home, 'node_modules'))
symlinkSync(root, join(home, 'node_modules', 'millrace'))
for (const folder of ['fast', 'slow']) mkdirSync(join(home, folder))
writeFileSync(join(home, 'package.json'), '{"type":"module"}')
copyFileSync(join(root, 'scripts', 'pictures', 'survey.ts'), join(home, 'survey.ts'))
const storage = [
  { name: 'nvme', path: join(home, 'fast'), bandwidth: '400MB/s', capacity: '80MB' },
  { name: 'disk', path: join(home, 'slow'), bandwidth: '200MB/s' },
]
writeFileSync(join(home, 'machine.yaml'), JSON.stringify({ nodes: [{ name: 'lab', cpus: 5, storage }] }))

/** Starts millrace there; resolves to the address of its page, once it is printed. */
async function start(args) {
  const child = spawn(process.execPath, [join(root, 'bin', 'millrace.js'), ...args], {
    cwd: home,
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise(done => child.on('close', done))
  let text = ''
  const url = await new Promise((done, fail) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', chunk => {
        text += chunk
        const found = /^ *dashboard +(http\S+)/m.exec(text)
        if (found) done(found[1])
      })
    }
    void ended.then(() => fail(new Error(text)))
  })
  return { url, child, ended }
}

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? places.find(place => existsSync(place)),
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
})

async function open(url, { theme, width, height }) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme })
  const page = await context.newPage()
  await page.goto(url)
  await page.locator('main > div').waitFor()
  return page
}

async function take(page, url, view, name, isWhole) {
  await page.goto(`${url}#${view}`)
  await page.locator('main > :not(.empty)').first().waitFor()
  if (view === 'timeline') await page.locator('canvas[data-tiles]:not([data-tiles="0"])').waitFor()
  // What it draws with the first message is enough for a picture; charts follow in the next frame.
  await page.waitForTimeout(300)
  await page.screenshot({ path: join(out, `${name}.png`), fullPage: isWhole })
  const wanted = Object.entries(IN_DOCS).find(([, one]) => one === name)
  if (wanted) copyFileSync(join(out, `${name}.png`), join(root, 'docs', wanted[0]))
}

const fields = ['--', '110']
const options = [
  '--machine',
  'machine.yaml',
  '--flush',
  'always',
  '--max-intermediate',
  '8MB',
  '--progress',
  'none',
]
const live = await start(['run', 'survey.ts', ...options, '--dashboard', ...fields])
// On a phone they are taken when it has ended: there would be too many for the time that it takes.
const laptops = LOOKS.filter(look => look.name === 'laptop')
const pages = await Promise.all(laptops.map(look => open(live.url, look)))
await pages[0].locator('.failures').waitFor()
for (const view of VIEWS)
  for (const [i, look] of laptops.entries())
    await take(pages[i], live.url, view, `live-${view}-${look.theme}`, false)
await live.ended

const over = await start(['dashboard'])
for (const look of LOOKS) {
  const page = await open(over.url, look)
  for (const view of [...VIEWS, 'overview?task=12', 'graph?task=12'])
    await take(
      page,
      over.url,
      view,
      `over-${view.replace('?task=', '-task')}-${look.theme}${look.name === 'phone' ? '-phone' : ''}`,
      true,
    ).catch(error => console.error(view, String(error).split('\n')[0]))
}
over.child.kill('SIGINT')

const cluster = await start([
  'run',
  'survey.ts',
  '--nodes',
  'local:2',
  '--progress',
  'none',
  '--dashboard',
  '--',
  '40',
  'cluster',
])
const nodes = await open(cluster.url, LOOKS[0])
for (const view of ['overview', 'timeline', 'nodes'])
  await take(nodes, cluster.url, view, `cluster-${view}-light`, true)
await cluster.ended
await browser.close()
console.log(out)
