import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as plain from '../../src/linalg/plain.ts'
import { random } from '../../examples/linalg/residual.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
mkdirSync(join(root, 'test', 'tmp'), { recursive: true })
const folder = mkdtempSync(join(root, 'test', 'tmp', 'linalg-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const next = random(7)
const matrix = (size: number): Float64Array => new Float64Array(size).map(() => next())

test('the plain product is that of the definition, for any shape and transposition', () => {
  for (const [m, n, k] of [
    [1, 1, 1],
    [3, 5, 2],
    [65, 7, 130],
    [64, 9, 128],
    [2, 66, 5],
  ] as const) {
    for (const [transA, transB] of [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ] as const) {
      const [lda, ldb] = [transA ? k : m, transB ? n : k]
      const [a, b, c] = [matrix(m * k), matrix(k * n), matrix(m * n)]
      const expected = c.slice()
      for (let i = 0; i < m; i++) {
        for (let j = 0; j < n; j++) {
          let sum = 0
          for (let p = 0; p < k; p++) {
            sum +=
              ((transA ? a[p + i * lda] : a[i + p * lda]) as number) *
              ((transB ? b[j + p * ldb] : b[p + j * ldb]) as number)
          }
          expected[i + j * m] = (expected[i + j * m] as number) - 2 * sum
        }
      }
      plain.gemm(transA, transB, m, n, k, -2, a, lda, b, ldb, c, m)
      c.forEach((x, i) => assert.ok(Math.abs(x - (expected[i] as number)) < 1e-12 * k, `${m} ${n} ${k}`))
    }
  }
})

test('plain solves undo plain products, on both sides and for both halves', () => {
  const n = 9
  const columns = 4
  for (const half of ['L', 'U'] as const) {
    for (const transposed of [false, true]) {
      for (const isUnit of [false, true]) {
        const t = new Float64Array(n * n).map((_, at) => {
          const [i, j] = [at % n, Math.floor(at / n)]
          if (i === j) return isUnit ? 1 : 3 + next()
          return (half === 'L') === i > j ? next() / 2 : 0
        })
        const x = matrix(n * columns)
        const left = new Float64Array(n * columns)
        plain.gemm(transposed, false, n, columns, n, 1, t, n, x, n, left, n)
        plain.solveLeft({ half, transposed, isUnit }, n, columns, t, n, left, n)
        left.forEach((value, i) => assert.ok(Math.abs(value - (x[i] as number)) < 1e-10))
        const right = new Float64Array(columns * n)
        plain.gemm(false, transposed, columns, n, n, 1, x, columns, t, n, right, columns)
        plain.solveRight({ half, transposed, isUnit }, columns, n, t, n, right, columns)
        right.forEach((value, i) => assert.ok(Math.abs(value - (x[i] as number)) < 1e-10))
      }
    }
  }
})

test('what has no factor is said with its column', () => {
  const indefinite = new Float64Array([4, 2, 0, 2, 1, 0, 0, 0, 5])
  assert.equal(plain.potrf(3, indefinite, 3), 2)
  const singular = new Float64Array([1, 2, 2, 4])
  assert.equal(plain.getrf(2, 2, singular, 2, new Int32Array(2)), 2)
})

const PROGRAM = `
import { main, waitOn } from 'millrace'
import { prepareKernels } from 'millrace/linalg'
import { cholesky, finished, lu, matmul, qr, solveLu, solveTriangular } from '${root}examples/linalg/algorithms.ts'
import { BlockMatrix } from '${root}examples/linalg/blocks.ts'
import { random, residual } from '${root}examples/linalg/residual.ts'

const next = random(Number(process.env.SEED))
const shape = (most: number) => 1 + Math.floor(((next() + 1) / 2) * most)
main(async () => {
  const { name, qr: hasQr } = await prepareKernels()
  console.log(name)
  for (let round = 0; round < 6; round++) {
    const [m, n, k, block] = [shape(60), shape(60), shape(60), shape(25)] as [number, number, number, number]
    const a = BlockMatrix.from(m, k, block, () => next())
    const b = BlockMatrix.from(k, n, block, () => next())
    const c = new BlockMatrix(m, n, block)
    matmul(a, b, c)
    await finished(c)
    for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) {
      let sum = 0
      for (let p = 0; p < k; p++) sum += a.get(i, p) * b.get(p, j)
      if (Math.abs(sum - c.get(i, j)) > 1e-13 * k) throw new Error('product ' + [m, n, k, block, i, j])
    }
    // LU of a matrix that needs its row exchanges.
    const s = BlockMatrix.from(n, n, block, (i, j) => next() + (i + j === n - 1 ? 8 : 0))
    const right = BlockMatrix.from(n, 1, block, () => next())
    const [f, x] = [s.copy(), right.copy()]
    const exchanged = lu(f)
    solveLu(f, exchanged, x)
    await exchanged.check()
    if (!(residual(s, await finished(x), right) < 100)) throw new Error('LU ' + [n, block])
    const p = BlockMatrix.from(n, n, block, (i, j) => s.get(i, j) + s.get(j, i) + (i === j ? 40 + n : 0))
    const [l, y] = [p.copy(), right.copy()]
    cholesky(l)
    solveTriangular(l, y, 'LN')
    solveTriangular(l, y, 'LT')
    if (!(residual(p, await finished(y), right) < 100)) throw new Error('Cholesky ' + [n, block])
    if (!hasQr) continue
    const [r, z] = [s.copy(), right.copy()]
    qr(r, z)
    solveTriangular(r, z, 'UN')
    if (!(residual(s, await finished(z), right) < 100)) throw new Error('QR ' + [n, block])
  }
  const zero = new BlockMatrix(20, 20, 7)
  await lu(zero).check().catch(error => console.log(error.message))
  const negative = BlockMatrix.from(20, 20, 7, (i, j) => (i === j ? (i === 9 ? -1 : 1) : 0))
  cholesky(negative)
  await finished(negative).then(() => console.log('no error'), error => console.log(error.message.split('\\n')[0]))
})
`

for (const blas of ['', 'off']) {
  test(`tiled algorithms are right for odd shapes, ${blas === 'off' ? 'in TypeScript' : 'by the library'}`, () => {
    writeFileSync(join(folder, 'tiled.ts'), PROGRAM)
    const env = {
      ...process.env,
      SEED: process.env['MILLRACE_SEED'] ?? '5',
      ...(blas && { MILLRACE_BLAS: blas }),
    }
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [join(root, 'bin', 'millrace.js'), 'run', 'tiled.ts', '--progress', 'none'],
      { cwd: folder, env, encoding: 'utf8' },
    )
    const [name, singular, indefinite] = stdout.split('\n')
    if (blas === 'off') assert.equal(name, 'TypeScript', stderr)
    assert.equal(singular, 'the matrix is singular: column 0 has no pivot', stderr)
    assert.match(indefinite ?? '', /the matrix is not positive definite: column 9 fails/)
  })
}
