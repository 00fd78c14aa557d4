import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { killRanks } from '../../bench/mpi-kills.ts'
import { programFolder, runProgram, without } from './mpi-program.ts'

const folder = programFolder('mpi-release')

const EARLY = `
import { granted, main, mpi, ready, task, waitOn } from 'millrace'
import { existsSync, writeFileSync } from 'node:fs'
export const lists = mpi({ name: 'lists', processes: 2, buffer: 1 }, function* (comm, n) {
  for (let i = 0; i < n; i++) yield comm.allreduce(i) * 10 + comm.rank
})
export const sums = mpi({ name: 'sums', processes: 2, reduce: 'sum', buffer: 1 }, function* (comm, n) {
  for (let i = 0; i < n; i++) yield i + comm.rank
})
export const uneven = mpi({ name: 'uneven', processes: 2 }, function* (comm) {
  for (let i = 0; i <= comm.rank; i++) yield i
})
export const again = mpi({ name: 'again', processes: 2, retries: 1, root: 0 }, async function* (comm) {
  for (let i = 0; i < 5; i++) {
    if (i === 3 && comm.rank === 1 && !existsSync('failed')) { writeFileSync('failed', ''); process.kill(process.pid, 'SIGKILL') }
    yield { i, big: new Float64Array(20000).fill(i) }
  }
})
export const twice = task({ name: 'twice', cpus: 2 }, x => 2 * (x.i ?? x))
export const total = task({ name: 'total' }, async values => { let s = 0; for await (const v of values) s += v; return s })
export const early = mpi({ name: 'early', processes: 2, returns: 'each' }, comm => {
  const value = ready(comm.rank, comm.rank * 5)
  if (comm.rank === 0) while (!existsSync('go'));
  comm.barrier()
  return value
})
export const wrong = mpi({ name: 'wrong', processes: 2, returns: 'each' }, comm => ready(1 - comm.rank, 1))
export const none = mpi({ name: 'none', processes: 2 }, comm => ready(comm.rank, 1))
export const retried = mpi({ name: 'retried', processes: 2, returns: 'each', retries: 1 }, comm => {
  ready(comm.rank, [comm.rank])
  comm.barrier()
  if (comm.rank === 1 && !existsSync('retried')) { writeFileSync('retried', ''); throw new Error('once') }
  return [comm.rank]
})
export const scaled = mpi({ name: 'scaled', processes: 1, cpus: 2, scaleByCpu: true }, comm => comm.size + granted().cpus * 10)
export const pair = mpi({ name: 'pair', processes: 2, root: 0 }, comm => comm.allreduce(1))
export const alone = mpi({ name: 'alone', processes: 1, root: 0 }, comm => comm.size)
export const short = task({ name: 'short' }, x => x)
const first = error => [error.code, error.message.split('\\n')[0]].join(' ')
main(async () => {
  const got = []
  for await (const item of lists(5)) got.push(await waitOn(item))
  console.log(JSON.stringify(got))
  console.log(await waitOn(total(sums(4))))
  const doubled = []
  for await (const item of again()) doubled.push(twice(item))
  console.log(JSON.stringify(await waitOn(doubled)))
  try { for await (const item of uneven()) await waitOn(item) } catch (error) { console.log(first(error)) }
  let n = 0
  for await (const item of lists(1000)) if (++n === 3) break
  const [a, b] = early()
  console.log(n, await waitOn(a), await waitOn(b))
  writeFileSync('go', '')
  for (const call of [() => wrong()[0], none]) console.log(await waitOn(call()).catch(first))
  console.log(JSON.stringify(await waitOn(retried())), JSON.stringify(await waitOn(scaled())))
  // Wide and narrow tasks, some with a priority: all come to their turn.
  const mixed = []
  for (let i = 0; i < 60; i++) mixed.push(i % 5 === 0 ? pair() : i % 5 === 1 ? alone() : short(1))
  console.log((await waitOn(mixed)).reduce((sum, x) => sum + x, 0))
})
`

