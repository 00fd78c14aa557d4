import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { programFolder, runProgram, without } from './mpi-program.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = programFolder('mpi')
const run = (name: string, program: string, mpi: string): string => runProgram(folder, name, program, mpi)

const CALLS = `
import { mpi, main, waitOn } from 'millrace'
class Point { constructor(x) { this.x = x } }
const same = (a, b) => { if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(JSON.stringify(a) + ' is not ' + JSON.stringify(b)) }
export const calls = mpi({ name: 'calls', processes: 2 }, comm => {
  const { rank, size } = comm
  const other = 1 - rank
  same([...comm.bcast(new Int32Array(rank === 1 ? [4, 5] : 2), 1)], [4, 5])
  same(comm.bcast(rank === 0 ? { a: [1, 'x'] } : undefined), { a: [1, 'x'] })
  const both = comm.gather(new Float64Array([rank, rank + 10]), 0)
  same(both && [...both], rank === 0 ? [0, 10, 1, 11] : null)
  same([...comm.allgather(new Int16Array([rank]))], [0, 1])
  same(comm.allgather({ rank }), [{ rank: 0 }, { rank: 1 }])
  const parts = comm.gatherv(new Uint8Array(rank + 1).fill(rank + 1), 1)
  same(parts && [...parts], rank === 1 ? [1, 2, 2] : null)
  same([...comm.allgatherv(new BigInt64Array(rank).fill(7n))].map(String), ['7'])
  same([...comm.scatter(rank === 0 ? new Float32Array([1, 2, 3, 4]) : null, new Float32Array(2))], [1 + 2 * rank, 2 + 2 * rank])
  same(comm.scatter(rank === 0 ? ['a', { b: 1 }] : null), rank === 0 ? 'a' : { b: 1 })
  same([...comm.scatterv(rank === 1 ? new Uint16Array([9, 8, 7]) : null, new Uint16Array(rank + 1), 1)], rank === 0 ? [9] : [8, 7])
  same([comm.allreduce(rank + 1), comm.allreduce(rank + 1, 'prod'), comm.allreduce(rank, 'min'), comm.allreduce(rank, 'max'), comm.allreduce(rank, 'lor'), comm.allreduce(rank, 'land')], [3, 2, 0, 1, 1, 0])
  const a = new Float64Array([rank, 1])
  same([...comm.allreduce(a, 'sum', a)], [1, 2])
  same(comm.reduce(new Int32Array([rank + 1]), 'bor', 1), rank === 1 ? { 0: 3 } : null)
  same([...comm.alltoall(new Int32Array([rank * 10, rank * 10 + 1]))], [rank, 10 + rank])
  same(comm.alltoall(['x' + rank, 'y' + rank]), rank === 0 ? ['x0', 'x1'] : ['y0', 'y1'])
  same([...comm.alltoallv(new Uint8Array([1, 2, 3]), rank === 0 ? [1, 2] : [2, 1])], rank === 0 ? [1, 1, 2] : [2, 3, 3])
  if (rank === 0) { comm.send(new Float64Array([1, 2]), 1, 5); comm.send({ deep: [new Map([[1, 2]])] }, 1, 6) }
  else {
    same(comm.probe(0, 5), { source: 0, tag: 5, count: 16 })
    const into = new Float64Array(2)
    same(comm.recv(into, 0, 5), { source: 0, tag: 5, count: 2 })
    same([...into], [1, 2])
    same([...comm.recvValue(0, 6).deep[0]], [[1, 2]])
  }
  const got = new Int32Array(1)
  const request = comm.irecv(got, other)
  const sent = comm.isend(new Int32Array([rank]), other)
  request.wait(); sent.wait()
  same([...got], [other])
  while (!sent.test());
  const sum = new Float64Array([rank, 1])
  comm.iallreduce(sum).wait()
  same([...sum], [1, 2])
  const from1 = new Int32Array([rank === 1 ? 7 : 0])
  comm.ibcast(from1, 1).wait()
  const list = rank === 0 ? new Int32Array(2) : null
  comm.igather(new Int32Array([rank + 1]), 0, list).wait()
  const every = new Int16Array(2)
  const begun = comm.iallgather(new Int16Array([rank]), every)
  while (!begun.test());
  const mine = new Float32Array(1)
  comm.iscatter(rank === 0 ? new Float32Array([5, 6]) : null, mine).wait()
  const traded = new Int32Array(2)
  comm.ialltoall(new Int32Array([rank * 10, rank * 10 + 1]), traded).wait()
  const product = new Float64Array(1)
  comm.ireduce(new Float64Array([rank + 2]), 'prod', 1, product).wait()
  same([from1[0], list && [...list], [...every], mine[0], [...traded], product[0]], [7, rank === 0 ? [1, 2] : null, [0, 1], 5 + rank, [rank, 10 + rank], rank === 1 ? 6 : 0])
  comm.ibarrier().wait()
  if (rank === 0) comm.isend({ v: 1 }, 1, 2).wait()
  else same(comm.recvValue(0, 2), { v: 1 })
  comm.barrier()
  same(comm.iprobe(), null)
  comm.barrier()
  const swapped = new Int32Array(1)
  comm.sendrecv(new Int32Array([rank + 5]), other, swapped, other)
  same([...swapped], [other + 5])
  // The same array again, another one of the same kind, and one whose memory has gone or grown meanwhile.
  const box = new Uint8Array(new ArrayBuffer(4, { maxByteLength: 65536 }))
  const gone = new Float64Array(30000)
  const came = new Uint8Array(65536)
  const counts = []
  for (let step = 0; step < 6; step++) {
    if (step === 2) box.buffer.resize(65536)
    if (step === 4) structuredClone(gone, { transfer: [gone.buffer] })
    const next = [box, box, box, gone, gone, box.subarray(1, 3)][step]
    if (next.length > 0) next.fill(step)
    if (rank === 0) comm.send(next, 1)
    else if (step === 3) counts.push(comm.recv(gone).count)
    else counts.push(comm.recv(came).count + 1000 * came[0])
  }
  same(counts, rank === 1 ? [4, 1004, 67536, 30000, 2000, 5002] : [])
  const alone = comm.split(rank)
  same([alone.rank, alone.size, alone.allreduce(4)], [0, 1, 4])
  same(comm.split(rank === 0 ? 0 : -1)?.size ?? null, rank === 0 ? 1 : null)
  const back = comm.split(0, -rank)
  same([back.rank, back.size], [other, 2])
  same(comm.dup().allreduce(1), 2)
  const large = comm.bcast(rank === 0 ? { big: new Float64Array(20000).fill(3) } : null)
  same([large.big.length, large.big[19999]], [20000, 3])
  return rank
})
main(async () => console.log(await waitOn(calls()).then(list => 'ok ' + list, error => error.message)))
`

