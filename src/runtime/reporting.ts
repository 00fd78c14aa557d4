import { mkdirSync, readdirSync } from 'node:fs'
import { MillraceError } from '../core/errors.ts'
import type { Observer, RunEvent } from '../core/events.ts'
import { Guard } from '../execute/guard.ts'
import type { Journal } from '../report/journal-writer.ts'
import { createJournal } from '../report/journal-writer.ts'
import { newRunName } from '../report/run-names.ts'
import { KEPT_RUNS, runPaths, runsFolder } from '../report/run-paths.ts'
import { chooseMode } from '../report/terminal-mode.ts'
import type { Mode } from '../report/terminal-mode.ts'
import type { Terminal } from '../report/terminal.ts'
import { clean } from '../report/text.ts'
import type { RunOptions } from './run-options.ts'
import { divert, goToSamePlace, writerOf } from './streams.ts'

/** Everyone who wants to see the events of a run, and what is written when it has ended. */
export class Reporting {
  readonly run: string
  readonly logs: string | null
  readonly mode: Mode
  readonly #options: RunOptions
  /** Fixed now, because the program may change its working directory. */
  readonly #base: string
  /** There are so many runs that old ones may have to go. */
  readonly #hasMany: boolean
  readonly #journal: Journal | null
  readonly #journalPath: string
  /** Past whatever is diverted: what the display itself writes. */
  readonly #out: (text: string) => unknown
  readonly #releases: (() => void)[] = []
  /** Null until it is loaded; events and text that come earlier are kept. */
  #terminal: Terminal | null = null
  readonly #early: (RunEvent | string)[] = []
  #loading: Promise<void> | null = null

  constructor(options: RunOptions) {
    this.#options = options
    this.#base = options.folder ?? process.cwd()
    const names = namesIn(runsFolder(this.#base))
    this.#hasMany = names.length >= KEPT_RUNS
    this.run = newRunName(names, Math.random)
    const paths = runPaths(this.#base, this.run)
    this.#journalPath = paths.journal
    const { mode } = chooseMode({
      asked: options.progress ?? (options.launched ? undefined : embeddedMode()),
      isTTY: process.stderr.isTTY === true,
      env: process.env,
    })
    this.mode = mode
    this.#journal = options.journal === false ? null : openJournal(paths.journal, paths.logs)
    this.logs = this.#journal ? paths.logs : null
    if (!this.#journal && madeFromJournal(options)) throw noJournalFor(options, paths.folder)
    this.#out = writerOf(mode === 'json' ? process.stdout : process.stderr)
    this.#divert()
    if (this.mode !== 'none') this.#loading = this.#loadTerminal()
  }

  /** True when a journal was wanted and could not be had. */
  get isUnrecorded(): boolean {
    return this.#journal === null && this.#options.journal !== false
  }

  /** Null when nobody looks: then events are not even made. */
  get observer(): Observer | null {
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

  /** Nobody asked for silence where there is no display: then warnings are shown by themselves. */
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
    if (this.mode === 'json') this.#releases.push(divert(process.stdout, print))
    if (this.mode !== 'live') return
    // Results that go to a file while progress goes to the terminal are left alone.
    if (goToSamePlace()) this.#releases.push(divert(process.stdout, print))
    this.#releases.push(divert(process.stderr, print))
  }

  #release(): void {
    for (const release of this.#releases.splice(0)) release()
  }

  get journalPath(): string | null {
    return this.#journal ? this.#journalPath : null
  }

  async close(): Promise<void> {
    await this.#loading
    await this.#journal?.close()
    await this.#terminal?.close()
    this.#release()
    if (!this.#journal) return
    const { error } = this.#journal
    if (error && madeFromJournal(this.#options)) throw error
    if (error) this.#warn(error.message)
    await this.#exports()
    if (!this.#hasMany) return
    const { pruneRuns } = await import('../report/runs.ts')
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
    const { trace, graph, picture } = this.#options
    if (!madeFromJournal(this.#options)) return
    const { readJournal } = await import('../report/journal-reader.ts')
    const guard = await this.#guardParts()
    if (trace) {
      const { writeTrace } = await import('../report/trace.ts')
      await writeTrace(readJournal(this.#journalPath), trace)
      this.#say('trace', `${trace} (open it in ui.perfetto.dev)`)
    }
    if (graph) {
      const { writeGraph } = await import('../report/graph.ts')
      await writeGraph(readJournal(this.#journalPath), graph)
      this.#say('graph', graph)
    }
    if (picture) {
      const { writePicture } = await import('../report/picture.ts')
      await writePicture(readJournal(this.#journalPath), picture)
      this.#say('picture', picture)
    }
    guard.end()
  }

  /** Who is killed while writing leaves no part of a file. */
  async #guardParts(): Promise<Guard> {
    const { partOf } = await import('../report/write-whole.ts')
    const guard = new Guard(`export-${process.pid}-${this.run}`)
    const { trace, graph, picture } = this.#options
    for (const path of [trace, graph, picture]) {
      const part = path === undefined ? null : partOf(path)
      if (part) guard.folder(part)
    }
    return guard
  }

  #say(label: string, text: string): void {
    if (this.mode === 'live' || this.mode === 'plain') this.#out(`  ${label.padEnd(12)} ${text}\n`)
  }

  async #loadTerminal(): Promise<void> {
    const { createTerminal } = await import('../report/terminal.ts')
    const choice = chooseMode({
      asked: this.mode,
      isTTY: process.stderr.isTTY === true,
      env: process.env,
    })
    // A terminal that does not know its size says 0.
    this.#terminal = createTerminal({
      mode: this.mode,
      out: { write: this.#out },
      columns: () => process.stderr.columns || 80,
      rows: () => process.stderr.rows || 24,
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
const madeFromJournal = ({ trace, graph, picture }: RunOptions): string | null =>
  trace ? 'trace' : graph ? 'graph' : picture ? 'picture' : null

function noJournalFor(options: RunOptions, folder: string): MillraceError {
  const what = madeFromJournal(options)
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
    // First the journal: who is killed in between leaves a run that can be listed, and not an empty folder.
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
