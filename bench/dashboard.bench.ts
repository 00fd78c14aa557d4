import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { DashboardServer } from '../src/report/dashboard/server.ts'
import { journalOf, manyTasks } from '../test/dashboard/journal-of.ts'
import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import { roundsPerSecond } from './io/calibrate.ts'
import { cleanEnvironment, programPath } from './run-program.ts'

const TASKS = 1600
const ROUNDS = Math.round(0.005 * (await roundsPerSecond()))
const PAGES = 5

/** What a page asks for: counts of the overview, and the timeline. */
const SECTIONS = 'run,overview,failures,timeline'

/** Runs the program once, with this many pages open on it; null: without a dashboard. */
async function seconds(pages: number | null): Promise<number> {
  const cwd = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const stop = new AbortController()
  try {
    const child = spawn(process.execPath, [programPath('watched.mjs'), String(TASKS), String(ROUNDS)], {
      cwd,
      env: {
        ...cleanEnvironment(),
        MILLRACE_CPUS: '2',
        MILLRACE_PROGRESS: 'none',
        ...(pages === null ? {} : { MILLRACE_DASHBOARD: '1' }),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let printed = ''
    let told = ''
    child.stdout.on('data', chunk => (printed += String(chunk)))
    child.stderr.on('data', chunk => {
      const isNew = !told.includes('http')
      told += String(chunk)
      const url = /http:\/\/\S+\//.exec(told)?.[0]
      if (isNew && url) for (let i = 0; i < (pages ?? 0); i++) void watch(url, stop.signal)
    })
    const code = await new Promise<number | null>(resolve => child.on('close', resolve))
    if (code !== 0) throw new Error(told)
    return (JSON.parse(printed.trim()) as { seconds: number }).seconds
  } finally {
    stop.abort()
    await rm(cwd, { recursive: true, force: true })
  }
}

/** Reads all that a page would get. */
async function watch(url: string, signal: AbortSignal): Promise<void> {
  try {
    const response = await fetch(`${url}events?sections=${SECTIONS}`, { signal })
    for await (const _chunk of response.body as unknown as AsyncIterable<Uint8Array>);
  } catch {
    // The run has ended.
  }
}

const WATCHED = 'millrace, five pages'
const UNWATCHED = 'millrace, no page open'
const ALONE = 'without a dashboard'

const cases: Case[] = [
  {
    name: 'cost',
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 7,
    about: `${TASKS} tasks of about 5 ms on two CPUs, with a live page and ${PAGES} pages that read all of it`,
    arms: [
      { system: WATCHED, run: () => seconds(PAGES) },
      { system: UNWATCHED, run: () => seconds(0) },
      { system: ALONE, run: () => seconds(null) },
    ],
    goals: [
      { of: WATCHED, against: ALONE, atMost: 1.01, orTie: true },
      { of: UNWATCHED, against: ALONE, atMost: 1.01, orTie: true },
    ],
  },
]

/** A journal of a million tasks, and a page on it. */
async function pageOfMillion(): Promise<{ url: string; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const server = new DashboardServer({
    journal: await journalOf(join(folder, 'journal'), manyTasks(1_000_000)),
  })
  const { url } = await server.listen()
  const close = async (): Promise<void> => {
    await server.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { url, close }
}

/** Zooms and pans for 240 frames in a real browser. Gives the time that 95 of 100 frames stay below. */
async function frames(): Promise<number> {
  const { url, close } = await pageOfMillion()
  const browser = await chromium.launch({ executablePath: CHROMIUM as string, args: BROWSER_ARGS })
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
    await page.goto(`${url}#timeline`)
    await page.locator('.numbers', { hasText: '1,000,000 of' }).waitFor({ timeout: 300_000 })
    // As text: this is not a page, and its names are not known here.
    const all = await page.evaluate<number[]>(`(async () => {
      const canvas = document.querySelector('canvas')
      const box = canvas.getBoundingClientRect()
      const at = { clientX: box.left + 640, clientY: box.top + 60, bubbles: true, cancelable: true }
      const times = []
      for (let i = 0; i < 240; i++) {
        await new Promise(resolve => requestAnimationFrame(resolve))
        times.push(Number(canvas.dataset.frameMs))
        const zoom = { deltaY: i < 60 ? -60 : 60, ctrlKey: true, ...at }
        const pan = { deltaX: i % 80 < 40 ? 40 : -40, shiftKey: true, ...at }
        canvas.dispatchEvent(new WheelEvent('wheel', i < 120 ? zoom : pan))
      }
      return times
    })()`)
    const sorted = all.sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length * 0.95)] as number
  } finally {
    await browser.close()
    await close()
  }
}

const CHROMIUM = [
  process.env['CHROMIUM'] ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find(existsSync)
const BROWSER_ARGS = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']
const FRAME = 'millrace, a frame of a million tasks'
const BUDGET = 'a screen with 60 frames per second'

cases.push({
  name: 'frames',
  unit: 'ms',
  better: 'lower',
  take: 'median',
  rounds: 3,
  about:
    'time to draw a frame of the timeline while it is zoomed and moved, in Chromium without a GPU; 95 of 100 frames take less',
  arms: [
    { system: FRAME, missing: CHROMIUM ? undefined : 'Chromium is not installed', run: frames },
    { system: BUDGET, run: async () => 1000 / 60 },
  ],
  goals: [{ of: FRAME, against: BUDGET, atMost: 1 }],
})

await bench('dashboard', cases)
