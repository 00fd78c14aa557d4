import type { ChildProcess } from 'node:child_process'
import { open, stat, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { GRACE, spawnError } from './command-process.ts'
import type { ParsedLimits } from '../../model/options/process-limits.ts'
import type { CommandProcess, CommandRequest, CommandResult, ProcessEnd } from './command-process.ts'

const alive = new Set<NodeProcess>()

/** A command that is started by Node itself: the way out where `millrace-spawn` could not be built. */
export class NodeProcess implements CommandProcess {
  #child: ChildProcess | null = null
  #stopped = false

  start(request: CommandRequest, end: ProcessEnd): void {
    this.#run(request).then(
      result => end.ended(result),
      error => end.failed(error),
    )
  }

  async #run(request: CommandRequest): Promise<CommandResult> {
    const files: FileHandle[] = []
    try {
      const stdio = await this.#stdio(request, files)
      const beganAt = performance.now()
      const before = { cameBack: false, starved: false, beganAt, took: 0, usage: null }
      if (this.#stopped) return { exitCode: null, signal: 'SIGTERM', printed: false, ...before }
      const { exitCode, signal } = await this.#spawn(request, stdio)
      const took = performance.now() - beganAt
      return { ...before, exitCode, signal, printed: await this.#keepLog(request.log), took }
    } finally {
      await Promise.all(files.map(file => file.close()))
    }
  }

  /** It has no lanes: the caller starts the programs of a lane one after the other. */
  callBack(): void {}

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
    const { argv, cwd, env } = request
    const [program = '', ...args] = request.limits ? limited(argv, request.limits) : argv
    return new Promise<{ exitCode: number | null; signal: string | null }>((resolve, reject) => {
      const refused = (error: unknown): void => {
        const { code, message } = error as NodeJS.ErrnoException
        reject(spawnError(program, cwd, code, message))
      }
      try {
        const { spawn } = process.getBuiltinModule('node:child_process')
        const child = spawn(program, args, { cwd, env, detached: true, stdio })
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
export function killNodeProcesses(): void {
  for (const command of alive) command.kill()
}

/** Node cannot set limits, but a shell can before it becomes the program. */
function limited(argv: readonly string[], limits: ParsedLimits): string[] {
  const { cpuTime, memory, fileSize, openFiles } = limits
  const set: string[] = []
  if (cpuTime !== undefined) set.push(`ulimit -t ${Math.ceil(cpuTime)}`)
  if (memory !== undefined) set.push(`ulimit -v ${Math.ceil(memory / 1024)}`)
  if (fileSize !== undefined) set.push(`ulimit -f ${Math.ceil(fileSize / 512)}`)
  if (openFiles !== undefined) set.push(`ulimit -n ${openFiles}`)
  return ['/bin/sh', '-c', `${set.join(' && ')} && exec "$@"`, 'sh', ...argv]
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // The group has ended.
  }
}
