/** Square blocks of a matrix. A block that is zero or the identity has no memory, and most products with it cost nothing. */
export type Block = { type: 'zero' } | { type: 'identity' } | { type: 'data'; values: Float64Array }

export const ZERO: Block = { type: 'zero' }
export const IDENTITY: Block = { type: 'identity' }

export function valuesOf(block: Block, size: number): Float64Array {
  if (block.type === 'data') return block.values
  const values = new Float64Array(size * size)
  if (block.type === 'identity') for (let i = 0; i < size; i++) values[i * size + i] = 1
  return values
}

export function multiply(a: Block, b: Block, size: number): Block {
  if (a.type === 'zero' || b.type === 'zero') return ZERO
  if (a.type === 'identity') return b
  if (b.type === 'identity') return a
  const values = new Float64Array(size * size)
  for (let i = 0; i < size; i++) {
    for (let k = 0; k < size; k++) {
      const factor = a.values[i * size + k] ?? 0
      for (let j = 0; j < size; j++) values[i * size + j]! += factor * (b.values[k * size + j] ?? 0)
    }
  }
  return { type: 'data', values }
}

export function add(a: Block, b: Block): Block {
  if (a.type === 'zero') return b
  if (b.type === 'zero') return a
  if (a.type !== 'data' || b.type !== 'data') throw new RangeError('an identity is never added here')
  const { values } = b
  return { type: 'data', values: a.values.map((value, i) => value + (values[i] ?? 0)) }
}

export function transpose(block: Block, size: number): Block {
  if (block.type !== 'data') return block
  const values = new Float64Array(size * size)
  for (let i = 0; i < size; i++)
    for (let j = 0; j < size; j++) values[j * size + i] = block.values[i * size + j] ?? 0
  return { type: 'data', values }
}

/** Householder: A = Q R for `rows` x `columns`, with Q of `rows` x `rows`. */
export function factor(a: Float64Array, rows: number, columns: number): { q: Float64Array; r: Float64Array } {
  const r = a.slice()
  const q = new Float64Array(rows * rows)
  for (let i = 0; i < rows; i++) q[i * rows + i] = 1
  for (let k = 0; k < Math.min(rows - 1, columns); k++) {
    const v = new Float64Array(rows)
    let norm = 0
    for (let i = k; i < rows; i++) norm += (v[i] = r[i * columns + k] ?? 0) ** 2
    norm = Math.sqrt(norm)
    if (norm === 0) continue
    v[k]! += (v[k] ?? 0) < 0 ? -norm : norm
    const length = v.reduce((sum, value) => sum + value * value, 0)
    if (length === 0) continue
    reflect(r, v, length, columns, k, columns, 1)
    // Q is multiplied from the right: rows and columns change places.
    reflect(q, v, length, 1, 0, rows, rows)
  }
  return { q, r }
}

/** x - 2 v (v' x) / (v' v) for each column x; `across` is the distance of its elements, `along` that of columns. */
function reflect(
  m: Float64Array,
  v: Float64Array,
  length: number,
  across: number,
  from: number,
  to: number,
  along: number,
): void {
  for (let j = from; j < to; j++) {
    let sum = 0
    for (let i = 0; i < v.length; i++) sum += (v[i] ?? 0) * (m[i * across + j * along] ?? 0)
    const by = (2 * sum) / length
    for (let i = 0; i < v.length; i++) m[i * across + j * along]! -= by * (v[i] ?? 0)
  }
}

/** A block by its own factorisation; it is taken apart into Q and R. */
export function factorOne(block: Block, size: number): [Block, Block] {
  if (block.type !== 'data') return [IDENTITY, block]
  const { q, r } = factor(block.values, size, size)
  return [data(q), data(r)]
}

/** Two blocks, one above the other, by one factorisation: the four blocks of Q, and R. */
export function factorTwo(above: Block, below: Block, size: number): [Block, Block, Block, Block, Block] {
  if (below.type === 'zero') return [IDENTITY, ZERO, ZERO, IDENTITY, above]
  const a = new Float64Array(2 * size * size)
  a.set(valuesOf(above, size))
  a.set(valuesOf(below, size), size * size)
  const { q, r } = factor(a, 2 * size, size)
  const part = (row: number, column: number): Block => {
    const values = new Float64Array(size * size)
    for (let i = 0; i < size; i++) {
      const at = (row * size + i) * 2 * size + column * size
      values.set(q.subarray(at, at + size), i * size)
    }
    return data(values)
  }
  return [part(0, 0), part(0, 1), part(1, 0), part(1, 1), data(r.slice(0, size * size))]
}

const data = (values: Float64Array): Block => ({ type: 'data', values })

export function makeBlock(row: number, column: number, blocks: number, size: number): Block {
  // Blocks above the second diagonal are zero, as in matrices of many applications.
  if (column > row + 1) return ZERO
  const values = new Float64Array(size * size)
  for (let i = 0; i < values.length; i++) {
    values[i] =
      Math.sin((row * blocks + column) * 31 + i * 7.3) + (row === column && i % (size + 1) === 0 ? size : 0)
  }
  return data(values)
}
