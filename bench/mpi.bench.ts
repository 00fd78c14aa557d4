import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findMpi, launchVariables, launchWords } from '../src/node/mpi/launcher.ts'
import { bench } from './harness.ts'
import type { Goal } from './goals.ts'
import type { Arm, Case } from './harness.ts'
import { killRanks } from './mpi-kills.ts'
import type { Victim } from './mpi-kills.ts'
import { pathOf, withProgram } from './number-of.ts'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'millrace-mpi-bench-'))
const peer = join(folder, 'peer')
const floor = join(folder, 'floor.node')
let missing: string | undefined
try {
  const compiler = findMpi().compiler ?? 'mpicc'
  const headers = new URL('../native/addon', import.meta.url).pathname
  execFileSync(compiler, ['-O2', '-o', peer, pathOf('mpi-peer.c')])
  execFileSync(compiler, ['-O2', '-fPIC', '-shared', `-I${headers}`, '-o', floor, pathOf('mpi-floor.c')])
} catch (error) {
  missing = (error as Error).message.split('\n')[0]
}

const ours = (...words: string[]) => withProgram('mpi.mjs', words)

async function launched(program: readonly string[]): Promise<number> {
  const words = [...launchWords(findMpi(), 2, true), ...program]
  const env = { ...process.env, ...launchVariables(['here']) }
  const { stdout } = await run(words[0] as string, words.slice(1), { cwd: folder, env })
  return Number(stdout.trim().split('\n').at(-1))
}

const OURS = 'millrace'
const C = 'the same in C'
const FLOOR = 'an add-on in Node that only sends and receives'
const about: Record<string, string> = {
  allreduce: 'allreduce of 8 MB, 2 ranks',
  ping8: 'a message of 8 bytes there and back',
  ping1m: 'a message of 1 MB there and back',
  write: 'collective write of 256 MB in blocks, to a file of the system',
}

const floorArm = (what: string): Arm => ({
  system: FLOOR,
  missing,
  run: () => launched([process.execPath, pathOf('mpi-floor.mjs'), floor, what]),
})
const within = (peer: string): Goal => ({ of: OURS, against: peer, atMost: 1.05, orTie: true })

const cases = Object.entries(about).map(([what, text]): Case => {
  const isMessage = what.startsWith('ping')
  return {
    name: what,
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 5,
    about: text,
    arms: [
      { system: OURS, missing, run: () => ours(what) },
      { system: C, missing, run: () => launched([peer, what]) },
      ...(isMessage ? [floorArm(what)] : []),
    ],
    goals: [within(C), ...(isMessage ? [within(FLOOR)] : [])],
  }
})

cases.unshift({
  name: 'task',
  unit: 'ms',
  better: 'lower',
  take: 'median',
  rounds: 3,
  about: 'an MPI task of 2 ranks that does nothing, in ranks that are there already, from call to result',
  arms: [
    { system: OURS, missing, run: () => ours('task') },
    { system: 'millrace, a function with 2 CPUs', run: () => ours('plain') },
  ],
  goals: [{ of: OURS, upTo: 5, unit: 'ms' }],
})

/** Who is killed, and how often. Agents that are killed stay lost, so there are several runs with a few kills each. */
const KILLS: readonly [Victim, string, number, number][] = [
  ['rank', 'a rank', 1, 200],
  ['launcher', 'mpirun', 1, 100],
  ['proxy', 'what starts ranks for mpirun on another node', 1, 100],
  ['agent', 'an agent', 10, 8],
]

for (const [victim, who, runs, times] of KILLS) {
  cases.push({
    name: victim === 'rank' ? 'kill' : `kill-${victim}`,
    unit: 'wrong',
    better: 'lower',
    take: 'median',
    rounds: 1,
    about: `${who} is killed at ${runs * times} random points: results that are wrong, hangs, and things that are left`,
    arms: [
      {
        system: OURS,
        missing,
        run: async () => {
          let sum = 0
          for (let seed = 1; seed <= runs; seed++) {
            const kills = Number(process.env['BENCH_KILLS'] ?? times)
            const { wrong, isHung, left } = await killRanks(seed, kills, {}, victim)
            sum += wrong + Number(isHung) + left.length
          }
          return sum
        },
      },
    ],
    goals: [{ of: OURS, upTo: 0, unit: 'wrong' }],
  })
}

try {
  await bench('mpi', cases)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
