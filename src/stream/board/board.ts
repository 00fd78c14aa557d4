import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'
import { StreamError } from '../stream-error.ts'
import { parseSnapshot, type BoardLine, type Snapshot } from './snapshot.ts'
import type { Tools } from '../run/toolchain.ts'

const LIVE = 3
const ABSENT = 4

/** A board on which programs run as steps. */
export interface StepBoard {
  /** The command line that runs a program as a step. */
  argv(step: string, argv: readonly string[]): string[]
}

/** `owner`: the parent process, with which the step ends. */
export const stepArgv = (
  { board, library }: Tools,
  workflow: string,
  step: string,
  argv: readonly string[],
  owner?: number,
): string[] => [
  board,
  'exec',
  '-w',
  workflow,
  '--lib',
  library,
  ...(owner === undefined ? [] : ['--owner', String(owner)]),
  '--app',
  step,
  '--',
  ...argv,
]

/** One workflow's board, through the command `millrace-board`. */
export class Board implements StepBoard {
  readonly tools: Tools
  readonly workflow: string

  constructor(tools: Tools, workflow: string) {
    this.tools = tools
    this.workflow = workflow
  }

  async create(lines: readonly string[], owner?: number): Promise<void> {
    const args = ['create', ...(owner === undefined ? [] : ['--owner', String(owner)])]
    const { code, stderr } = await this.call(args, `${lines.join('\n')}\n`)
    if (code === 0) return
    if (code === LIVE) {
      throw new StreamError(
        'MR_STREAM_BOARD',
        `a workflow '${this.workflow}' is running`,
        "wait for it, end it with 'millrace stream down', or set CAPIO_WORKFLOW_NAME to another name",
      )
    }
    throw this.failure('create', stderr)
  }

  /** False when there is no such board. */
  async destroy(force: boolean): Promise<boolean> {
    const { code, stderr } = await this.call(['destroy', '-w', this.workflow, ...(force ? ['--force'] : [])])
    if (code !== 0 && code !== ABSENT) throw this.failure('destroy', stderr)
    return code === 0
  }

  /** Undefined when there is no such board. */
  async ps(): Promise<Snapshot | undefined> {
    const { code, stdout, stderr } = await this.call(['ps', '-w', this.workflow])
    if (code === ABSENT) return undefined
    if (code !== 0) throw this.failure('ps', stderr)
    return parseSnapshot(stdout)
  }

  async stepEnd(step: string, ok: boolean): Promise<void> {
    await this.call(['step-end', '-w', this.workflow, step, ok ? 'ok' : 'failed'])
  }

  /** Moves files that still grow out of memory. Returns how many bytes that freed. */
  async spill(bytes: number): Promise<number> {
    const { stdout } = await this.call(['spill', '-w', this.workflow, '--bytes', String(Math.ceil(bytes))])
    return Number(stdout) || 0
  }

  /** The boards of this user. */
  async list(): Promise<BoardLine[]> {
    const { code, stdout } = await this.call(['list'])
    if (code !== 0) return []
    return stdout.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as BoardLine]))
  }

  /** A detached step has a group of its own, and ends when this process is killed. */
  exec(app: string, argv: readonly string[], options: SpawnOptions): ChildProcess {
    const owner = options.detached === true ? process.pid : undefined
    const [program, ...args] = stepArgv(this.tools, this.workflow, app, argv, owner)
    return spawn(program!, args, options)
  }

  argv(step: string, argv: readonly string[]): string[] {
    return stepArgv(this.tools, this.workflow, step, argv)
  }

  private failure(what: string, stderr: string): StreamError {
    const reason = stderr.trim().replace(/^millrace-board: /, '') || 'no reason given'
    if (what !== 'create')
      return new StreamError('MR_STREAM_BOARD', `the board could not ${what}: ${reason}`, 'see the reason')
    const hint = reason.includes('No space left')
      ? 'make room in /dev/shm, where streaming keeps what it knows of the files'
      : reason.includes('managed directory')
        ? 'name another directory'
        : 'see the reason'
    return new StreamError('MR_STREAM_BOARD', `the workflow cannot begin: ${reason}`, hint)
  }

  private call(args: string[], input = ''): Promise<{ code: number; stdout: string; stderr: string }> {
    return new Promise((resolve, reject) => {
      const child = spawn(this.tools.board, args, { stdio: ['pipe', 'pipe', 'pipe'] })
      let stdout = ''
      let stderr = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
      child.on('error', error => {
        reject(
          new StreamError(
            'MR_STREAM_BOARD',
            `cannot start ${this.tools.board}: ${error.message}`,
            'build it again',
          ),
        )
      })
      child.on('close', code => resolve({ code: code ?? 1, stdout, stderr }))
      child.stdin.on('error', () => {}) // The tool may refuse a plan before it has read all of it.
      child.stdin.end(input)
    })
  }
}
