/** Something that no paper states and the models need. */
export interface Unstated {
  value: number
  readonly what: string
  /** Where it counts. */
  readonly parts: readonly string[]
  /** What else it could be. */
  readonly others: readonly number[]
}

const FACTORS = [0.5, 0.75, 1.33, 2]

const of = (
  value: number,
  parts: string,
  what: string,
  others = FACTORS.map(factor => value * factor),
): Unstated => ({ value, what, parts: parts.split(' '), others })

/**
 * All that the papers leave out. Each has one value for all experiments on its platform; the reasons are in platforms.ts
 * and beside the experiments. `papers --sensitivity` varies one at a time and says which rows depend on it.
 */
export const UNSTATED = {
  computing: of(0.8, 'hmmer variants capio', 'MareNostrum 4: computing, in times of writing'),
  varying: of(0.3, 'hmmer variants montage', 'how much compute times vary', [0, 0.1, 0.2, 0.4, 0.5]),
  writer: of(8, 'hmmer variants kmeans', 'MareNostrum 4: MB/s of one writer'),
  knee: of(56, 'hmmer variants kmeans', 'MareNostrum 4: writers that use all of the SSD'),
  sync: of(2, 'hmmer variants kmeans', 'MareNostrum 4: seconds of waiting for other writers'),
  latency: of(5.3, 'hmmer variants kmeans', 'MareNostrum 4: seconds per file'),
  begin: of(6.1, 'kmeans', 'K-means: making fragments, in times of writing'),
  iteration: of(2.2, 'kmeans', 'K-means: an iteration, in times of writing'),
  hmmerComputing: of(0.5, 'tiers', 'CTE-Power, HMMER: computing, in times of writing'),
  alignComputing: of(0.67, 'tiers', 'CTE-Power, alignment: computing, in times of writing'),
  layerWriter: of(Infinity, 'tiers', 'CTE-Power: MB/s of one writer', [1600, 800, 400, 200]),
  layerRead: of(1, 'tiers', 'CTE-Power: reading, in times of writing speed'),
  cache: of(9, 'copyfile montage', 'Tohoku: GiB of memory that cache files', [4.5, 7, 8, 10, 12, 18]),
  falloff: of(0.07, 'copyfile montage', 'Tohoku: what a disk loses with each further stream'),
  buffer: of(3.2, 'copyfile montage', 'Tohoku: GiB that wait to be written'),
  project: of(10, 'montage', 'Montage: seconds of mProjectPP'),
  diff: of(0.5, 'montage', 'Montage: seconds of mDiff and of mFitplane'),
  background: of(6, 'montage', 'Montage: seconds of mBackground'),
  add: of(3, 'montage', 'Montage: seconds of mAdd'),
  lustreRead: of(0.6, 'capio', 'GALILEO100: GB/s that one process reads from Lustre'),
  lustreWrite: of(1.2, 'capio', 'GALILEO100: GB/s that one process writes to Lustre'),
  memoryRead: of(1.33, 'capio', 'GALILEO100: GB/s that one process reads from a stream'),
  memoryWrite: of(2.4, 'capio', 'GALILEO100: GB/s that one process writes to a stream'),
  open: of(0.039, 'capio', 'GALILEO100: seconds to open a file on Lustre'),
  multiplying: of(0.05, 'mpi', 'matrix multiplication: a product, in times of writing it'),
  tail: of(0.36, 'mpi', 'web archives: how few records have most of the words', [0.2, 0.3, 0.42, 0.5]),
  blocks: of(
    5000,
    'algebra',
    'MareNostrum III: MB/s into a node, with reading and writing blocks',
    [100, 500, 1000, 2500],
  ),
  factorizing: of(1, 'algebra', 'MareNostrum III: QR of blocks, in times of a product of that size'),
  pickle: of(0.1, 'eager', 'eager release: seconds to serialize a million numbers'),
  knl: of(1, 'algebra', 'SSF: a KNL node, in times of the speed of a Xeon node'),
  consuming: of(1, 'eager', 'eager release: consuming, in times of producing'),
} satisfies Record<string, Unstated>
