import { createTerminal, type Terminal, type TerminalOptions } from '../../src/report/terminal/terminal.ts'

/** A terminal with a screen that can be read, a clock that is set by hand, and timers that run with it. */
export class FakeTerminal {
  now = 1000
  writes: string[] = []
  readonly terminal: Terminal
  readonly #timers: { ms: number; act: () => void; at: number }[] = []

  constructor(options: Partial<TerminalOptions>) {
    this.terminal = createTerminal({
      mode: 'live',
      out: { write: text => this.writes.push(text) },
      columns: 80,
      rows: 24,
      color: false,
      unicode: true,
      now: () => this.now,
      every: (ms, act) => {
        const timer = { ms, act, at: this.now + ms }
        this.#timers.push(timer)
        return () => this.#timers.splice(this.#timers.indexOf(timer), 1)
      },
      ...options,
    })
  }

  get timers(): number {
    return this.#timers.length
  }

  pass(ms: number): void {
    const end = this.now + ms
    for (;;) {
      const next = this.#timers.toSorted((a, b) => a.at - b.at)[0]
      if (!next || next.at > end) break
      this.now = next.at
      next.at += next.ms
      next.act()
    }
    this.now = end
  }

  get text(): string {
    return this.writes.join('')
  }

  /** What a person sees, with everything that scrolled away. */
  get screen(): string[] {
    return screenOf(this.text)
  }
}

function screenOf(text: string): string[] {
  const lines = ['']
  let row = 0
  let column = 0
  // oxlint-disable-next-line no-control-regex -- this is a terminal
  for (const [piece] of text.matchAll(/\u001b\[(\d*)([A-Z])|\n|\r|[^\u001b\n\r]+/g)) {
    if (piece === '\n') {
      row++
      column = 0
      if (row === lines.length) lines.push('')
    } else if (piece === '\r') {
      column = 0
    } else if (piece.startsWith('\u001b[') && piece.endsWith('A')) {
      row -= Number(piece.slice(2, -1))
      if (row < 0) throw new Error('the cursor went above the screen')
    } else if (piece === '\u001b[J') {
      lines.length = row + 1
      lines[row] = lines[row]!.slice(0, column)
    } else {
      const line = lines[row]!
      lines[row] = line.slice(0, column) + piece + line.slice(column + piece.length)
      column += piece.length
    }
  }
  return lines
}
