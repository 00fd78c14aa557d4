/** Two references and reads of samples that are close to the second one: made here, the same in every run. */

const BASES = 'ACGT'
const READ_LENGTH = 100

export interface Genomes {
  /** A relative, and the species itself. */
  references: [string, string]
}

/** One base of four is drawn anew in the relative: a fifth of the reads still fits there. */
export function makeGenomes(length: number): Genomes {
  const random = generator(1)
  const own = Array.from({ length }, () => BASES[Math.floor(random() * 4)] as string)
  const relative = own.map(base => (random() < 1 / 4 ? (BASES[Math.floor(random() * 4)] as string) : base))
  return { references: [relative.join(''), own.join('')] }
}

export const toFasta = (name: string, genome: string): string =>
  `>${name}\n${genome.match(/.{1,60}/g)?.join('\n') ?? ''}\n`

/** Reads of a sample in FASTQ; one base of 300 is misread. */
export function makeReads({ references: [, own] }: Genomes, sample: number, count: number): string {
  const random = generator(sample + 2)
  const lines: string[] = []
  for (let i = 0; i < count; i++) {
    const start = Math.floor(random() * (own.length - READ_LENGTH))
    const read = Array.from(own.slice(start, start + READ_LENGTH), base =>
      random() < 1 / 300 ? BASES[Math.floor(random() * 4)] : base,
    )
    lines.push(`@s${sample}.${i}`, read.join(''), '+', 'I'.repeat(READ_LENGTH))
  }
  return `${lines.join('\n')}\n`
}

function generator(seed: number): () => number {
  let state = Math.imul(seed, 2654435761) >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
