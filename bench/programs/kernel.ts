/** Blocked matrices for the benchmark: plain loops, as a program that knows nothing of threads has them. */

export type Blocks = Float64Array[][]

export function multiplyAdd(a: Float64Array, b: Float64Array, c: Float64Array): void {
  const n = Math.sqrt(a.length)
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < n; k++) {
      const factor = a[i * n + k] as number
      const row = k * n
      const target = i * n
      for (let j = 0; j < n; j++) c[target + j] = (c[target + j] as number) + factor * (b[row + j] as number)
    }
  }
}

/** The same numbers each time: small integers, so that sums are exact in any order. */
export function makeBlocks(
  count: number,
  size: number,
  seed: number,
  create: (length: number) => Float64Array,
): Blocks {
  let state = seed
  const next = (): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return (state >> 16) % 8
  }
  return Array.from({ length: count }, () =>
    Array.from({ length: count }, () => {
      const block = create(size * size)
      if (seed !== 0) for (let i = 0; i < block.length; i++) block[i] = next()
      return block
    }),
  )
}

export function compare(one: Blocks, other: Blocks): void {
  for (const [i, row] of one.entries()) {
    for (const [j, block] of row.entries()) {
      const same = other[i]?.[j]
      if (!same || block.some((value, at) => value !== same[at])) throw new Error(`block ${i}, ${j} differs`)
    }
  }
}
