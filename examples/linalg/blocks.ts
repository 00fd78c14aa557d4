import { shared } from 'millrace'

/** Below this, libraries are slower by a tenth or more, and above it, hardly faster. */
const [GOOD, LARGEST] = [192, 512]

/** Blocks are large enough for a library to be fast, and small enough for all CPUs to have some. */
export const defaultBlock = (n: number, cpus: number): number => {
  const wanted = Math.min(Math.max(GOOD, n / (4 * cpus)), LARGEST, n / 4)
  return Math.max(32, Math.ceil(wanted / 32) * 32)
}

/** A matrix in blocks, each in shared memory and by column; those at the edges may be smaller. */
export class BlockMatrix {
  readonly rows: number
  readonly columns: number
  readonly block: number
  /** How many blocks there are, down and across. */
  readonly down: number
  readonly across: number
  readonly #blocks: Float64Array[]

  constructor(rows: number, columns: number, block: number) {
    this.rows = rows
    this.columns = columns
    this.block = block
    this.down = Math.ceil(rows / block)
    this.across = Math.ceil(columns / block)
    this.#blocks = Array.from({ length: this.down * this.across }, (_, at) =>
      shared(Float64Array, this.height(at % this.down) * this.width(Math.floor(at / this.down))),
    )
  }

  static from(
    rows: number,
    columns: number,
    block: number,
    at: (i: number, j: number) => number,
  ): BlockMatrix {
    const made = new BlockMatrix(rows, columns, block)
    made.fill(at)
    return made
  }

  /** Rows of the blocks in row i. */
  height(i: number): number {
    return Math.min(this.block, this.rows - i * this.block)
  }

  width(j: number): number {
    return Math.min(this.block, this.columns - j * this.block)
  }

  at(i: number, j: number): Float64Array {
    return this.#blocks[i + j * this.down] as Float64Array
  }

  /** The blocks of a column from row `from` on. */
  column(j: number, from = 0): Float64Array[] {
    return Array.from({ length: this.down - from }, (_, i) => this.at(from + i, j))
  }

  all(): readonly Float64Array[] {
    return this.#blocks
  }

  /** Only while no task uses it. */
  fill(at: (i: number, j: number) => number): void {
    for (let j = 0; j < this.columns; j++) for (let i = 0; i < this.rows; i++) this.set(i, j, at(i, j))
  }

  get(i: number, j: number): number {
    const [bi, bj] = [Math.floor(i / this.block), Math.floor(j / this.block)]
    return this.at(bi, bj)[(i % this.block) + (j % this.block) * this.height(bi)] as number
  }

  set(i: number, j: number, value: number): void {
    const [bi, bj] = [Math.floor(i / this.block), Math.floor(j / this.block)]
    this.at(bi, bj)[(i % this.block) + (j % this.block) * this.height(bi)] = value
  }

  copy(): BlockMatrix {
    const made = new BlockMatrix(this.rows, this.columns, this.block)
    this.#blocks.forEach((block, at) => (made.#blocks[at] as Float64Array).set(block))
    return made
  }
}