test('ranks release values before they end', { skip: without('openmpi') }, () => {
  const lines = runProgram(folder, 'early.mjs', EARLY, 'openmpi').trim().split('\n')
  assert.deepEqual(lines, [
    '[[0,1],[20,21],[40,41],[60,61],[80,81]]',
    '16',
    '[0,2,4,6,8]',
    lines[3],
    '3 0 5',
    lines[5],
    lines[6],
    '[[0],[1]] [12,12]',
    String(12 * 2 + 12 + 36),
  ])
  assert.match(lines[3] ?? '', /^MR_TASK_FAILED uneven#\d+ failed: rank 0 yielded 1 value, and rank 1 more/)
  assert.match(lines[5] ?? '', /^MR_RELEASE .*this is rank \d, which releases its own value only/)
  assert.match(lines[6] ?? '', /^MR_RELEASE .*the task gives one result for all ranks/)
})

const MISUSE = `
import { main, mpi, waitOn } from 'millrace'
export const tags = mpi({ name: 'tags', processes: 2 }, comm => {
  if (comm.rank === 0) comm.send(new Float64Array(1e6), 1, 3)
  else comm.recv(new Float64Array(1e6), 0, 4)
})
export const leaves = mpi({ name: 'leaves', processes: 2 }, comm => { comm.irecv(new Float64Array(1), 1 - comm.rank) })
export const sends = mpi({ name: 'sends', processes: 2 }, comm => {
  if (comm.rank === 0) comm.isend(new Float64Array(4), 1)
  else comm.recv(new Float64Array(4), 0)
  return 1
})
export const types = mpi({ name: 'types', processes: 2 }, comm => comm.gatherv(comm.rank ? new Float32Array(2) : new Float64Array(3)))
export const roots = mpi({ name: 'roots', processes: 2 }, comm => comm.bcast(new Float64Array(1), comm.rank))
export const mixed = mpi({ name: 'mixed', processes: 2 }, comm => { if (comm.rank === 0) comm.ibarrier().wait(); else comm.barrier() })
export const short = mpi({ name: 'short', processes: 2 }, comm => { if (comm.rank === 0) comm.send(new Float64Array(10), 1); else comm.recv(new Float64Array(2), 0) })
export const stranger = mpi({ name: 'stranger', processes: 2 }, comm => comm.send(new Float64Array(1), 5))
main(async () => {
  for (const one of [tags, leaves, sends, types, roots, mixed, short, stranger]) {
    console.log(await waitOn(one()).then(JSON.stringify, error => error.message.split('\\n')[0]))
  }
})
`

for (const mpi of ['openmpi', 'mpich']) {
  test(`misuse names the ranks and where they are, with ${mpi}`, { skip: without(mpi) }, () => {
    const lines = runProgram(folder, `misuse-${mpi}.mjs`, MISUSE, mpi).trim().split('\n')
    const at = String.raw`\(\S+misuse-\w+\.mjs:\d+\)`
    const expected = [
      `no rank can go on: rank 0 is in send to rank 1 with tag 3 ${at}; rank 1 is in recv from rank 0 with tag 4 ${at}`,
      'a message that irecv asked for never came',
      String.raw`^\[1,1\]$`,
      'collective call 2 is gatherv of float(32|64) with root 0 in rank . .* and gatherv of float(32|64) with root 0 in rank',
      'collective call 1 is bcast of 1 float64 with root (.) in rank (.) .* and bcast of 1 float64 with root',
      'is i?barrier in rank . .* and i?barrier in rank',
      'rank 1 of 2: recv: .*truncated',
      'to is rank 5, and there are 2',
    ]
    assert.equal(lines.length, expected.length)
    for (const [i, line] of lines.entries()) assert.match(line, new RegExp(expected[i] as string, 'i'))
  })
}

test(
  'a rank that is killed at any moment: right results, nothing left',
  { skip: without('openmpi') },
  async () => {
    const kills = await killRanks(Number(process.env['SEED'] ?? 1), Number(process.env['KILLS'] ?? 10), {
      MILLRACE_MPICC: 'mpicc.openmpi',
      MILLRACE_MPIRUN: 'mpirun.openmpi',
    })
    assert.deepEqual(kills, { wrong: 0, killed: kills.killed, isHung: false, left: [] })
    assert.ok(kills.killed > 0)
  },
)

const NODES = `
import { FILE_OUT, INOUT, command, main, mpi, task, waitOn, waitOnFile } from 'millrace'
import { readFileSync } from 'node:fs'
export const two = mpi({ name: 'two', processes: 2, root: 0, params: [INOUT, FILE_OUT] }, (comm, a, out) => {
  a[comm.rank] = comm.rank + 1
  comm.file(out).writeAtAll(comm.rank * 4, new Int32Array([comm.rank + 7]))
  return comm.allreduce(1)
})
export const program = command({ name: 'program', mpi: { processes: 2 }, params: [FILE_OUT], stdout: 0 }, () => ['sh', '-c', 'echo $MILLRACE_NUM_NODES $MILLRACE_HOSTS $SLURM_JOB_ID'])
// Four ranks are on both agents; others go on meanwhile, and again afterwards.
export const four = mpi({ name: 'four', processes: 4, perNode: 2, params: [INOUT], root: 0 }, (comm, a) => {
  a[comm.rank] += comm.rank + 1
  return comm.allreduce(1)
})
export const inner = task({ name: 'inner' }, () => waitOn(four(new Float64Array(4))))
export const small = task({ name: 'small' }, x => x)
export const tooMany = mpi({ name: 'tooMany', processes: 3, perNode: 1 }, () => 1)
main(async () => {
  const wide = new Float64Array(4)
  const all = []
  for (let i = 0; i < 30; i++) all.push(small(1), ...(i % 10 === 0 ? [four(wide)] : []))
  console.log((await waitOn(all)).reduce((x, y) => x + y, 0), [...(await waitOn(wide))].join(), await waitOn(inner()))
  try { tooMany() } catch (error) { console.log(error.code, error.message.split('\\n')[0]) }
  const a = new Float64Array(2)
  console.log(await waitOn(two(a, 'x.bin')), [...(await waitOn(a))].join(), readFileSync(await waitOnFile('x.bin')).join())
  program('o.txt')
  console.log(readFileSync(await waitOnFile('o.txt'), 'utf8').trim())
})
`

test('agents on this machine run MPI tasks, also inside an allocation', { skip: without('openmpi') }, () => {
  // What launchers take for an allocation on other machines.
  process.env['SLURM_JOB_ID'] = '7'
  process.env['SLURM_JOBID'] = '7'
  process.env['SLURM_NODELIST'] = 'far1,far2'
  try {
    const options = ['--nodes', 'local:2', '--cpus', '4']
    const lines = runProgram(folder, 'nodes.mjs', NODES, 'openmpi', options).trim().split('\n')
    assert.deepEqual(lines.slice(0, 2), [
      '42 3,6,9,12 4',
      'MR_CONSTRAINT task tooMany asks for 3 CPUs with at most 1 on a node, but the nodes over which its ranks can be spread have 2 + 2',
    ])
    assert.deepEqual(lines.slice(2), ['2 1,2 7,0,0,0,8,0,0,0', `1 ${hostname()}`, `1 ${hostname()}`])
  } finally {
    for (const name of ['SLURM_JOB_ID', 'SLURM_JOBID', 'SLURM_NODELIST']) delete process.env[name]
  }
})
