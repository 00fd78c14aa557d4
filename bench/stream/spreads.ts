/** The workflows of the CAPIO paper over several nodes, in miniature. */
import type { PlacedStep, Spread } from './over-nodes.ts'

const MIB = 2 ** 20
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

/** Files of `size` bytes from several nodes to one more, which reads all of them. */
export function manyToOne(nodes: number, files: number, size: number): Spread {
  const own = files / nodes
  const writers = numbers(nodes).map((i): PlacedStep => ({
    name: `writer${i}`,
    node: i + 1,
    args: ['OUT', `data${i}/f#:0:${own}:1:${size}`],
    outputs: [`data${i}/*`],
    writes: own * size,
  }))
  const reader: PlacedStep = {
    name: 'reader',
    node: nodes + 1,
    args: ['IN', ...numbers(nodes).map(i => `data${i}/f#:0:${own}:1:${size}`)],
    inputs: numbers(nodes).map(i => `data${i}/*`),
    reads: files * size,
  }
  return { nodes: nodes + 1, folders: numbers(nodes).map(i => `data${i}`), stages: [writers, [reader]] }
}

/** Split writes parts; two map-reducers turn them into results; merge reads these. */
export function mapReduce(mib: number, parts: number): Spread {
  const [part, result] = [(mib * MIB) / parts, (mib * MIB) / 4 / parts]
  const half = parts / 2
  const reducer = (i: number): PlacedStep => ({
    name: `mapreduce${i}`,
    node: 2 + i,
    args: ['-m', '8000', 'IN', `part${i}.#:0:${half}:1:${part}`, 'OUT', `result${i}.#:0:${half}:1:${result}`],
    inputs: [`part${i}.*`],
    reads: half * part,
    outputs: [`result${i}.*`],
    writes: half * result,
  })
  const split: PlacedStep = {
    name: 'split',
    node: 1,
    args: ['-m', '4000', 'OUT', `part0.#:0:${half}:1:${part}`, `part1.#:0:${half}:1:${part}`],
    outputs: ['part*'],
    writes: mib * MIB,
  }
  const merge: PlacedStep = {
    name: 'merge',
    node: 4,
    args: ['-m', '16000', 'IN', ...[0, 1].map(i => `result${i}.#:0:${half}:1:${result}`)],
    inputs: ['result*'],
    reads: parts * result,
  }
  return { nodes: 4, stages: [[split], [reducer(0), reducer(1)], [merge]] }
}

/** The steps of 1000 Genomes for one chromosome. They write small files into directories; one step merges these; two read the result. */
export function genomes(people: number, size: number): Spread {
  const count = 4
  const all = people * size * count
  const individuals = numbers(count).map((i): PlacedStep => ({
    name: `individuals${i}`,
    node: 1 + (i % 2),
    args: ['-f', '200', 'OUT', `ind${i}/p#:0:${people}:1:${size}`],
    outputs: [`ind${i}/*`],
    writes: people * size,
  }))
  const sifting: PlacedStep = {
    name: 'sifting',
    node: 3,
    args: ['-m', '300000', 'OUT', `sifted:0:1:1:1000000`],
    outputs: ['sifted'],
    writes: 1_000_000,
  }
  const merged = `merged/p#:0:${people}:1:${size * count}`
  const merge: PlacedStep = {
    name: 'merge',
    node: 3,
    args: ['-f', '50', 'IN', ...numbers(count).map(i => `ind${i}/p#:0:${people}:1:${size}`), 'OUT', merged],
    inputs: numbers(count).map(i => `ind${i}/*`),
    reads: all,
    outputs: ['merged/*'],
    writes: all,
  }
  const last = (name: string): PlacedStep => ({
    name,
    node: 4,
    args: ['-f', '200', 'IN', merged, 'sifted:0:1:1:1000000'],
    inputs: ['merged/*', 'sifted'],
    reads: all + 1_000_000,
  })
  const folders = ['merged', ...numbers(count).map(i => `ind${i}`)]
  return {
    nodes: 4,
    folders,
    stages: [[...individuals, sifting], [merge], [last('overlap'), last('frequency')]],
  }
}