for (const mpi of ['openmpi', 'mpich']) {
  test(`all calls do what MPI says, with ${mpi}`, { skip: without(mpi) }, () => {
    assert.equal(run('calls.mjs', CALLS, mpi), 'ok 0,1\n')
  })
}

const DATA = `
import { mpi, task, main, waitOn, waitOnFile, shared, group, cancel, barrier, IN, INOUT, FILE_OUT, FILE_IN, granted } from 'millrace'
import { readFileSync } from 'node:fs'
export const add = mpi({ name: 'add', processes: 2, params: [INOUT, IN], layout: { 0: 'block' }, reduce: 'sum' }, (comm, a, x) => {
  for (let i = 0; i < a.length; i++) a[i] += x + comm.rank
  return a.length
})
export const total = task({ name: 'total' }, a => a.reduce((s, x) => s + x, 0))
export const save = mpi({ name: 'save', processes: 2, params: [IN, FILE_OUT], root: 1 }, (comm, n, out) => {
  const half = n / 2
  const file = comm.file(out, { hints: { cb_nodes: 1 } })
  file.setSize(n * n * 8)
  file.setView({ type: new Float64Array(0), sizes: [n, n], lengths: [n, half], starts: [0, comm.rank * half] })
  const own = new Float64Array(n * half).map((_, i) => Math.floor(i / half) * n + comm.rank * half + (i % half))
  file.writeAtAll(0, own)
  file.sync()
  const back = new Float64Array(own.length)
  file.readAtAll(0, back)
  file.setView(null)
  if (comm.rank === 1) file.writeAt(0, new Float64Array([-1]))
  comm.barrier()
  const first = new Float64Array(1)
  file.readAt(0, first)
  return [file.size(), back.every((x, i) => x === own[i]), first[0]]
})
export const load = task({ name: 'load', params: [FILE_IN] }, path => { const b = readFileSync(path); return [...new Float64Array(b.buffer.slice(b.byteOffset, b.byteOffset + b.length))] })
export const each = mpi({ name: 'each', processes: 2, returns: 'each' }, comm => ({ rank: comm.rank, big: new Float64Array(30000).fill(comm.rank) }))
export const lists = mpi({ name: 'lists', processes: '$RANKS', layout: { 0: 'block' }, cpus: 1 }, (comm, list) => list.join('') + granted().cpus)
export const some = mpi({ name: 'some', processes: (n) => n }, (comm, n) => comm.size)
export const range = mpi({ name: 'range', processes: { min: 1, max: 2 } }, comm => comm.size)
export const once = mpi({ name: 'once', processes: 2, isolate: true }, comm => process.ppid)
main(async () => {
  const out = []
  const small = new Float64Array(5), big = new Float64Array(9001), both = shared(Float64Array, 100)
  out.push([await waitOn(add(small, 1)), [...await waitOn(small)].join()])
  add(big, 1); add(big, total(small))
  out.push(await waitOn(total(big)))
  add(both, 1); add(both, 2)
  await waitOn(both)
  out.push([both[0], both[99]])
  out.push(await waitOn(save(4, 'matrix.bin')))
  out.push((await waitOn(load('matrix.bin'))).join())
  const [a, b] = each()
  out.push([(await waitOn(b)).big[29999], (await waitOn(a)).rank])
  process.env.RANKS = '2'
  out.push(await waitOn(lists(['a', 'b', 'c'])))
  out.push([await waitOn(some(1)), await waitOn(some(2))])
  const sizes = []
  for (let i = 0; i < 3; i++) sizes.push((await waitOn(range())).length)
  out.push(sizes.slice(0, 2).sort())
  const [x, y] = [await waitOn(once()), await waitOn(once())]
  out.push([x[0] === x[1], x[0] === y[0]])
  console.log(JSON.stringify(out))
})
`

