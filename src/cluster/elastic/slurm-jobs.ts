import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MillraceError } from '../../core/errors.ts'
import { shellQuote } from '../../general/shell-quote.ts'
import type { AgentOrders } from '../launch/agent-command.ts'
import { agentWords, ordersFolder, writeOrders } from '../launch/orders.ts'
import { timeLeft } from './slurm-options.ts'

const execute = promisify(execFile)
/** A controller under load may take long; milliseconds. */
const PATIENCE = 30_000

export interface JobState {
  readonly isRunning: boolean
  /** Milliseconds; Infinity where there is no limit. */
  readonly left: number
  readonly reason: string
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

  /** Throws what Slurm says if such a job could never start. */
  async test(nodes: number): Promise<void> {
    await this.#sbatch(['--test-only', `--nodes=${nodes}`, '--wrap=true'])
  }

  /** Returns the job. `orders` are those of its first node; the others have the numbers after it. */
  async submit(nodes: number, orders: AgentOrders): Promise<string> {
    const file = writeOrders(orders, this.#run)
    const agent = agentWords(file).map(shellQuote).join(' ')
    const srun = 'srun --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_ON_NODE" --mem=0 --kill-on-bad-exit=0'
    const { stdout } = await this.#sbatch([
      '--parsable',
      `--job-name=millrace-${this.#run}`,
      `--nodes=${nodes}`,
      '--ntasks-per-node=1',
      '--no-requeue',
      `--output=${join(ordersFolder(this.#run), 'job-%j.log')}`,
      `--wrap=exec ${nodes === 1 ? '' : `${srun} `}${agent}`,
    ])
    const [job = ''] = stdout.trim().split(';')
    this.#jobs.add(job)
    return job
  }

  /** What the jobs do; those that are not among the answers have ended. */
  async look(): Promise<Map<string, JobState> | null> {
    const states = new Map<string, JobState>()
    if (this.#jobs.size === 0) return states
    try {
      const words = ['-h', '-j', [...this.#jobs].join(','), '-o', '%i|%T|%L|%r']
      const { stdout } = await execute('squeue', words, { timeout: PATIENCE })
      for (const line of stdout.split('\n').filter(Boolean)) {
        const [job = '', state = '', left = '', reason = ''] = line.split('|')
        if (/^(?:COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL|PREEMPTED|BOOT_FAIL)/.test(state)) continue
        states.set(job, { isRunning: state === 'RUNNING', left: timeLeft(left), reason })
      }
      return states
    } catch (error) {
      // A job that Slurm has forgotten makes it an error; a controller that does not answer says nothing of the jobs.
      return /Invalid job id/i.test((error as { stderr?: string }).stderr ?? '') ? states : null
    }
  }

  /** It has ended: what its agents said at last. */
  ended(job: string): string {
    this.#jobs.delete(job)
    try {
      const text = readFileSync(join(ordersFolder(this.#run), `job-${job}.log`), 'utf8').trim()
      return text.split('\n').at(-1) ?? ''
    } catch {
      return ''
    }
  }

  async cancel(job: string): Promise<void> {
    this.#jobs.delete(job)
    await execute('scancel', [job], { timeout: PATIENCE }).catch(() => undefined)
  }

  /** All that is left, also what waits in the queue. */
  cancelAll(): void {
    if (this.#jobs.size === 0) return
    try {
      execFileSync('scancel', [...this.#jobs], { timeout: PATIENCE, stdio: 'ignore' })
    } catch {
      // They end with their agents.
    }
    this.#jobs.clear()
  }

  async #sbatch(words: readonly string[]): Promise<{ stdout: string }> {
    try {
      return await execute('sbatch', [...this.#words, ...words], { timeout: PATIENCE })
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
