/** A reference and samples that differ from it in known places: made here, the same in every run. */

export interface Variant {
  position: number
  from: string
  to: string
}

export interface Sample {
  name: string
  variants: Variant[]
  reads: string[]
}

const BASES = 'ACGT'
export const READ_LENGTH = 100

export function makeReference(length: number): string {
  const random = generator(1)
  return Array.from({ length }, () => BASES[Math.floor(random() * 4)]).join('')
}

/** Reads begin anywhere; one base of 500 is misread, and one read of ten is a copy of the one before. */
export function makeSample(reference: string, index: number, depth: number): Sample {
  const random = generator(index + 2)
  const genome = [...reference]
  const variants: Variant[] = []
  for (let at = 150; at < reference.length - 150; at += 200 + Math.floor(random() * 800)) {
    const from = reference[at] as string
    const to = other(from, random)
    genome[at] = to
    variants.push({ position: at, from, to })
  }
  const count = Math.ceil((reference.length * depth) / READ_LENGTH)
  const reads: string[] = []
  for (let i = 0; i < count; i++) {
    const last = reads.at(-1)
    if (last !== undefined && random() < 0.1) {
      reads.push(last)
      continue
    }
    const start = Math.floor(random() * (reference.length - READ_LENGTH))
    const read = genome.slice(start, start + READ_LENGTH)
    reads.push(read.map(base => (random() < 0.002 ? other(base, random) : base)).join(''))
  }
  return { name: `sample${index}`, variants, reads }
}

function other(base: string, random: () => number): string {
  const rest = BASES.replace(base, '')
  return rest[Math.floor(random() * 3)] as string
}

function generator(seed: number): () => number {
  let state = Math.imul(seed, 2654435761) >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