test('arrays, files, parts and numbers of ranks', { skip: without('openmpi') }, () => {
  process.env['RANKS'] = '2'
  const out = JSON.parse(run('data.mjs', DATA, 'openmpi')) as unknown[]
  delete process.env['RANKS']
  const sum = 1 + 1 + 2 + 2 + 2
  assert.deepEqual(out, [
    [5, '1,1,2,2,2'],
    4500 * (1 + sum) + 4501 * (3 + sum),
    [3, 5],
    [128, true, -1],
    [-1, ...Array.from({ length: 15 }, (_, i) => i + 1)].join(),
    [1, 0],
    ['a1', 'bc1'],
    [[1], [2, 2]],
    [1, 2],
    [true, false],
  ])
})

const FAILURES = `
import { mpi, command, main, waitOn, group, cancel, INOUT, FILE_OUT } from 'millrace'
import { existsSync, writeFileSync, readdirSync } from 'node:fs'
export const bad = mpi({ name: 'bad', processes: 2 }, comm => { if (comm.rank === 1) throw new RangeError('boom'); comm.barrier() })
export const differ = mpi({ name: 'differ', processes: 2 }, comm => { if (comm.rank === 1) comm.barrier(); else comm.allreduce(1) })
export const leaves = mpi({ name: 'leaves', processes: 2 }, comm => { if (comm.rank === 0) comm.barrier() })
export const waits = mpi({ name: 'waits', processes: 2 }, comm => comm.recv(new Float64Array(1), 1 - comm.rank))
export const dies = mpi({ name: 'dies', processes: 2, retries: 1, params: [INOUT, FILE_OUT] }, (comm, a, out) => {
  a[comm.rank] += 1
  if (comm.rank === 1 && !existsSync('died')) { writeFileSync('died', ''); writeFileSync(out, 'half'); process.kill(process.pid, 'SIGKILL') }
  comm.barrier()
  if (comm.rank === 0) writeFileSync(out, 'whole')
})
export const long = mpi({ name: 'long', processes: 2, timeout: '400ms' }, comm => { for (;;) comm.barrier() })
export const exits = mpi({ name: 'exits', processes: 2 }, comm => { if (comm.rank === 0) process.exit(3); comm.barrier() })
export const nested = mpi({ name: 'nested', processes: 2 }, () => { bad() })
export const endless = mpi({ name: 'endless', processes: 2 }, comm => { writeFileSync('began' + comm.rank, ''); for (;;) comm.barrier() })
export const fine = mpi({ name: 'fine', processes: 2 }, comm => comm.allreduce(1))
const say = async (name, future) => console.log(name, await waitOn(future).then(x => JSON.stringify(x), e => [e.code, e.message.split('\\n')[0]].join(' ')))
main(async () => {
  for (const one of [bad, differ, leaves, waits, long, exits, nested]) await say(one.name, one())
  const a = new Float64Array(2)
  await say('dies', dies(a, 'out.txt'))
  console.log([...await waitOn(a)].join(), existsSync('out.txt'))
  let future
  const over = group('g', () => { future = endless() }).catch(() => undefined)
  while (!existsSync('began0') || !existsSync('began1')) await new Promise(resolve => setTimeout(resolve, 20))
  await cancel('g')
  console.log(await waitOn(future).catch(error => error.code))
  await over
  await say('fine', fine())
})
`

