import { tmpdir } from 'node:os'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { secondsOf } from './eager/example.ts'
import { bench } from './harness.ts'

const OURS = 'millrace'
const PLAIN = 'a plain loop'
const AGENTS = 'millrace, two agents of one CPU'
const shape = { unit: 's', better: 'lower', take: 'median', rounds: 5 } as const
const folder = mkdtempSync(join(tmpdir(), 'millrace-numeric-'))
const kmeans = { KMEANS_POINTS: '100000', KMEANS_OUT: folder }
const spread = { SPREAD_N: '1536', SPREAD_BLOCK: '256', OPENBLAS_NUM_THREADS: '1' }
const qr = { QR_BLOCKS: '8', QR_SIZE: '96' }

try {
  await bench('numeric', [
    {
      ...shape,
      name: 'kmeans',
      about: 'K-means of 1,600,000 points with checkpoints of all fragments and centres, 2 CPUs',
      arms: [
        { system: OURS, run: secondsOf('kmeans/kmeans.ts', kmeans) },
        { system: PLAIN, run: secondsOf('kmeans/kmeans.ts', { ...kmeans, KMEANS_SEQUENTIAL: '1' }) },
      ],
      goals: [{ of: OURS, against: PLAIN, atMost: 0.65 }],
    },
    {
      ...shape,
      name: 'qr',
      about: 'QR of 768 x 768 in blocks of 96 that are zero, identity or data, 2 CPUs',
      arms: [
        { system: OURS, run: secondsOf('qr/qr.ts', qr) },
        { system: PLAIN, run: secondsOf('qr/qr.ts', { ...qr, QR_SEQUENTIAL: '1' }) },
      ],
      goals: [{ of: OURS, against: PLAIN, atMost: 0.65 }],
    },
    {
      ...shape,
      name: 'spread',
      about:
        'a product and a Cholesky factor of 1,536 x 1,536 in blocks of 256 that tasks initialise, 2 CPUs',
      arms: [
        { system: OURS, run: secondsOf('linalg/spread.ts', spread) },
        { system: AGENTS, run: secondsOf('linalg/spread.ts', { ...spread, MILLRACE_NODES: 'local:2x1' }) },
        { system: PLAIN, run: secondsOf('linalg/spread.ts', { ...spread, SPREAD_SEQUENTIAL: '1' }) },
      ],
    },
  ])
} finally {
  rmSync(folder, { recursive: true, force: true })
}
