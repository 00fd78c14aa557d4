import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bin } from '../cli/folder.ts'
import { folder } from './program.ts'

const library = JSON.stringify(pathToFileURL(join(import.meta.dirname, '..', '..', 'dist', 'index.js')).href)

/** MPI tasks with four ranks, on nodes of two CPUs. */
const program = join(folder, 'ranks.mjs')
writeFileSync(
  program,
  `
import { mpi, task, main, waitOn, waitOnFile, IN, INOUT, FILE_OUT, shared } from ${library}
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
const [mode = 'all', folder = '.'] = process.argv.slice(2)
export const runs = mpi({ name: 'runs', processes: 4 }, comm => comm.allgather(process.env.MILLRACE_RUN))
export const library = mpi({ name: 'library', processes: 4, reduce: 'sum' }, () => /mpich/i.test(readFileSync('/proc/self/maps', 'utf8')) ? 1 : 0)
export const pair = mpi({ name: 'pair', processes: 2 }, comm => comm.allgather(process.env.MILLRACE_RUN))
export const total = mpi({ name: 'total', processes: 4, layout: { 0: 'block' }, reduce: 'sum' }, (comm, x) => x.reduce((s, v) => s + v, 0))
export const bump = mpi({ name: 'bump', processes: 4, params: [INOUT], layout: { 0: 'block' } }, (comm, x) => { for (let i = 0; i < x.length; i++) x[i] += 1 + comm.rank })
export const nested = mpi({ name: 'nested', processes: 4, params: [INOUT] }, (comm, o) => { o.list[comm.rank][0] = comm.rank + 1 })
export const clash = mpi({ name: 'clash', processes: 4, params: [INOUT] }, (comm, x) => { x[3] = comm.rank + 1 })
export const each = mpi({ name: 'each', processes: 4, returns: 'each' }, comm => new Float64Array(50_000).fill(comm.rank))
export const save = mpi({ name: 'save', processes: 4, params: [IN, FILE_OUT] }, (comm, n, out) => { comm.file(out).writeAtAll(comm.rank * 8 * n, new Float64Array(n).fill(comm.rank)) })
export const stuck = mpi({ name: 'stuck', processes: 4 }, comm => { if (comm.rank !== 2) comm.barrier() })
export const dies = mpi({ name: 'dies', processes: 4, retries: 1, params: [INOUT, IN] }, (comm, x, path) => {
  x[comm.rank] += 1
  if (comm.rank === 3 && !existsSync(path)) { writeFileSync(path, ''); process.kill(process.pid, 'SIGKILL') }
  comm.barrier()
})
export const slow = mpi({ name: 'slow', processes: 4, params: [INOUT, IN, IN] }, (comm, x, begun, go) => {
  x[comm.rank] += 1
  appendFileSync(begun, process.pid + ' ' + comm.rank + '\\n')
  const end = performance.now() + 60_000
  while (!existsSync(go) && performance.now() < end);
  comm.barrier()
})
const said = future => waitOn(future).then(() => 'no error', error => error.message.split('\\n')[0])
main(async () => {
  if (mode === 'slow') {
    const x = new Float64Array(4)
    slow(x, folder + '/begun', folder + '/go')
    return console.log([...await waitOn(x)].join())
  }
  const [of] = await waitOn(runs())
  const mpich = await waitOn(library())
  const [two] = await waitOn(pair())
  const small = new Float64Array(6), large = new Float64Array(100_001), both = shared(Float64Array, 1000), four = new Float64Array(4)
  const lists = { list: [0, 1, 2, 3].map(() => new Float64Array(20_000)) }
  bump(small); bump(large); bump(large); bump(both); bump(both); nested(lists)
  const sum = await waitOn(total(large))
  for (const one of [small, large, both, lists]) await waitOn(one)
  const clashed = await said(clash(new Float64Array(5)))
  const parts = await waitOn(each())
  save(10, folder + '/ranks.bin')
  const bytes = readFileSync(await waitOnFile(folder + '/ranks.bin'))
  const written = [...new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))]
  await waitOn(dies(four, folder + '/died'))
  const waits = await said(stuck())
  const counts = list => [...new Set(list)].map(run => list.filter(one => one === run).length)
  console.log(JSON.stringify({
    library: ['openmpi', , , , 'mpich'][mpich], nodes: counts(of), pair: counts(two), sum, small: [...small], large: [large[0], large[100_000]], both: [both[0], both[999]],
    nested: lists.list.map(one => one[0]), clashed, parts: parts.map(one => one[49_999]), written: written.filter((_, i) => i % 10 === 9), four: [...(await waitOn(four))], waits,
  }))
})
`,
)

/** Chooses an MPI by name, where both are installed. */
export const mpiVariables = (mpi: string): NodeJS.ProcessEnv => ({
  MILLRACE_MPICC: `mpicc.${mpi}`,
  MILLRACE_MPIRUN: `mpirun.${mpi}`,
})

export const rankArguments = (nodes: string, mode: string): string[] => [
  bin,
  'run',
  program,
  '--nodes',
  nodes,
  '--no-journal',
  '--progress',
  'none',
  '--',
  mode,
  folder,
]

/** What the mode `all` prints, but for the two messages of errors. */
export const RANKS_SAID = {
  nodes: [2, 2],
  pair: [2],
  // 25,000 elements for each of the first three ranks, one more for the last.
  sum: 2 * (25_000 * (1 + 2 + 3) + 25_001 * 4),
  small: [1, 2, 2, 3, 4, 4],
  large: [2, 8],
  both: [2, 8],
  nested: [1, 2, 3, 4],
  parts: [0, 1, 2, 3],
  written: [0, 1, 2, 3],
  four: [1, 1, 1, 1],
}

/** What the program printed. MPICH tells before of a rank that died. */
export const lastSaid = (text: string): Record<string, unknown> =>
  JSON.parse(text.trim().split('\n').at(-1) ?? '') as Record<string, unknown>
