import type { RunEvent } from '../../core/events.ts'
import { formatDuration, plural } from '../format.ts'
import { liveBlock } from './live-block.ts'
import { Narrator } from './narrator.ts'
import { createPaint, type Paint } from './paint.ts'
import type { Reporter } from '../reporter.ts'
import { Screen, type Writable } from './screen.ts'
import type { Mode } from './terminal-mode.ts'
import { clean } from '../text.ts'

export interface Terminal extends Reporter {
  /** Prints text of the user's program so that no repaint eats it. All of it must come this way. */
  above(text: string): void
  /** What `close` does, at once; for the `exit` of a process. Closing twice does nothing more. */
  closeSync(): void
}

export interface TerminalOptions {
  mode: Mode
  out: Writable
  /** A function, where the size of the window may change. */
  columns: number | (() => number)
  rows: number | (() => number)
  color: boolean
  unicode: boolean
  /** Milliseconds on any clock that does not step back. */
  now?: () => number
  /** Calls `act` again and again until the function that it returns is called. */
  every?: (ms: number, act: () => void) => () => void
  /** Where the journal is, to be told in the summary. */
  journal?: string | undefined
}

const REPAINT_MS = 100
const TICK_MS = 1000
const HEARTBEAT_MS = 30_000
const JSON_CHUNK = 64 * 1024

interface Context {
  out: Writable
  columns: () => number
  rows: () => number
  paint: Paint
  now: () => number
  every: (ms: number, act: () => void) => () => void
  journal: string | undefined
}

interface Style {
  observe(event: RunEvent): void
  above(text: string): void
  close(): void
}

export function createTerminal(options: TerminalOptions): Terminal {
  const context: Context = {
    out: options.out,
    columns: asFunction(options.columns),
    rows: asFunction(options.rows),
    paint: createPaint(options.color, options.unicode),
    now: options.now ?? (() => performance.now()),
    every: options.every ?? everyUnheld,
    journal: options.journal,
  }
  const style = styleOf(options.mode, context)
  let isClosed = false
  const closeSync = (): void => {
    if (isClosed) return
    isClosed = true
    style.close()
  }
  return {
    observe: event => {
      if (!isClosed) style.observe(event)
    },
    above: text => {
      if (isClosed) options.out.write(text)
      else style.above(text)
    },
    closeSync,
    async close() {
      closeSync()
    },
  }
}

function styleOf(mode: Mode, context: Context): Style {
  switch (mode) {
    case 'live':
      return live(context)
    case 'plain':
      return plain(context)
    case 'json':
      return json(context)
    case 'none':
      return { observe: () => {}, above: text => context.out.write(text), close: () => {} }
  }
}

function live({ out, columns, rows, paint, now, every, journal }: Context): Style {
  const screen = new Screen(out, columns, now)
  let print = (line: string): void => screen.above(`${line}\n`)
  const narrator = new Narrator({
    print: line => print(line),
    paint,
    columns,
    now,
    isVerbose: false,
    journal,
  })
  const { statistics } = narrator
  const repaint = (): void => {
    narrator.completions.tick()
    if (statistics.run === null) return
    screen.paint(
      liveBlock({ statistics, elapsed: narrator.elapsed, columns: columns(), rows: rows(), paint }),
    )
  }
  const stop = every(REPAINT_MS, repaint)
  return {
    observe: event => narrator.observe(event),
    above: text => screen.above(text),
    close() {
      stop()
      screen.clear()
      print = line => out.write(`${line}\n`)
      narrator.conclude()
    },
  }
}

function plain({ out, columns, paint, now, every, journal }: Context): Style {
  const print = (line: string): unknown => out.write(`${line}\n`)
  const narrator = new Narrator({ print, paint, columns, now, isVerbose: true, journal })
  let beatAt = now()
  const stop = every(TICK_MS, () => {
    narrator.completions.tick()
    if (now() - beatAt < HEARTBEAT_MS || narrator.statistics.run === null) return
    beatAt = now()
    print(heartbeat(narrator))
  })
  return {
    observe(event) {
      narrator.observe(event)
      if (event.type === 'run-started') print(startLine(event))
    },
    above: text => out.write(text),
    close() {
      stop()
      narrator.conclude()
    },
  }
}

/** Events and nothing else. Lines leave in chunks, because a write for each event is a system call. */
function json({ out, every }: Context): Style {
  let text = ''
  const flush = (): void => {
    if (text !== '') out.write(text)
    text = ''
  }
  const add = (value: object): void => {
    text += `${JSON.stringify(value)}\n`
    if (text.length >= JSON_CHUNK) flush()
  }
  const stop = every(REPAINT_MS, flush)
  return {
    observe: add,
    // What the program prints keeps its place among the events, in a form that does not break the stream.
    above: printed => add({ type: 'printed', text: printed }),
    close() {
      stop()
      flush()
    },
  }
}

function startLine({
  run,
  program,
  nodes,
  policy,
  simulated,
}: Extract<RunEvent, { type: 'run-started' }>): string {
  const cpus = nodes.reduce((sum, node) => sum + node.cpus, 0)
  const place = `${plural(nodes.length, 'node')}, ${plural(cpus, 'cpu')}, policy ${policy}`
  return `run ${clean(run)}: ${clean(program)} on ${place}${simulated ? ' (simulated)' : ''}`
}

function heartbeat({ statistics, elapsed, progress }: Narrator): string {
  const { running, ready, waiting, failed } = statistics.total
  const parts = [`${progress} after ${formatDuration(elapsed)}: ${running} running`]
  parts.push(`${ready} ready`, `${waiting} waiting`, `${failed} failed`)
  const eta = statistics.eta(elapsed)
  if (eta !== null) parts.push(`ETA ${formatDuration(eta)}`)
  const streams = statistics.streams.text(elapsed)
  if (streams !== null) parts.push(streams)
  const { standstill } = statistics
  if (standstill !== null) parts.push(clean(standstill))
  const slowest = statistics.slowest(1)[0]
  if (slowest) {
    parts.push(
      `slowest ${clean(statistics.nameOf(slowest.task))} ${formatDuration(elapsed - slowest.startedAt)}`,
    )
  }
  return parts.join(', ')
}

function asFunction(size: number | (() => number)): () => number {
  return typeof size === 'function' ? size : () => size
}

function everyUnheld(ms: number, act: () => void): () => void {
  const timer = setInterval(act, ms)
  timer.unref()
  return () => clearInterval(timer)
}
