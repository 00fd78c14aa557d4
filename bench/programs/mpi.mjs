// `mpi.mjs WHAT`: seconds of one repetition inside an MPI task, or milliseconds of a whole task.
import { FILE_OUT, main, mpi, task, waitOn } from 'millrace'

export const empty = mpi({ name: 'empty', processes: 2, root: 0 }, comm => comm.size)
export const plain = task({ name: 'plain', cpus: 2 }, () => 2)
export const measure = mpi(
  { name: 'measure', processes: 2, root: 0, params: ['IN', FILE_OUT] },
  (comm, what, out) => {
    const bytes =
      what === 'ping8'
        ? 8
        : what === 'ping1m'
          ? 1 << 20
          : what === 'write'
            ? (256 << 20) / comm.size
            : 8 << 20
    const data = new Uint8Array(bytes)
    const [from, into] = [new Float64Array(bytes / 8).fill(1), new Float64Array(bytes / 8).fill(1)]
    const repeat = what === 'ping8' ? 20000 : what === 'ping1m' ? 500 : what === 'allreduce' ? 20 : 1
    comm.barrier()
    const began = comm.wtime()
    for (let i = 0; i < repeat; i++) {
      if (what === 'allreduce') comm.allreduce(from, 'sum', into)
      else if (what === 'write') {
        const file = comm.file(out)
        file.writeAtAll(comm.rank * bytes, from)
        file.close()
      } else if (comm.rank === 0) {
        comm.send(data, 1)
        comm.recv(data, 1, 0)
      } else {
        comm.recv(data, 0, 0)
        comm.send(data, 0)
      }
    }
    const took = (comm.wtime() - began) / repeat
    if (what !== 'write') comm.file(out).close()
    return took
  },
)

main(async () => {
  const what = process.argv[2]
  const task = what === 'plain' ? plain : empty
  if (what !== 'task' && what !== 'plain') return console.log(await waitOn(measure(what, 'out.bin')))
  await waitOn(task())
  const began = performance.now()
  for (let i = 0; i < 200; i++) await waitOn(task())
  console.log((performance.now() - began) / 200)
})
