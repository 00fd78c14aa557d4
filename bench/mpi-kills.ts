import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathOf } from './number-of.ts'

export interface Kills {
  /** Results that were wrong. */
  readonly wrong: number
  readonly killed: number
  /** It did not come to its end in time. */
  readonly isHung: boolean
  /** Processes and folders that were there after the end. */
  readonly left: readonly string[]
}

export type Victim = 'rank' | 'launcher' | 'proxy' | 'agent'

/** Kills processes of MPI tasks at random moments; see programs/mpi-kill.mjs. */
export async function killRanks(
  seed: number,
  rounds: number,
  environment: Record<string, string> = {},
  victim: Victim = 'rank',
): Promise<Kills> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-kills-'))
  const mark = `${process.pid}-${seed}-${Date.now()}`
  // Agents that are killed stay lost: there have to be two more. They call over the network, as on other machines.
  const isFar = victim === 'proxy' || victim === 'agent'
  const nodes = join(folder, 'nodes.yaml')
  const count = victim === 'agent' ? rounds + 2 : 2
  writeFileSync(nodes, `nodes:\n  - { name: n, count: ${count}, cpus: 1, launch: '{stdin}' }\n`)
  const env = {
    ...process.env,
    ...(isFar ? { MILLRACE_NODES: nodes } : {}),
    ...environment,
    MILLRACE_PROGRESS: 'none',
    MILLRACE_CPUS: '2',
    BENCH_KILL: mark,
  }
  const words = [pathOf('mpi-kill.mjs'), String(seed), String(rounds), victim]
  const child = spawn(process.execPath, words, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let [stdout, stderr, isHung] = ['', '', false]
  child.stdout.on('data', (chunk: Buffer) => (stdout += String(chunk)))
  child.stderr.on('data', (chunk: Buffer) => (stderr += String(chunk)))
  const timer = setTimeout(
    () => {
      isHung = true
      child.kill('SIGKILL')
    },
    60_000 + rounds * 15_000,
  )
  await new Promise(resolve => child.on('close', resolve))
  clearTimeout(timer)
  const left = await goneOrLeft(mark, runsIn(folder))
  rmSync(folder, { recursive: true, force: true })
  const killed = Number(/(\d+) killed/.exec(stderr)?.[1] ?? Number.NaN)
  const wrong = Number(stdout.trim().split('\n').at(-1) || Number.NaN)
  // A program that did not come to its end has no result at all.
  if (Number.isNaN(wrong) && !isHung) throw new Error(`the program failed: ${stdout}${stderr}`)
  return { wrong: Number.isNaN(wrong) ? rounds : wrong, killed, isHung, left }
}

/** What the run left, after a moment for processes that are on their way out. */
async function goneOrLeft(mark: string, runs: readonly string[]): Promise<string[]> {
  for (let tries = 0; ; tries++) {
    const left = [...processesOf(mark), ...foldersOf(runs)]
    if (left.length === 0 || tries === 50) return left
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

function processesOf(mark: string): string[] {
  return readdirSync('/proc').filter(name => {
    try {
      return (
        /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'utf8').includes(`BENCH_KILL=${mark}\0`)
      )
    } catch {
      return false
    }
  })
}

const runsIn = (folder: string): string[] => {
  try {
    return readdirSync(join(folder, '.millrace', 'runs'))
  } catch {
    return []
  }
}

/** What ranks map is in a folder that is named after the run. */
const foldersOf = (runs: readonly string[]): string[] =>
  readdirSync('/dev/shm').filter(name =>
    runs.some(run => name.startsWith(`millrace-mpi-${run.slice(0, 40)}-`)),
  )
