import { spawnSync } from 'node:child_process'
import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import { defaultBlock } from '../examples/linalg/blocks.ts'
import { numberOf, pathOf, withProgram } from './number-of.ts'

const node = (system: string, what: string, n: number, block: number, environment = {}) =>
  withProgram('linalg.ts', [system, what, String(n), String(block)], environment)

const TILED = 'millrace, tiled'
const LIBRARY = 'OpenBLAS, one call with threads'
const NUMPY = 'NumPy'
const PLAIN = 'millrace, tiled in TypeScript'
const N = Number(process.env['BENCH_N'] ?? 4096)
const CPUS = Number(process.env['BENCH_CPUS'] ?? 2)
const BLOCK = Number(process.env['BENCH_BLOCK'] ?? defaultBlock(N, CPUS))
const PYTHON = process.env['BENCH_PYTHON'] ?? 'python3'

const isByCpu = process.env['BENCH_CPU_TIME'] === '1'
const hasNumpy = spawnSync(PYTHON, ['-c', 'import numpy']).status === 0
const goals: Record<string, number> = { matmul: 0.95, cholesky: 0.9, lu: 0.85, qr: 0.85 }

const cases: Case[] = ['matmul', 'cholesky', 'lu', 'qr'].map(what => ({
  name: what,
  unit: isByCpu ? 'GFLOP for each second of CPU time' : 'GFLOP/s',
  better: 'higher',
  take: 'median',
  rounds: 3,
  about: `${what} of ${N} in doubles on ${CPUS} CPUs, blocks of ${BLOCK}; it has been called once before, and its residual is checked`,
  arms: [
    { system: TILED, run: () => node('tiled', what, N, BLOCK) },
    { system: LIBRARY, run: () => node('library', what, N, BLOCK) },
    {
      system: NUMPY,
      missing: what === 'lu' ? 'NumPy has no LU' : hasNumpy ? undefined : `${PYTHON} has no numpy`,
      run: () =>
        numberOf([PYTHON, pathOf('numpy_linalg.py'), what, String(N)], {
          OPENBLAS_NUM_THREADS: String(CPUS),
        }),
    },
  ],
  goals: (what === 'matmul' || what === 'cholesky' ? [LIBRARY, NUMPY] : [LIBRARY]).map(against => ({
    of: TILED,
    against,
    atLeast: goals[what] as number,
    orTie: true,
  })),
}))

cases.push({
  name: 'typescript',
  unit: 'GFLOP/s',
  better: 'higher',
  take: 'median',
  rounds: 3,
  about: 'matmul of 1024 without a library, against the library by the same tasks',
  arms: [
    { system: PLAIN, run: () => node('tiled', 'matmul', 1024, 128, { MILLRACE_BLAS: 'off' }) },
    { system: TILED, run: () => node('tiled', 'matmul', 1024, 128) },
  ],
})

await bench('linalg', cases)
