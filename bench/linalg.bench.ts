import { spawnSync } from 'node:child_process'
import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import { numberOf, pathOf, withProgram } from './number-of.ts'

const node = (system: string, what: string, n: number, block: number, environment = {}) =>
  withProgram('linalg.ts', [system, what, String(n), String(block)], environment)

const hasNumpy = spawnSync('python3', ['-c', 'import numpy']).status === 0
const TILED = 'millrace, tiled'
const LIBRARY = 'OpenBLAS, one call with threads'
const NUMPY = 'NumPy'
const PLAIN = 'millrace, tiled in TypeScript'
const N = Number(process.env['BENCH_N'] ?? 4096)
const BLOCK = Number(process.env['BENCH_BLOCK'] ?? 512)

const goals: Record<string, number> = { matmul: 0.95, cholesky: 0.9, lu: 0.85, qr: 0.85 }

const cases: Case[] = ['matmul', 'cholesky', 'lu', 'qr'].map(what => ({
  name: what,
  unit: 'GFLOP/s',
  better: 'higher',
  take: 'median',
  rounds: 3,
  about: `${what} of ${N} in doubles, blocks of ${BLOCK}; each run checks its residual`,
  arms: [
    { system: TILED, run: () => node('tiled', what, N, what === 'matmul' ? BLOCK : BLOCK / 2) },
    { system: LIBRARY, run: () => node('library', what, N, BLOCK) },
    {
      system: NUMPY,
      missing: what === 'lu' ? 'NumPy has no LU' : hasNumpy ? undefined : 'python3-numpy is not installed',
      run: () => numberOf(['python3', pathOf('numpy_linalg.py'), what, String(N)]),
    },
  ],
  goals: [{ of: TILED, against: LIBRARY, atLeast: goals[what] as number, orTie: true }],
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
