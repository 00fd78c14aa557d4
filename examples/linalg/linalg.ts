/** Solves a system of equations in three ways and says how well: `millrace run examples/linalg/linalg.ts -- 1000 128`. */
import { main } from 'millrace'
import { prepareKernels } from 'millrace/linalg'
import { cholesky, finished, lu, qr, solveLu, solveTriangular } from './algorithms.ts'
import { BlockMatrix } from './blocks.ts'
import { random, residual } from './residual.ts'

const n = Number(process.argv[2] ?? 600)
const block = Number(process.argv[3] ?? 128)

main(async () => {
  const { name, qr: hasQr } = await prepareKernels()
  console.log(`${n} equations in blocks of ${block}, by ${name}`)
  const next = random(1)
  const a = BlockMatrix.from(n, n, block, (i, j) => next() + (i === j ? n : 0))
  const symmetric = BlockMatrix.from(n, n, block, (i, j) => a.get(i, j) + a.get(j, i))
  const b = BlockMatrix.from(n, 1, block, () => next())

  const l = symmetric.copy()
  const x = b.copy()
  cholesky(l)
  solveTriangular(l, x, 'LN')
  solveTriangular(l, x, 'LT')
  console.log('Cholesky', residual(symmetric, await finished(x), b) < 30)

  const factors = a.copy()
  const y = b.copy()
  const exchanged = lu(factors)
  solveLu(factors, exchanged, y)
  await exchanged.check()
  console.log('LU', residual(a, await finished(y), b) < 30)

  if (!hasQr) return
  const r = a.copy()
  const z = b.copy()
  qr(r, z)
  solveTriangular(r, z, 'UN')
  console.log('QR', residual(a, await finished(z), b) < 30)
})
