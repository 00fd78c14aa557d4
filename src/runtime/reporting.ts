import { mkdirSync, readdirSync } from 'node:fs'
import { MillraceError } from '../core/errors.ts'
import type { Observer, RunEvent } from '../core/events.ts'
import { Watchdog } from '../node/processes/watchdog.ts'
import type { Journal } from '../report/journal/writer.ts'
import { createJournal } from '../report/journal/writer.ts'
import { newRunName } from '../report/journal/run-names.ts'
import { KEPT_RUNS, runPaths, runsFolder } from '../report/journal/run-paths.ts'
import { chooseMode } from '../report/terminal/terminal-mode.ts'
import type { Mode } from '../report/terminal/terminal-mode.ts'
import type { Terminal } from '../report/terminal/terminal.ts'
import { clean } from '../report/text.ts'
import type { RunOptions } from './run-options.ts'
import { startDashboard, type Dashboard } from './dashboard.ts'
import { ProgramObservers } from './observers.ts'
import type { RunControl } from './run-control.ts'
import { divert, processStreams, writerOf } from './standard-output.ts'
import type { StandardStreams } from './standard-output.ts'

/** The observers of a run, and what is written when it has ended. */
export class Reporting {
  readonly run: string
  readonly logs: string | null
  readonly mode: Mode
  readonly #options: RunOptions
  readonly #streams: StandardStreams
  /** Fixed now, because the program may change its working directory. */
  readonly #base: string
  /** There may be more runs than are kept. */
  readonly #hasMany: boolean
  readonly #journal: Journal | null
  readonly #journalPath: string
  /** Writes of the display itself, which bypass the diversion. */
  readonly #out: (text: string) => unknown
  readonly #releases: (() => void)[] = []
  /** Null until it is loaded; events and text that come earlier are kept. */
  #terminal: Terminal | null = null
  readonly #early: (RunEvent | string)[] = []
  #loading: Promise<void> | null = null
  /** Observers of the program. */
  readonly program: ProgramObservers
  #dashboard: Dashboard | null = null

