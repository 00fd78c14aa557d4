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
import { CpuTimes, childrenOf, commandLine } from './cpu-times.ts'
import { cleanEnvironment, programPath } from './run-program.ts'

const perSecond = await roundsPerSecond()
interface Program {
  about: string
  args: readonly string[]
}
const program = (tasks: number, seconds: number, about: string): Program => ({
  about: `${tasks.toLocaleString('en')} tasks of about ${about}`,
  args: [String(tasks), String(Math.round(seconds * perSecond))],
})
const LONG = program(2400, 0.005, '5 ms')
const SHORT = program(240_000, 0.000_05, '50 µs')
const BRIEF = program(200, 0.005, '5 ms')
const PAGES = 5
const CPUS = 2

/** What a page asks for: counts of the overview, and the timeline. */
const SECTIONS = 'run,overview,failures,timeline'

/** How often it is looked how much CPU time processes have had, in milliseconds. */
const LOOK_EVERY = 100

interface Cost {
  /** CPU time of the page's process until it served, in milliseconds. */
  start: number
  /** CPU time of the page's process from then to the end of the tasks, in milliseconds. */
  page: number
  /** CPU time of the thread that the program and the runtime have, in milliseconds. */
  coordinator: number
  /** How long it took, in milliseconds. */
  took: number
}

/** Runs the program once, with this many pages open on it; null: without a dashboard. */
async function costOf(program: Program, pages: number | null): Promise<Cost> {
  const cwd = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const stop = new AbortController()
  const begun = performance.now()
  try {
    const child = spawn(process.execPath, [programPath('watched.mjs'), ...program.args], {
      cwd,
      env: {
        ...cleanEnvironment(),
        MILLRACE_CPUS: String(CPUS),
        MILLRACE_PROGRESS: 'none',
        ...(pages === null ? {} : { MILLRACE_DASHBOARD: '1' }),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const pid = child.pid as number
    const had = new CpuTimes()
    const look = (): void => {
      had.look(pid)
      for (const other of childrenOf(pid)) if (isPage(other)) had.look(other)
    }
    const timer = setInterval(look, LOOK_EVERY)
    let printed = ''
    let told = ''
    child.stdout.on('data', chunk => {
      look()
      printed += String(chunk)
    })
    let start = 0
    child.stderr.on('data', chunk => {
      const isNew = !told.includes('http')
      told += String(chunk)
      const url = /http:\/\/\S+\//.exec(told)?.[0]
      if (!isNew || !url) return
      look()
      start = had.total - had.of(pid)
      for (let i = 0; i < (pages ?? 0); i++) void watch(url, stop.signal)
    })
    const code = await new Promise<number | null>(resolve => child.on('close', resolve))
    clearInterval(timer)
    if (code !== 0 || printed === '') throw new Error(told)
    return {
      start,
      page: had.total - had.of(pid) - start,
      coordinator: had.ofMain(pid),
      took: performance.now() - begun,
    }
  } finally {
    stop.abort()
    await rm(cwd, { recursive: true, force: true })
  }
}

/**
 * What the page costs a run, in percent of the time of its CPUs: its own process, and what the thread of the program does for it.
 * Times of whole runs say less: they differ by more than 1% on any machine that does something else as well.
 */
async function percent(program: Program, pages: number): Promise<number> {
  const alone = await costOf(program, null)
  const shown = await costOf(program, pages)
  return (100 * (shown.page + shown.coordinator - alone.coordinator)) / (CPUS * shown.took)
}

const isPage = (pid: number): boolean => commandLine(pid).includes('dashboard-process')

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

const cases = (
  [
    ['cost', LONG],
    ['short', SHORT],
  ] as const
).map(([name, program]): Case => ({
  name,
  unit: '%',
  better: 'lower',
  take: 'median',
  rounds: 3,
  about: `CPU time for a live page, once it is started, in percent of the time of the run's CPUs: ${program.about} on two CPUs`,
  arms: [
    { system: WATCHED, run: () => percent(program, PAGES) },
    { system: UNWATCHED, rounds: 1, run: () => percent(program, 0) },
  ],
  goals: [WATCHED, UNWATCHED].map(of => ({ of, upTo: 1, unit: '%' })),
}))

const START = 'millrace, the process of the page'
cases.push({
  name: 'start',
  unit: 'ms',
  better: 'lower',
  take: 'median',
  rounds: 3,
  about: 'CPU time until the page is served, once for each run',
  arms: [{ system: START, run: async () => (await costOf(BRIEF, 0)).start }],
  goals: [{ of: START, upTo: 100, unit: 'ms' }],
})

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
