import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findMpi, launchVariables, launchWords } from '../src/node/mpi/launcher.ts'
import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import { killRanks } from './mpi-kills.ts'
import type { Victim } from './mpi-kills.ts'
import { withProgram } from './number-of.ts'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'millrace-mpi-bench-'))
const peer = join(folder, 'peer')
let missing: string | undefined
try {
  const source = new URL('./programs/mpi-peer.c', import.meta.url).pathname
  execFileSync(findMpi().compiler ?? 'mpicc', ['-O2', '-o', peer, source])
} catch (error) {
  missing = (error as Error).message.split('\n')[0]
}

const ours = (...words: string[]) => withProgram('mpi.mjs', words)

async function inC(what: string): Promise<number> {
  const words = [...launchWords(findMpi(), 2, true), peer, what]
  const env = { ...process.env, ...launchVariables(['here']) }
  const { stdout } = await run(words[0] as string, words.slice(1), { cwd: folder, env })
  return Number(stdout.trim().split('\n').at(-1))
}

const OURS = 'millrace'
const C = 'the same in C'
const about: Record<string, string> = {
  allreduce: 'allreduce of 8 MB, 2 ranks',
  ping8: 'a message of 8 bytes there and back',
  ping1m: 'a message of 1 MB there and back',
  write: 'collective write of 256 MB in blocks, to a file of the system',
}

const cases: Case[] = Object.entries(about).map(([what, text]) => ({
  name: what,
  unit: 's',
  better: 'lower',
  take: 'median',
  rounds: 5,
  about: text,
  arms: [
    { system: OURS, missing, run: () => ours(what) },
    { system: C, missing, run: () => inC(what) },
  ],
  goals: [{ of: OURS, against: C, atMost: 1.05, orTie: true }],
}))

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