test(
  'a rank that fails, dies or does not take part fails its task and not the run',
  { skip: without('openmpi') },
  () => {
    const before = readdirSync('/dev/shm').length
    const lines = run('failures.mjs', FAILURES, 'openmpi').trim().split('\n')
    const place = /\(.*failures\.mjs:\d+\)/
    assert.match(lines[0] ?? '', /^bad MR_TASK_FAILED bad#\d+ failed: rank 1 of 2: boom/)
    assert.match(
      lines[1] ?? '',
      /ranks do not agree: collective call 1 is (barrier|allreduce of 1 float64 by sum) in rank/,
    )
    assert.match(lines[1] ?? '', place)
    assert.match(
      lines[2] ?? '',
      /rank 1 ended while others wait: rank 0 is in barrier, its collective call 1/,
    )
    assert.match(lines[2] ?? '', place)
    assert.match(
      lines[3] ?? '',
      /no rank can go on: rank 0 is in recv from rank 1 .*; rank 1 is in recv from rank 0/,
    )
    assert.match(lines[4] ?? '', /^long MR_TIMEOUT/)
    assert.match(lines[5] ?? '', /rank 0 of 2 ended before its time/)
    assert.match(lines[6] ?? '', /call was called in an MPI task/)
    assert.equal(lines[7], 'dies [null,null]')
    assert.equal(lines[8], '1,1 true')
    assert.equal(lines[9], 'MR_CANCELLED')
    assert.equal(lines[10], 'fine [2,2]')
    assert.ok(readdirSync('/dev/shm').filter(name => name.startsWith('vader')).length <= before)
  },
)

const PROGRAMS = `
import { command, main, waitOn, waitOnFile, FILE_OUT } from 'millrace'
import { readFileSync } from 'node:fs'
export const both = command({ name: 'both', mpi: { processes: 2 }, params: [FILE_OUT], stdout: 0 }, () => ['sh', '-c', 'echo $OMP_NUM_THREADS $MILLRACE_NUM_NODES $MILLRACE_HOSTS'])
main(async () => { both('o.txt'); console.log(readFileSync(await waitOnFile('o.txt'), 'utf8')) })
`

for (const mpi of ['openmpi', 'mpich']) {
  test(`a program is started by mpirun, with ${mpi}`, { skip: without(mpi) }, () => {
    const lines = run('programs.mjs', PROGRAMS, mpi).trim().split('\n')
    assert.equal(lines.length, 2)
    for (const line of lines) assert.match(line, /^1 1 \S+$/)
  })
}

const TOO_LONG = `
import { mpi, main, waitOn } from 'millrace'
const refused = call => { try { call(); return 'taken' } catch (error) { return error.code + ' ' + error.message } }
export const goesOn = mpi({ name: 'goesOn', processes: 2 }, comm => {
  const said = []
  if (comm.rank === 0) {
    const long = new Uint8Array(2 ** 31)
    for (const call of [() => comm.bcast(long, 0), () => comm.ibcast(long, 0), () => comm.send(long, 1)]) said.push(refused(call))
  }
  const numbers = new Int32Array(4).fill(comm.rank === 0 ? 7 : 0)
  comm.bcast(numbers, 0)
  comm.barrier()
  return [said, comm.allreduce(numbers[3])]
})
main(async () => console.log(JSON.stringify(await waitOn(goesOn()))))
`

for (const kind of ['openmpi', 'mpich']) {
  test(`an array that is too long for ${kind} is refused before the call`, { skip: without(kind) }, () => {
    const message = 'MR_MPI_MISUSE an array has more than 2147483647 elements, which is more than MPI takes'
    assert.deepEqual(JSON.parse(run(`long-${kind}.mjs`, TOO_LONG, kind)), [
      [[message, message, message], 14],
      [[], 14],
    ])
  })
}

const STARTS = `
import { mpi, main, waitOn } from 'millrace'
export const sum = mpi({ name: 'sum', processes: 2 }, comm => comm.allreduce(comm.rank + 1))
main(async () => {
  try { console.log(await waitOn(sum())) } catch (error) { console.log(error.message) }
})
`
for (const [crashes, ending] of [
  [2, /^\[ 3, 3 \]\n$/],
  [3, /the ranks could not be started: mpirun ended with SIGSEGV/],
] as const) {
  const title = `a launcher that crashes as it starts is started again, with ${crashes} crashes`
  test(title, { skip: without('openmpi') }, () => {
    const launcher = join(folder, `crashes-${crashes}`)
    const starts = join(folder, `starts-${crashes}`)
    // What asks for the version is not a start.
    const script = `#!/bin/sh
[ "$1" = --version ] && exec mpirun.openmpi --version
echo start >> ${starts}
[ $(wc -l < ${starts}) -gt ${crashes} ] && exec mpirun.openmpi "$@"
ulimit -c 0
kill -SEGV $$
`
    writeFileSync(launcher, script, { mode: 0o755 })
    writeFileSync(join(folder, `crashes-${crashes}.mjs`), STARTS)
    const { stdout } = spawnSync(
      process.execPath,
      [
        join(root, 'bin', 'millrace.js'),
        'run',
        `crashes-${crashes}.mjs`,
        '--cpus',
        '2',
        '--progress',
        'none',
      ],
      {
        cwd: folder,
        env: { ...process.env, MILLRACE_MPICC: 'mpicc.openmpi', MILLRACE_MPIRUN: launcher },
        encoding: 'utf8',
      },
    )
    assert.match(stdout, ending)
    assert.equal(readFileSync(starts, 'utf8'), 'start\n'.repeat(3))
  })
}

test('without MPI the error names the packages', () => {
  writeFileSync(join(folder, 'none.mjs'), CALLS)
  const { stdout } = spawnSync(
    process.execPath,
    [join(root, 'bin', 'millrace.js'), 'run', 'none.mjs', '--cpus', '2', '--progress', 'none'],
    { cwd: folder, env: { ...process.env, MILLRACE_MPIRUN: 'mpirun.none' }, encoding: 'utf8' },
  )
  assert.match(stdout, /there is no 'mpirun.none' \(MILLRACE_MPIRUN\)[\s\S]*openmpi-bin/)
})
