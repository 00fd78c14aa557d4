import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
      { system: 'millrace, no page open', run: () => seconds(0) },
      { system: ALONE, run: () => seconds(null) },
    ],
    goals: [{ of: WATCHED, against: ALONE, atMost: 1.01, orTie: true }],
  },
]

await bench('dashboard', cases)