  constructor(options: RunOptions, streams = processStreams) {
    this.#options = options
    this.#streams = streams
    const { stdout, stderr } = streams
    this.program = new ProgramObservers(options.observers ?? [], text => this.#warn(text))
    this.#base = options.folder ?? process.cwd()
    const names = namesIn(runsFolder(this.#base))
    this.#hasMany = names.length >= KEPT_RUNS
    this.run = newRunName(names, Math.random)
    const paths = runPaths(this.#base, this.run)
    this.#journalPath = paths.journal
    const { mode } = chooseMode({
      asked: options.progress ?? (options.launched ? undefined : embeddedMode()),
      isTTY: stderr.isTTY === true,
      env: process.env,
    })
    this.mode = mode
    this.#journal = options.journal === false ? null : openJournal(paths.journal, paths.logs)
    this.logs = this.#journal ? paths.logs : null
    if (!this.#journal && readsJournal(options)) throw noJournalFor(options, paths.folder)
    this.#out = writerOf(mode === 'json' ? stdout : stderr)
    this.#divert()
    if (this.mode !== 'none') this.#loading = this.#loadTerminal()
    if (this.#journal && this.mode !== 'json' && names.length > 0) void this.#tellKilled()
    if (options.dashboard && this.#journal) this.#dashboard = this.#serve(paths.journal)
  }

  /** True when a journal was wanted and could not be had. */
  get isUnrecorded(): boolean {
    return this.#journal === null && this.#options.journal !== false
  }

  /** Null when there is no observer: then events are not even made. */
  get observer(): Observer | null {
    const own = this.#own
    const { any, observe } = this.program
    if (!any) return own
    return own
      ? event => {
          own(event)
          observe(event)
        }
      : observe
  }

  /** Journal and display. */
  get #own(): Observer | null {
    const journal = this.#journal
    const showsWarnings = this.showsWarnings
    if (this.mode === 'none' && !showsWarnings) return journal ? journal.observe : null
    return event => {
      journal?.observe(event)
      if (this.#terminal) this.#terminal.observe(event)
      else if (!showsWarnings) this.#early.push(event)
      else if (event.type === 'note' && event.level === 'warning') this.#warn(event.text)
    }
  }

  /** There is no display, and silence was not asked for: warnings are then printed. */
  get showsWarnings(): boolean {
    return this.mode === 'none' && this.#options.progress === undefined
  }

  #warn(text: string): void {
    const line = text.replaceAll(/\s*\n\s*/g, ': ')
    if (this.showsWarnings) this.#out(`millrace: warning: ${clean(line)}\n`)
    else this.#say('warning', line)
  }

  /** Where a display is repainted, or events are all there may be, prints of the program go through it. */
  #divert(): void {
    const print = (text: string): void => {
      if (this.#terminal) this.#terminal.above(text)
      else this.#early.push(text)
    }
    const { stdout, stderr } = this.#streams
    if (this.mode === 'json') this.#releases.push(divert(stdout, print))
    if (this.mode !== 'live') return
    // Results that go to a file while progress goes to the terminal are left alone.
    if (this.#streams.goToSamePlace()) this.#releases.push(divert(stdout, print))
    this.#releases.push(divert(stderr, print))
  }

  #release(): void {
    for (const release of this.#releases.splice(0)) release()
  }

  #serve(journal: string): Dashboard {
    const { dashboardPort, control = false } = this.#options
    const port = dashboardPort === undefined ? {} : { port: Number(dashboardPort) }
    return startDashboard({ journal, control, ...port }, lines => {
      const text = lines.map(line => `  ${line}\n`).join('')
      // It was asked for: where there is no display, it is written by itself.
      if (this.#terminal && this.mode !== 'json') this.#terminal.above(text)
      else writerOf(this.#streams.stderr)(text)
    })
  }

  /** Pages may act on the run, if that was asked for. */
  controlBy(control: RunControl): void {
    if (!this.#dashboard || !this.#options.control) return
    this.#dashboard.carryOut = order => control.carryOut(order)
    this.#dashboard.onGone = () => control.pageGone()
  }

  /** Machines are measured while a page is open. */
  measureBy(measure: (isWanted: boolean) => void): void {
    if (this.#dashboard) this.#dashboard.onWatched = measure
  }

  get journalPath(): string | null {
    return this.#journal ? this.#journalPath : null
  }

  async close(): Promise<void> {
    await this.#loading
    await this.#journal?.close()
    this.#dashboard?.end()
    await this.#terminal?.close()
    this.#release()
    if (!this.#journal) return
    const { error } = this.#journal
    if (error && madeFromJournal(this.#options)) throw error
    if (error) this.#warn(error.message)
    await this.#exports()
    if (!this.#hasMany) return
    const { pruneRuns } = await import('../report/journal/runs.ts')
    await pruneRuns(this.#base).catch(() => [])
  }

  /** For the end of the process, where nothing can be waited for. */
  closeNow(): void {
    this.#journal?.flushSync()
    this.#terminal?.closeSync()
    this.#release()
    for (const item of this.#early.splice(0)) {
      if (this.mode === 'json') {
        this.#out(`${JSON.stringify(typeof item === 'string' ? { type: 'printed', text: item } : item)}\n`)
      } else if (typeof item === 'string') this.#out(item)
    }
  }

  async #exports(): Promise<void> {
    const { trace, graph, picture, paraver, otlp } = this.#options
    if (!madeFromJournal(this.#options)) return
    const { readJournal } = await import('../report/journal/reader.ts')
    const watchdog = await this.#guardParts()
    if (trace) {
      const { writeTrace } = await import('../report/export/trace.ts')
      await writeTrace(readJournal(this.#journalPath), trace)
      this.#say('trace', `${trace} (open it in ui.perfetto.dev)`)
    }
    if (graph) {
      const { writeGraph } = await import('../report/export/graph.ts')
      await writeGraph(readJournal(this.#journalPath), graph)
      this.#say('graph', graph)
    }
    if (picture) {
      const { writePicture } = await import('../report/export/picture.ts')
      await writePicture(readJournal(this.#journalPath), picture)
      this.#say('picture', picture)
    }
    if (paraver) {
      const { writeParaver } = await import('../report/export/paraver.ts')
      const journal = this.#journalPath
      await writeParaver(() => readJournal(journal), paraver)
      this.#say('paraver', `${paraver}, with its .pcf and .row`)
    }
    watchdog.end()
    if (otlp) {
      const { sendOtlp } = await import('../report/export/otlp.ts')
      const { spans } = await sendOtlp(readJournal(this.#journalPath), otlp)
      this.#say('otlp', `${spans} spans sent to ${otlp}`)
    }
  }

  /** A process that is killed while it writes leaves no part of a file. */
  async #guardParts(): Promise<Watchdog> {
    const { partOf } = await import('../report/export/write-whole.ts')
    const watchdog = new Watchdog(`export-${process.pid}-${this.run}`)
    const { trace, graph, picture, paraver } = this.#options
    for (const path of [trace, graph, picture, paraver]) {
      const part = path === undefined ? null : partOf(path)
      if (part) watchdog.folder(part)
    }
    return watchdog
  }

  #say(label: string, text: string): void {
    if (this.mode === 'live' || this.mode === 'plain') this.#out(`  ${label.padEnd(12)} ${text}\n`)
  }

  /** A crash in native code ends the process without a word: the next run says it. */
  async #tellKilled(): Promise<void> {
    if (this.mode === 'none' && !this.showsWarnings) return
    const { killedBefore } = await import('../report/journal/runs.ts')
    const killed = await killedBefore(this.#base, this.run).catch(() => null)
    if (!killed) return
    const text = `the run before this one, ${killed.name}, ended without a word: its process was killed, or crashed in native code. \`millrace show ${killed.name}\` lists what ran.`
    if (this.showsWarnings) return this.#warn(text)
    const event: RunEvent = { type: 'note', at: 0, level: 'warning', text }
    if (this.#terminal) this.#terminal.observe(event)
    else this.#early.push(event)
  }

  async #loadTerminal(): Promise<void> {
    const { createTerminal } = await import('../report/terminal/terminal.ts')
    const { stderr } = this.#streams
    const choice = chooseMode({
      asked: this.mode,
      isTTY: stderr.isTTY === true,
      env: process.env,
    })
    // A terminal that does not know its size says 0.
    this.#terminal = createTerminal({
      mode: this.mode,
      out: { write: this.#out },
      columns: () => stderr.columns || 80,
      rows: () => stderr.rows || 24,
      color: this.#options.color ?? choice.color,
      unicode: choice.unicode,
      journal: this.#journal ? this.#journalPath : undefined,
    })
    for (const item of this.#early.splice(0)) {
      if (typeof item === 'string') this.#terminal.above(item)
      else this.#terminal.observe(item)
    }
  }
}

/** A program that was started by itself shows progress on a terminal, and nothing but warnings elsewhere. */
const embeddedMode = (): string | undefined => (process.stderr.isTTY ? undefined : 'none')

/** What is asked for that is written when the run has ended. */
const madeFromJournal = ({ trace, graph, picture, paraver, otlp }: RunOptions): string | null =>
  trace ? 'trace' : graph ? 'graph' : picture ? 'picture' : paraver ? 'paraver' : otlp ? 'otlp' : null

/** What is asked for and needs a journal. */
const readsJournal = (options: RunOptions): string | null =>
  madeFromJournal(options) ?? (options.dashboard ? 'dashboard' : null)

function noJournalFor(options: RunOptions, folder: string): MillraceError {
  const what = readsJournal(options)
  return new MillraceError(
    'MR_OPTION',
    options.journal === false
      ? `the ${what} is made from the journal, which was switched off`
      : `the ${what} is made from the journal, and ${folder} cannot be written`,
    { hint: 'Keep the journal, in a folder that can be written, or do without.' },
  )
}

function openJournal(path: string, logs: string): Journal | null {
  try {
    // First the journal: a process that is killed in between leaves a run that can be listed, and not an empty folder.
    const journal = createJournal(path)
    mkdirSync(logs, { recursive: true })
    return journal
  } catch {
    // A folder that cannot be written is no reason not to compute.
    return null
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
