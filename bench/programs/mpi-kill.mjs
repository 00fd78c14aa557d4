// `mpi-kill.mjs SEED KILLS VICTIM`: kills a process at a random moment of a task, again and again: while the ranks start, while they
// wait, and inside the task. The victim is a `rank`, the `launcher` (mpirun), the `proxy` by which that has ranks on another node, or
// an `agent`. Prints how many results were wrong.
import { readFileSync, readdirSync } from 'node:fs'
import { FILE_OUT, INOUT, main, mpi, waitOn, waitOnFile } from 'millrace'

const STEPS = 200

export const count = mpi(
  { name: 'count', processes: 2, retries: 30, params: [INOUT, FILE_OUT], reduce: 'sum' },
  (comm, a, out) => {
    const half = a.length / comm.size
    const own = a.subarray(comm.rank * half, (comm.rank + 1) * half)
    const file = comm.file(out)
    let sum = 0
    for (let i = 0; i < STEPS; i++) {
      for (let j = 0; j < own.length; j++) own[j] += 1
      sum = comm.allreduce(1)
      if (i % 50 === 49) file.writeAtAll(comm.rank * half * 8, own)
    }
    return sum
  },
)

/** What the program of each kind of victim is, and a word of its command line. */
const VICTIMS = {
  rank: { program: /node/, word: 'mpi-rank.js' },
  launcher: { program: /mpirun|mpiexec|orterun/, word: '' },
  proxy: { program: /orted|hydra_pmi_proxy/, word: '' },
  agent: { program: /node/, word: '\0agent\0' },
}
const { program, word } = VICTIMS[process.argv[4] ?? 'rank']

const victims = () =>
  readdirSync('/proc').filter(name => {
    if (name === String(process.pid)) return false
    try {
      // The launcher has the name of the program of a rank in its words too.
      return (
        readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(word) &&
        program.test(readFileSync(`/proc/${name}/comm`, 'utf8')) &&
        readFileSync(`/proc/${name}/environ`, 'utf8').includes(`BENCH_KILL=${process.env.BENCH_KILL}\0`)
      )
    } catch {
      return false
    }
  })

main(async () => {
  let state = Number(process.argv[2]) || 1
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32
  let wrong = 0
  let killed = 0
  const isRight = async (future, a, path) => {
    const sum = await waitOn(future)
    const values = await waitOn(a)
    const bytes = readFileSync(await waitOnFile(path))
    const written = new Float64Array(new Uint8Array(bytes).buffer)
    return (
      sum === 4 &&
      values.every(x => x === STEPS) &&
      written.length === a.length &&
      written.every(x => x === STEPS)
    )
  }
  for (let round = 0; killed < Number(process.argv[3]); round++) {
    const path = `r${round % 4}.bin`
    const isWarm = round % 2 === 1
    if (isWarm) {
      const first = new Float64Array(20000)
      if (!(await isRight(count(first, path), first, path))) wrong++
    }
    const there = isWarm ? victims() : null
    const a = new Float64Array(20000)
    const future = count(a, path)
    let isOver = false
    const delay = next() * (isWarm ? 30 : 1200)
    const victim = next()
    const timer = setTimeout(() => {
      const found = isOver ? [] : (there ?? victims())
      const pid = found[Math.floor(victim * found.length)]
      if (!pid) return
      try {
        process.kill(Number(pid), 'SIGKILL')
        killed++
      } catch {
        // It has ended by itself.
      }
    }, delay)
    if (!(await isRight(future, a, path))) wrong++
    isOver = true
    clearTimeout(timer)
  }
  console.error(`${killed} killed`)
  console.log(wrong)
})
