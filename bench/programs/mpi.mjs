// `mpi.mjs WHAT`: seconds of one repetition inside an MPI task, or milliseconds of a whole task.
import { rmSync } from 'node:fs'
import { FILE_OUT, main, mpi, task, waitOn } from 'millrace'
import { timed } from './mpi-pieces.mjs'

const BYTES = { ping8: 8, ping1m: 1 << 20, allreduce: 8 << 20, write: 128 << 20 }

export const empty = mpi({ name: 'empty', processes: 2, root: 0 }, comm => comm.size)
export const plain = task({ name: 'plain', cpus: 2 }, () => 2)

export const messages = mpi({ name: 'messages', processes: 2, root: 0 }, (comm, what) => {
  const data = new Uint8Array(BYTES[what])
  const wtime = () => comm.wtime()
  comm.barrier()
  if (comm.rank === 0) {
    return timed(what, wtime, () => {
      comm.send(data, 1)
      comm.recv(data, 1, 0)
    })
  }
  return timed(what, wtime, () => {
    comm.recv(data, 0, 0)
    comm.send(data, 0)
  })
})

export const allreduce = mpi({ name: 'allreduce', processes: 2, root: 0 }, (comm, what) => {
  const [from, into] = [1, 1].map(x => new Float64Array(BYTES[what] / 8).fill(x))
  return timed(
    what,
    () => comm.wtime(),
    () => comm.allreduce(from, 'sum', into),
    () => comm.barrier(),
  )
})

/** Each time a new file: what the last one has left to be written goes with it. */
export const write = mpi(
  { name: 'write', processes: 2, root: 0, params: ['IN', FILE_OUT] },
  (comm, what, out) => {
    const from = new Float64Array(BYTES[what] / 8).fill(1)
    return timed(
      what,
      () => comm.wtime(),
      () => {
        const file = comm.file(out)
        file.writeAtAll(comm.rank * BYTES[what], from)
        file.close()
      },
      () => {
        comm.barrier()
        if (comm.rank === 0) rmSync(out, { force: true })
        comm.barrier()
      },
    )
  },
)

main(async () => {
  const what = process.argv[2]
  if (what === 'write') return console.log(await waitOn(write(what, 'out.bin')))
  if (what === 'allreduce') return console.log(await waitOn(allreduce(what)))
  if (what.startsWith('ping')) return console.log(await waitOn(messages(what)))
  const task = what === 'plain' ? plain : empty
  await waitOn(task())
  const began = performance.now()
  for (let i = 0; i < 200; i++) await waitOn(task())
  console.log((performance.now() - began) / 200)
})
