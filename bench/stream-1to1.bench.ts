import { bench, type Case } from './harness.ts'
import {
  BATCH_MEMORY,
  batchInMemory,
  batchOnDisk,
  NO_UPDATE,
  streamedAsItGrows,
  streamedWhole,
  UPDATE,
} from './stream/arms.ts'
import { piped, type Workflow } from './stream/workflow.ts'

const MIB = 2 ** 20
const PIPE = 'pipe of 1 MiB'

interface Shape {
  files: number
  size: number
  buffer: number
  /** Microseconds of compute per file, in each step. */
  compute: number
}

function workflow({ files, size, buffer, compute }: Shape): Workflow {
  const options = ['-b', String(buffer), '-f', String(compute)]
  const group = `data#:0:${files}:1:${size}`
  return {
    stages: [
      [{ name: 'producer', args: [...options, 'OUT', group], outputs: ['data*'] }],
      [{ name: 'consumer', args: [...options, 'IN', group], inputs: ['data*'] }],
    ],
  }
}

const pipe = ({ files, size, buffer, compute }: Shape): Promise<number> => {
  const options = ['-b', String(buffer), '-m', String((compute * MIB) / size)]
  const group = `-:0:1:1:${files * size}`
  return piped([...options, 'OUT', group], [...options, 'IN', group])
}

function oneCase(name: string, about: string, shape: Shape): Case {
  const work = workflow(shape)
  const computing = shape.compute > 0
  return {
    name,
    about,
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: computing ? 3 : 7,
    arms: [
      streamedAsItGrows(work),
      streamedWhole(work),
      batchInMemory(work),
      ...(computing ? [] : [batchOnDisk(work)]),
      { system: PIPE, run: () => pipe(shape) },
    ],
    goals: computing
      ? [NO_UPDATE, UPDATE].map(of => ({ of, against: BATCH_MEMORY, atMost: 0.55 }))
      : [
          { of: NO_UPDATE, against: BATCH_MEMORY, atMost: 1 },
          // One file that may be read only when it is closed is written and then read, as in the batch run.
          { of: UPDATE, against: BATCH_MEMORY, atMost: 1, ...(shape.files === 1 ? { orTie: true } : {}) },
          ...(shape.files === 1 ? [{ of: NO_UPDATE, against: PIPE, atMost: 1.2 }] : []),
        ],
  }
}

const one = { files: 1, size: 1024 * MIB, compute: 0 }
const many = { files: 100, size: 10 * MIB, compute: 0 }
const gigabyte = 'one producer, one consumer, commit on close; every byte checked'

await bench('stream-1to1', [
  oneCase('1x1GiB-1MiB', `1 x 1 GiB, buffers of 1 MiB; ${gigabyte}`, { ...one, buffer: MIB }),
  oneCase('1x1GiB-1KiB', `1 x 1 GiB, buffers of 1 KiB; ${gigabyte}`, { ...one, buffer: 1024 }),
  oneCase('100x10MiB-1MiB', `100 x 10 MiB, buffers of 1 MiB; ${gigabyte}`, { ...many, buffer: MIB }),
  oneCase('100x10MiB-1KiB', `100 x 10 MiB, buffers of 1 KiB; ${gigabyte}`, { ...many, buffer: 1024 }),
  oneCase('compute', '100 x 10 MiB, buffers of 1 MiB, 20 ms of compute per file in each step', {
    ...many,
    buffer: MIB,
    compute: 20_000,
  }),
])
