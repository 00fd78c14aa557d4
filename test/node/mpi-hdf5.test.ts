import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { programFolder, runProgram, without } from './mpi-program.ts'

const folder = programFolder('mpi-hdf5')

/** Why tests of HDF5 with this MPI are skipped, or false. */
function withoutHdf5(mpi: string): string | false {
  if (without(mpi)) return without(mpi)
  const { status } = spawnSync('pkg-config', ['--exists', `hdf5-${mpi}`])
  return status === 0 ? false : `needs libhdf5-${mpi}-dev`
}

const MATRIX = `
import { FILE_IN, FILE_OUT, IN, main, mpi, waitOn } from 'millrace'
// Each rank has some columns, and writes them as a block of the whole.
export const save = mpi({ name: 'save', processes: 2, params: [IN, FILE_OUT], root: 0 }, async (comm, n, out) => {
  const from = Math.floor((n * comm.rank) / 2), width = Math.floor((n * (comm.rank + 1)) / 2) - from
  const file = await comm.hdf5(out)
  const grid = file.create('run1/grid', new Float64Array(0), [n, n])
  const own = new Float64Array(n * width).map((_, i) => Math.floor(i / width) * n + from + (i % width))
  grid.write(own, { starts: [0, from], lengths: [n, width] })
  const counts = file.create('counts', new Int32Array(0), [3])
  counts.write(comm.rank === 0 ? new Int32Array([1, 2, 3]) : new Int32Array(0), comm.rank === 0 ? { starts: [0], lengths: [3] } : { starts: [0], lengths: [0] })
  return grid.sizes.join('x')
})
export const load = mpi({ name: 'load', processes: 2, params: [FILE_IN] }, async (comm, path) => {
  const file = await comm.hdf5(path, 'r')
  const grid = file.dataset('run1/grid')
  const [n] = grid.sizes
  // Rows this time, and as other numbers.
  const rows = new Float32Array(n)
  grid.read(rows, { starts: [comm.rank, 0], lengths: [1, n] })
  const counts = new Float64Array(3)
  file.dataset('counts').read(counts, { starts: [0], lengths: [3] })
  return [[...rows], [...counts]]
})
export const missing = mpi({ name: 'missing', processes: 2, params: [FILE_IN] }, async (comm, path) => (await comm.hdf5(path, 'r')).dataset('nothing'))
export const outside = mpi({ name: 'outside', processes: 2, params: [FILE_IN] }, async (comm, path) => (await comm.hdf5(path, 'r')).dataset('counts').read(new Int32Array(2), { starts: [2], lengths: [2] }))
export const apart = mpi({ name: 'apart', processes: 2, params: [FILE_IN] }, async (comm, path) => {
  const file = await comm.hdf5(path, 'r')
  if (comm.rank === 0) file.dataset('counts')
  else comm.barrier()
})
const first = error => error.message.split('\\n')[0]
main(async () => {
  console.log(await waitOn(save(5, 'm.h5')))
  console.log(JSON.stringify(await waitOn(load('m.h5'))))
  for (const one of [missing, outside, apart]) console.log(await waitOn(one('m.h5')).then(() => 'no error', first))
})
`

for (const mpi of ['openmpi', 'mpich']) {
  test(`datasets of HDF5 are written and read in blocks, with ${mpi}`, { skip: withoutHdf5(mpi) }, () => {
    const lines = runProgram(folder, `matrix-${mpi}.mjs`, MATRIX, mpi).trim().split('\n')
    assert.equal(lines[0], '5x5')
    assert.equal(lines[1], '[[[0,1,2,3,4],[1,2,3]],[[5,6,7,8,9],[1,2,3]]]')
    assert.match(lines[2] ?? '', /rank \d of 2: nothing: /)
    assert.match(lines[3] ?? '', /hdf5 read: an array of 2 and a block of 2 at 2 in a dataset of 3/)
    assert.match(lines[4] ?? '', /ranks do not agree: collective call 2 is (barrier|hdf5 dataset) in rank/)
  })
}

test('without parallel HDF5 the error names the packages', { skip: without('openmpi') }, () => {
  // A pkg-config that knows no HDF5, and a path without h5pcc.
  const tools = join(folder, 'tools')
  mkdirSync(tools)
  writeFileSync(join(tools, 'pkg-config'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  for (const name of ['h5pcc', 'h5pcc.openmpi']) {
    writeFileSync(join(tools, name), '#!/bin/sh\necho "no HDF5 here" >&2\nexit 1\n', { mode: 0o755 })
  }
  const { PATH, XDG_CACHE_HOME } = process.env
  process.env['PATH'] = `${tools}:${PATH}`
  process.env['XDG_CACHE_HOME'] = join(folder, 'cache')
  try {
    const lines = runProgram(
      folder,
      'none.mjs',
      `
import { FILE_OUT, main, mpi, waitOn } from 'millrace'
export const save = mpi({ name: 'save', processes: 2, params: [FILE_OUT] }, comm => comm.hdf5('x.h5'))
main(async () => console.log(await waitOn(save('x.h5')).catch(error => error.cause?.code + ' ' + error.message)))
`,
      'openmpi',
    )
    assert.match(lines, /parallel HDF5 cannot be used: [\s\S]*libhdf5-openmpi-dev/)
  } finally {
    process.env['PATH'] = PATH
    if (XDG_CACHE_HOME === undefined) delete process.env['XDG_CACHE_HOME']
    else process.env['XDG_CACHE_HOME'] = XDG_CACHE_HOME
  }
})
