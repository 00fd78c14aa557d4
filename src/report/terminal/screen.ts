import { width } from '../text.ts'

export interface Writable {
  write(text: string): unknown
}

const REPAINT_MS = 100

/**
 * A block of lines at the bottom of a terminal, with text printed above it that stays. No alternate screen:
 * scrolling, copying and searching go on working.
 *
 * Invariant: between calls the cursor is at the start of the line below the block, and `#height` lines
 * above it are ours. That is why lines must not wrap and why others must print through `above`.
 */
export class Screen {
  readonly #out: Writable
  readonly #columns: () => number
  readonly #now: () => number
  #lines: string[] = []
  #height = 0
  /** The start of a line that the program has not ended yet. It is shown as part of the block. */
  #held = ''
  #shownHeld = ''
  #paintedAt = -Infinity

  constructor(out: Writable, columns: () => number, now: () => number) {
    this.#out = out
    this.#columns = columns
    this.#now = now
  }

  paint(lines: string[]): void {
    const isSame =
      this.#height > 0 &&
      this.#shownHeld === this.#held &&
      lines.length === this.#lines.length &&
      lines.every((line, index) => line === this.#lines[index])
    this.#lines = lines
    if (!isSame) this.#out.write(this.#erase() + this.#block())
    this.#paintedAt = this.#now()
  }

  /** Prints text that stays. Text without a line end is kept until its end comes, so nothing is cut. */
  above(text: string): void {
    const all = this.#held + text
    const end = all.lastIndexOf('\n') + 1
    this.#held = all.slice(end)
    // Under a flood of prints the block comes back with the next repaint, not after each of them.
    const isCalm = this.#now() - this.#paintedAt >= REPAINT_MS
    const erase = this.#erase()
    if (isCalm) this.#paintedAt = this.#now()
    this.#out.write(erase + all.slice(0, end) + (isCalm ? this.#block() : ''))
  }

  /** Takes the block away for good. */
  clear(): void {
    const held = this.#held === '' ? '' : `${this.#held}\n`
    const text = this.#erase() + held
    this.#held = ''
    this.#lines = []
    if (text !== '') this.#out.write(text)
  }

  #erase(): string {
    const up = this.#height
    this.#height = 0
    return up === 0 ? '' : `\u001b[${up}A\r\u001b[J`
  }

  #block(): string {
    this.#shownHeld = this.#held
    const lines = this.#held === '' ? this.#lines : [this.#heldLine(), ...this.#lines]
    this.#height = lines.length
    return lines.map(line => `${line}\n`).join('')
  }

  #heldLine(): string {
    const line = this.#held.slice(this.#held.lastIndexOf('\r') + 1)
    const columns = this.#columns() - 1
    return width(line) <= columns ? line : line.slice(-Math.max(1, Math.floor(columns / 2)))
  }
}
