/** Where commands write: results to `out`, all else to `err`. */
export interface StreamIo {
  out: (text: string) => void
  err: (text: string) => void
  /** `err` is a terminal on which lines may be painted again. */
  live?: boolean
  columns?: number
  rows?: number
}

/**
 * A block at the end of the terminal that is painted again and again, while messages are printed above it and
 * stay. Without a terminal nothing is painted; then the caller writes lines now and then.
 */
export class Screen {
  private readonly io: StreamIo
  private painted = 0

  constructor(io: StreamIo) {
    this.io = io
  }

  get live(): boolean {
    return this.io.live === true
  }

  get width(): number {
    return Math.max(40, (this.io.columns ?? 100) - 1)
  }

  get height(): number {
    return Math.max(3, (this.io.rows ?? 24) - 2)
  }

  paint(lines: string[]): void {
    if (!this.live) return
    const shown = lines.slice(0, this.height)
    this.io.err(`${this.wipe()}${shown.map(line => `${line}\n`).join('')}`)
    this.painted = shown.length
  }

  print(text: string, to: 'out' | 'err' = 'err'): void {
    const wipe = this.wipe()
    if (wipe !== '') this.io.err(wipe)
    this.painted = 0
    this.io[to](text)
  }

  clear(): void {
    if (this.painted > 0) this.io.err(this.wipe())
    this.painted = 0
  }

  private wipe(): string {
    return this.painted > 0 ? `\x1b[${this.painted}A\x1b[J` : ''
  }
}
