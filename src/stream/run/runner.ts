import type { ChildProcess } from 'node:child_process'
import { StringDecoder } from 'node:string_decoder'
import { isAbsolute, resolve } from 'node:path'
import type { Board } from '../board/board.ts'
import type { StepCommand } from './step-commands.ts'

/** One started instance of a step, and how it ended. */
export interface Instance {
  step: string
  number: number
  command: string
  started: number
  ended: number | undefined
  /** Exit code, 128 + signal when killed, as a shell counts. */
  code: number | undefined
  /** Last lines on its stderr, for the report. */
  tail: string[]
}

export interface RunnerIo {
  /** A line that a step printed. */
  line: (step: string, text: string, stream: 'stdout' | 'stderr') => void
  ended: (instance: Instance) => void
}

const TAIL = 20

/** Starts all instances of all steps at once, each in its own process group, so that it can be ended whole. */
export class Runner {
  readonly instances: Instance[] = []
  private readonly children = new Map<Instance, ChildProcess>()
  private readonly board: Board
  private readonly io: RunnerIo

  constructor(board: Board, io: RunnerIo) {
    this.board = board
    this.io = io
  }

  start(command: StepCommand, number: number, dir: string, env: NodeJS.ProcessEnv): void {
    const caller = process.cwd()
    const cwd = command.cwd === undefined ? dir : resolve(caller, command.cwd)
    const argv = typeof command.run === 'string' ? ['/bin/sh', '-c', command.run] : [...command.run]
    // A program given as ./prog lies where the user is, not in the managed directory.
    if (typeof command.run !== 'string' && argv[0]!.includes('/') && !isAbsolute(argv[0]!))
      argv[0] = resolve(caller, argv[0]!)
    const instance: Instance = {
      step: command.step,
      number,
      command: typeof command.run === 'string' ? command.run : command.run.join(' '),
      started: Date.now(),
      ended: undefined,
      code: undefined,
      tail: [],
    }
    this.instances.push(instance)
    const child = this.board.exec(command.step, argv, {
      cwd,
      env: { ...process.env, ...env, ...command.env, MILLRACE_INSTANCE: String(number) },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.children.set(instance, child)
    this.lines(instance, child, 'stdout')
    this.lines(instance, child, 'stderr')
    const end = (code: number): void => {
      if (instance.ended !== undefined) return
      instance.ended = Date.now()
      instance.code = code
      this.children.delete(instance)
      this.io.ended(instance)
    }
    child.on('error', error => {
      instance.tail.push(error.message)
      end(127)
    })
    child.on('close', (code, signal) => end(code ?? 128 + (signal === 'SIGKILL' ? 9 : 15)))
  }

  get running(): number {
    return this.children.size
  }

  kill(signal: NodeJS.Signals): void {
    for (const child of this.children.values()) {
      if (child.pid === undefined) continue
      try {
        process.kill(-child.pid, signal)
      } catch {
        // The whole group has just ended.
      }
    }
  }

  private lines(instance: Instance, child: ChildProcess, stream: 'stdout' | 'stderr'): void {
    const decoder = new StringDecoder('utf8')
    let rest = ''
    const take = (text: string): void => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) this.line(instance, line, stream)
    }
    child[stream]!.on('data', (chunk: Buffer) => take(decoder.write(chunk)))
    child[stream]!.on('end', () => {
      take(decoder.end())
      if (rest !== '') this.line(instance, rest, stream)
    })
  }

  private line(instance: Instance, text: string, stream: 'stdout' | 'stderr'): void {
    if (stream === 'stderr') {
      instance.tail.push(text)
      if (instance.tail.length > TAIL) instance.tail.shift()
    }
    this.io.line(instance.step, text, stream)
  }
}
