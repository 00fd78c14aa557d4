/** `millrace/linalg`: kernels on blocks of matrices, for tasks of tiled algorithms; examples/linalg has these. */
export { kernels, prepareKernels } from './kernels.ts'
export type { GemmOptions, Kernels, QrKernels, TpmqrtOptions } from './kernels.ts'
export type { Triangle } from './plain.ts'
