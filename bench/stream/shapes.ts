/** Several producers or consumers: each has the files of its number, as the benchmarks of the CAPIO paper have. */
import type { Step, Workflow } from './workflow.ts'

export interface Many {
  files: number
  size: number
  buffer: number
  /** Producers or consumers on the side that has several. */
  several: number
}

const options = (many: Many): string[] => ['-b', String(many.buffer)]
const all = (many: Many): string => `data#:0:${many.files}:1:${many.size}`

/** What number `i` of `several` has: every several-th file. */
const shares = (word: 'IN' | 'OUT', { files, size, several }: Many): string[][] =>
  Array.from({ length: several }, (_, i) => [
    word,
    `data#:${i}:${Math.ceil((files - i) / several)}:${several}:${size}`,
  ])

export function oneToMany(many: Many): Workflow {
  const producer: Step = { name: 'producer', args: [...options(many), 'OUT', all(many)], outputs: ['data*'] }
  const consumer: Step = {
    name: 'consumer',
    args: options(many),
    instances: shares('IN', many),
    inputs: ['data*'],
  }
  return { stages: [[producer], [consumer]] }
}

export function manyToOne(many: Many): Workflow {
  const producer: Step = {
    name: 'producer',
    args: options(many),
    instances: shares('OUT', many),
    outputs: ['data*'],
  }
  const consumer: Step = { name: 'consumer', args: [...options(many), 'IN', all(many)], inputs: ['data*'] }
  return { stages: [[producer], [consumer]] }
}

/** One sparse file, written after a seek, of which each consumer reads a part. */
export function partitions({ size, buffer, several }: Omit<Many, 'files'>): Workflow {
  const file = `data:0:1:1:${size}`
  const producer: Step = {
    name: 'producer',
    args: ['-b', String(buffer), '-z', 'OUT', file],
    outputs: ['data'],
  }
  const consumer: Step = {
    name: 'consumer',
    args: ['-b', String(buffer)],
    instances: Array.from({ length: several }, (_, i) => ['-p', `${i}/${several}`, 'IN', file]),
    inputs: ['data'],
  }
  return { stages: [[producer], [consumer]] }
}
