// `mpi-kill.mjs SEED ROUNDS`: kills a rank at a random moment of a task, again and again. Prints how many results were wrong.
import { readdirSync, readFileSync } from 'node:fs'
import { INOUT, main, mpi, waitOn } from 'millrace'

export const count = mpi(
  { name: 'count', processes: 2, retries: 30, params: [INOUT], layout: { 0: 'block' }, reduce: 'sum' },
  (comm, a) => {
    let sum = 0
    for (let i = 0; i < 40; i++) {
      for (let j = 0; j < a.length; j++) a[j] += 1
      sum = comm.allreduce(1)
    }
    return sum
  },
)

const ranks = () =>
  readdirSync('/proc').filter(name => {
    try {
      const isRank = /mpi-rank\.js/.test(readFileSync(`/proc/${name}/cmdline`, 'utf8'))
      return (
        isRank &&
        readFileSync(`/proc/${name}/environ`, 'utf8').includes(`BENCH_KILL=${process.env.BENCH_KILL}`)
      )
    } catch {
      return false
    }
  })

main(async () => {
  let state = Number(process.argv[2]) || 1
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32
  let wrong = 0
  for (let round = 0; round < Number(process.argv[3]); round++) {
    const a = new Float64Array(20000)
    const future = count(a)
    const timer = setTimeout(() => {
      // The launcher has the name of the program in its words too.
      const found = ranks().filter(pid => /node/.test(readFileSync(`/proc/${pid}/comm`, 'utf8')))
      const pid = found[Math.floor(next() * found.length)]
      if (pid) process.kill(Number(pid), 'SIGKILL')
    }, next() * 400)
    const sum = await waitOn(future)
    clearTimeout(timer)
    const values = await waitOn(a)
    if (sum !== 4 || !values.every(x => x === 40)) wrong++
  }
  console.log(wrong)
})
