import type { ChildProcess } from 'node:child_process'
import { open, stat, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { MillraceError } from '../core/errors.ts'

export interface CommandRequest {
  argv: readonly string[]
  cwd: string
  env: Readonly<Record<string, string>>
  stdin: string | null
  stdout: string | null
  stderr: string | null
  /** Where output goes that has no file of its own; null to let it through. */
  log: string | null
}

export interface CommandResult {
  exitCode: number | null
  signal: string | null
  /** The log exists, because something was printed. */
  printed: boolean
}

/** Groups that are stopped get this long to end by themselves before they are killed; milliseconds. */
const GRACE = 2000

const alive = new Set<CommandProcess>()

/** One program and everything it starts: a process group that is stopped as a whole. */
export class CommandProcess {
  #child: ChildProcess | null = null
  #stopped = false

  async run(request: CommandRequest): Promise<CommandResult> {
    const files: FileHandle[] = []
    try {
      const stdio = await this.#stdio(request, files)
      if (this.#stopped) return { exitCode: null, signal: 'SIGTERM', printed: false }
      const { exitCode, signal } = await this.#spawn(request, stdio)
      return { exitCode, signal, printed: await this.#keepLog(request.log) }
    } finally {
      await Promise.all(files.map(file => file.close()))
    }
  }

  stop(): void {
    this.#stopped = true
    if (!this.#child) return
    signalGroup(this.#child, 'SIGTERM')
    setTimeout(() => this.kill(), GRACE).unref()
  }

  kill(): void {
    if (this.#child && alive.has(this)) signalGroup(this.#child, 'SIGKILL')
  }

  async #stdio(request: CommandRequest, files: FileHandle[]): Promise<('ignore' | 'inherit' | number)[]> {
    const use = async (path: string, flags: string): Promise<number> => {
      const file = await open(path, flags)
      files.push(file)
      return file.fd
    }
    const log = request.log === null ? 'inherit' : await use(request.log, 'a')
    const stdout = request.stdout === null ? log : await use(request.stdout, 'w')
    const same = request.stderr !== null && request.stderr === request.stdout
    return [
      request.stdin === null ? 'ignore' : await use(request.stdin, 'r'),
      stdout,
      same ? stdout : request.stderr === null ? log : await use(request.stderr, 'w'),
    ]
  }

  #spawn(request: CommandRequest, stdio: ('ignore' | 'inherit' | number)[]) {
    const [program = '', ...args] = request.argv
    return new Promise<{ exitCode: number | null; signal: string | null }>((resolve, reject) => {
      const refused = (error: unknown): void => {
        const { code, message } = error as NodeJS.ErrnoException
        const why = code === 'ENOENT' ? `it was not found, or ${request.cwd} does not exist` : message
        reject(new MillraceError('MR_SPAWN', `${program} could not be started: ${why}`, { cause: error }))
      }
      try {
        const { spawn } = process.getBuiltinModule('node:child_process')
        const child = spawn(program, args, { cwd: request.cwd, env: request.env, detached: true, stdio })
        this.#child = child
        alive.add(this)
        child.once('error', error => {
          alive.delete(this)
          refused(error)
        })
        child.once('exit', (exitCode, signal) => {
          // Children that the program left behind belong to the task and end with it.
          signalGroup(child, 'SIGKILL')
          alive.delete(this)
          resolve({ exitCode, signal })
        })
      } catch (error) {
        refused(error)
      }
    })
  }

  /** A log without a line is not worth a file. */
  async #keepLog(log: string | null): Promise<boolean> {
    if (log === null) return false
    try {
      if ((await stat(log)).size > 0) return true
      await unlink(log)
    } catch {
      // The log is a convenience; a folder that vanished is not the task's fault.
    }
    return false
  }
}

/** At exit there is no time for grace. */
export function killAllCommands(): void {
  for (const command of alive) command.kill()
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // The group has ended.
  }
}
