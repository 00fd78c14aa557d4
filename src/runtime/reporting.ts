import { mkdirSync, readdirSync } from 'node:fs'
import type { Observer, RunEvent } from '../core/events.ts'
import type { Journal } from '../report/journal-writer.ts'
import { createJournal } from '../report/journal-writer.ts'
import { newRunName } from '../report/run-names.ts'
import { runPaths, runsFolder } from '../report/runs.ts'
import { chooseMode } from '../report/terminal-mode.ts'
import type { Mode } from '../report/terminal-mode.ts'
import type { Terminal } from '../report/terminal.ts'
import type { RunOptions } from './run-options.ts'

/** Everyone who wants to see the events of a run, and what is written when it has ended. */
export class Reporting {
  readonly run: string
  readonly logs: string | null
  readonly mode: Mode
  readonly #options: RunOptions
  readonly #journal: Journal | null
  readonly #journalPath: string
  /** Null until it is loaded; what comes earlier is kept. */
  #terminal: Terminal | null = null
  #early: RunEvent[] = []
  #earlyText: string[] = []
  #loading: Promise<void> | null = null

  constructor(options: RunOptions) {
    this.#options = options
    const base = options.folder ?? process.cwd()
    this.run = newRunName(namesIn(runsFolder(base)), Math.random)
    const paths = runPaths(base, this.run)
    this.#journalPath = paths.journal
    const { mode } = chooseMode({
      asked: options.progress ?? (options.launched ? undefined : embeddedMode()),
      isTTY: process.stderr.isTTY === true,
      env: process.env,
    })
    this.mode = mode
    this.#journal = options.journal === false ? null : openJournal(paths.journal, paths.logs)
    this.logs = this.#journal ? paths.logs : null
    if (this.mode !== 'none') this.#loading = this.#loadTerminal()
  }

  /** Null when nobody looks: then events are not even made. */
  get observer(): Observer | null {
    const journal = this.#journal
    if (this.mode === 'none') return journal ? journal.observe : null
    return event => {
      journal?.observe(event)
      if (this.#terminal) this.#terminal.observe(event)
      else this.#early.push(event)
    }
  }

  /** Shows what tasks and the program print, where a display is repainted. */
  print(text: string): void {
    if (this.#terminal) this.#terminal.above(text)
    else this.#earlyText.push(text)
  }

  get journalPath(): string | null {
    return this.#journal ? this.#journalPath : null
  }

  async close(): Promise<void> {
    await this.#loading
    await this.#journal?.close()
    await this.#terminal?.close()
    if (!this.#journal) return
    await this.#exports()
    const { pruneRuns } = await import('../report/runs.ts')
    await pruneRuns(this.#options.folder ?? process.cwd()).catch(() => [])
  }

  /** For the end of the process, where nothing can be waited for. */
  closeNow(): void {
    this.#journal?.flushSync()
    this.#terminal?.closeSync()
  }

  async #exports(): Promise<void> {
    const { trace, graph } = this.#options
    if (!trace && !graph) return
    const { readJournal } = await import('../report/journal-reader.ts')
    if (trace) {
      const { writeTrace } = await import('../report/trace.ts')
      await writeTrace(readJournal(this.#journalPath), trace)
    }
    if (graph) {
      const { writeGraph } = await import('../report/graph.ts')
      await writeGraph(readJournal(this.#journalPath), graph)
    }
  }

  async #loadTerminal(): Promise<void> {
    const { createTerminal } = await import('../report/terminal.ts')
    const json = this.mode === 'json'
    const choice = chooseMode({
      asked: this.mode,
      isTTY: process.stderr.isTTY === true,
      env: process.env,
    })
    const out = json ? process.stdout : process.stderr
    this.#terminal = createTerminal({
      mode: this.mode,
      out: { write: text => out.write(text) },
      columns: () => process.stderr.columns ?? 80,
      rows: () => process.stderr.rows ?? 24,
      color: this.#options.color ?? choice.color,
      unicode: choice.unicode,
      journal: this.#journal ? this.#journalPath : undefined,
    })
    for (const event of this.#early) this.#terminal.observe(event)
    for (const text of this.#earlyText) this.#terminal.above(text)
    this.#early = []
    this.#earlyText = []
  }
}

/** A program that was started by itself shows progress on a terminal and is silent elsewhere. */
const embeddedMode = (): string | undefined => (process.stderr.isTTY ? undefined : 'none')

function openJournal(path: string, logs: string): Journal | null {
  try {
    mkdirSync(logs, { recursive: true })
    return createJournal(path)
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
