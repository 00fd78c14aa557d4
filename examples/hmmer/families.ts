import { writeFile } from 'node:fs/promises'

/** Protein families and sequences that belong to none: made here, the same in every run. */

const AMINO = 'ACDEFGHIKLMNPQRSTVWY'

/** A Stockholm alignment of sequences that differ from their ancestor in one place of eight. */
export async function writeAlignment(path: string, family: number): Promise<void> {
  const random = generator(family + 1)
  const ancestor = letters(random, 120)
  const rows = Array.from({ length: 8 }, (_, i) => {
    const row = [...ancestor].map(letter => (random() < 0.125 ? letters(random, 1) : letter))
    return `member${i} ${row.join('')}`
  })
  const name = `#=GF ID family${family}`
  await writeFile(path, ['# STOCKHOLM 1.0', name, ...rows, '//', ''].join('\n'))
}

export function strangers(count: number): string {
  const random = generator(99)
  return Array.from({ length: count }, (_, i) => `>stranger${i}\n${letters(random, 200)}\n`).join('')
}

function letters(random: () => number, count: number): string {
  return Array.from({ length: count }, () => AMINO[Math.floor(random() * AMINO.length)]).join('')
}

function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
