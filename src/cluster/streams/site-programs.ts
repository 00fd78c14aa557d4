import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { neverBegan } from '../../node/processes/command-process.ts'
import type { CommandProcess, CommandRequest, ProcessEnd } from '../../node/processes/command-process.ts'
import type { ProcessPort } from '../../node/processes/process-port.ts'
import type { StepBoard } from '../../stream/board/board.ts'
import type { StepRefusal, StepResult, ToStreamNode } from './messages.ts'

/** The node puts its own board before the program: here a step is the first word. */
export const stepsOfSites: StepBoard = { argv: (step, argv) => [step, ...argv] }

interface Running {
  readonly end: ProcessEnd
  /** What it prints is kept there; null: it is not kept. */
  readonly path: string | null
  /** Open once it has printed. */
  log: number | null
}

/** Programs of steps on a node of a streaming workflow: the form of `Processes` that speaks to the node. */
export class SitePrograms implements ProcessPort {
  readonly #say: (message: ToStreamNode) => void
  readonly #running = new Map<number, Running>()
  readonly #started: Promise<void>
  #begin: () => void = () => {}
  #hasBegun = false
  /** Why nothing runs there any more. */
  #lost: string | null = null
  #last = 0

  constructor(say: (message: ToStreamNode) => void) {
    this.#say = say
    this.#started = new Promise(resolve => (this.#begin = resolve))
  }

  // --- what the run asks for ---

  /** Null when the node can start programs, or never will. */
  start(): Promise<void> | null {
    return this.#hasBegun ? null : this.#started
  }

  create(): CommandProcess {
    let id = 0
    let isStopped = false
    return {
      start: (request, end) => {
        if (isStopped) return end.ended(neverBegan())
        id = this.#run(request, end)
      },
      stop: () => {
        isStopped = true
        if (this.#running.has(id)) this.#say({ do: 'end', id })
      },
      callBack: () => undefined,
    }
  }

  get hasLanes(): boolean {
    return true
  }

  drain(): void {}

  flush(): void {}

  suspect(): void {}

  end(): void {}

  // --- what the node says ---

  begin(): void {
    this.#hasBegun = true
    this.#begin()
  }

  printed(id: number, bytes: string): void {
    const running = this.#running.get(id)
    if (running) print(running, Buffer.from(bytes, 'base64'))
  }

  ran(id: number, { ago, ...result }: StepResult): void {
    this.#take(id)?.ended({ ...result, beganAt: performance.now() - ago })
  }

  refused(id: number, { code, message, hint }: StepRefusal): void {
    const error =
      code === undefined
        ? new Error(message)
        : new MillraceError(code as 'MR_SPAWN', message, hint === undefined ? {} : { hint })
    this.#take(id)?.failed(error)
  }

  /** All that ran there was killed: the node ends its programs when it is cut off. */
  cutOff(reason: string): void {
    this.#lost = reason
    this.begin()
    for (const id of this.#running.keys()) this.#endLost(id)
  }

  #run({ argv, cwd, env, limits, log }: CommandRequest, end: ProcessEnd): number {
    const id = ++this.#last
    this.#running.set(id, { end, path: log, log: null })
    if (this.#lost !== null) setImmediate(() => this.#endLost(id))
    else {
      const [step = '', ...words] = argv
      this.#say({ do: 'run', id, request: { step, argv: words, cwd, env: beyondOurs(env), limits } })
    }
    return id
  }

  #endLost(id: number): void {
    const running = this.#running.get(id)
    if (!running) return
    print(running, Buffer.from(`${this.#lost}\n`))
    this.#take(id)?.ended({ ...neverBegan(), signal: 'SIGKILL', printed: running.path !== null })
  }

  #take(id: number): ProcessEnd | undefined {
    const running = this.#running.get(id)
    if (!running) return undefined
    this.#running.delete(id)
    if (running.log !== null) closeSync(running.log)
    return running.end
  }
}

/** Without a log, it goes where this process prints. */
function print(running: Running, bytes: Buffer): void {
  if (running.path === null) return void process.stdout.write(bytes)
  if (running.log === null) {
    mkdirSync(dirname(running.path), { recursive: true })
    running.log = openSync(running.path, 'a')
  }
  writeSync(running.log, bytes)
}

/** Nodes inherit our environment, or were given it: what differs is sent. */
function beyondOurs(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name, value]) => process.env[name] !== value))
}
