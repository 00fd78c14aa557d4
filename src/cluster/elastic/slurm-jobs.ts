import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MillraceError } from '../../core/errors.ts'
import { shellQuote } from '../../general/shell-quote.ts'
import type { AgentOrders } from '../launch/agent-command.ts'
import { agentScript } from '../launch/agent-script.ts'
import { makeOrdersFolder, ordersFolder } from '../launch/orders.ts'
import { timeLeft } from './slurm-options.ts'

const execute = promisify(execFile)
/** A controller under load may take long; milliseconds. */
const COMMAND_TIMEOUT = 30_000

export interface JobState {
  readonly isRunning: boolean
  /** Milliseconds; Infinity where there is no limit. */
  readonly left: number
}

/** States of a job that may still run, or come to. */
const GOES_ON =
  /^(?:PENDING|CONFIGURING|RUNNING|SUSPENDED|RESIZING|SIGNALING|STOPPED|REQUEUE\w*|RESV_DEL_HOLD)$/

const SRUN = 'srun --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_ON_NODE" --mem=0 --kill-on-bad-exit=0'

/** What a job runs: an agent on each of its nodes. What it says goes to a file of the run, where the node sees that folder. */
function jobScript(nodes: number, orders: AgentOrders, folder: string): string {
  const log = `${shellQuote(folder)}/job-$SLURM_JOB_ID.log`
  const agent = agentScript(orders)
  // Slurm gives the input of a step to each of its tasks.
  const all = nodes === 1 ? agent : `exec ${SRUN} sh -s <<'END-OF-AGENT'\n${agent}END-OF-AGENT\n`
  return `#!/bin/sh\n[ ! -d ${shellQuote(folder)} ] || exec > ${log} 2>&1\n${all}`
}

/** Jobs of Slurm, each of which starts agents on some nodes. */
export class SlurmJobs {
  readonly #run: string
  readonly #words: readonly string[]
  readonly #jobs = new Set<string>()

  constructor(run: string, words: readonly string[]) {
    this.#run = run
    this.#words = words
  }

  get #name(): string {
    return `millrace-${this.#run}`
  }

  /** Throws what Slurm says if such a job could never start. */
  async test(nodes: number): Promise<void> {
    await this.#sbatch(['--test-only', `--nodes=${nodes}`, '--wrap=true'])
  }

  /** Returns the job. `orders` are those of its first node; the others have the numbers after it. */
  async submit(nodes: number, orders: AgentOrders): Promise<string> {
    const words = [
      '--parsable',
      `--job-name=${this.#name}`,
      `--nodes=${nodes}`,
      '--ntasks-per-node=1',
      '--no-requeue',
      // Slurm starts nothing where the folder of the output is not seen.
      '--output=/dev/null',
    ]
    const { stdout } = await this.#sbatch(words, jobScript(nodes, orders, makeOrdersFolder(this.#run)))
    const [job = ''] = stdout.trim().split(';')
    this.#jobs.add(job)
    return job
  }

  /** What the jobs do; those that are not among the answers have ended. Null where the controller does not answer. */
  async look(): Promise<Map<string, JobState> | null> {
    const states = new Map<string, JobState>()
    if (this.#jobs.size === 0) return states
    try {
      // By name: of a number that it has forgotten Slurm says that it is wrong.
      const words = ['-h', `--name=${this.#name}`, '-o', '%i|%T|%L']
      const { stdout } = await execute('squeue', words, { timeout: COMMAND_TIMEOUT })
      for (const line of stdout.split('\n').filter(Boolean)) {
        const [job = '', state = '', left = ''] = line.split('|')
        if (!GOES_ON.test(state)) continue
        states.set(job, { isRunning: state === 'RUNNING', left: timeLeft(left) })
      }
      return states
    } catch {
      return null
    }
  }

  /** It has ended: what its agents said at last, or else what Slurm says of it. */
  async ended(job: string): Promise<string> {
    this.#jobs.delete(job)
    try {
      const text = readFileSync(join(ordersFolder(this.#run), `job-${job}.log`), 'utf8').trim()
      const last = text.split('\n').at(-1)
      if (last) return last
    } catch {
      // Its nodes do not see the folder.
    }
    const words = ['show', 'job', '-o', job]
    const { stdout } = await execute('scontrol', words, { timeout: COMMAND_TIMEOUT }).catch(() => ({
      stdout: '',
    }))
    const of = (name: string): string => new RegExp(`\\b${name}=(\\S+)`).exec(stdout)?.[1] ?? ''
    const [state, node, code] = [of('JobState'), of('NodeList'), of('ExitCode').split(':')[0]]
    return state === '' ? '' : `${state} on ${node}, exit code ${code}`
  }

  async cancel(job: string): Promise<void> {
    this.#jobs.delete(job)
    await execute('scancel', [job], { timeout: COMMAND_TIMEOUT }).catch(() => undefined)
  }

  /** All that is left, also what waits in the queue. */
  cancelAll(): void {
    if (this.#jobs.size === 0) return
    try {
      execFileSync('scancel', [...this.#jobs], { timeout: COMMAND_TIMEOUT, stdio: 'ignore' })
    } catch {
      // They end with their agents.
    }
    this.#jobs.clear()
  }

  /** The script goes to its standard input: other users do not see what is in it. */
  async #sbatch(words: readonly string[], script = ''): Promise<{ stdout: string }> {
    try {
      const asked = execute('sbatch', [...this.#words, ...words], { timeout: COMMAND_TIMEOUT })
      asked.child.stdin?.on('error', () => undefined).end(script)
      return await asked
    } catch (error) {
      const { code, stderr = '', message } = error as { code?: string; stderr?: string; message: string }
      const missing = code === 'ENOENT' ? 'sbatch is not installed here' : null
      const said = stderr.replace(/^sbatch: (?:error: )?/gm, '').trim()
      throw new MillraceError('MR_SLURM', `Slurm refused: ${missing ?? (said || message)}`, {
        hint: `It was asked by: sbatch ${[...this.#words, ...words].map(shellQuote).join(' ')}`,
      })
    }
  }
}
