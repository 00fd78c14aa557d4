import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { rm, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../../core/errors.ts'
import { neverBegan } from '../../node/processes/command-process.ts'
import type { CommandProcess, CommandRequest, CommandResult } from '../../node/processes/command-process.ts'
import { Processes } from '../../node/processes/processes.ts'
import { Watchdog } from '../../node/processes/watchdog.ts'
import type { StepBoard } from '../../stream/board/board.ts'
import { GrowingFile } from '../../stream/run/growing-file.ts'
import type { FromStreamNode, StepRefusal, StepRequest } from './messages.ts'

/** Milliseconds between looks at what programs print. */
const INTERVAL = 100

interface Parts {
  /** In `MILLRACE_RUN` of what the programs start. */
  readonly mark: string
  readonly board: StepBoard
  readonly dir: string
  readonly place: string
  say(message: FromStreamNode): void
  note(text: string): void
}

interface Running {
  readonly process: CommandProcess
  readonly log: string
  readonly output: GrowingFile
}

/** Programs that a node runs for the coordinator, as steps of its board. */
export class StepPrograms {
  readonly #parts: Parts
  readonly #processes: Processes
  readonly #watchdog: Watchdog
  readonly #running = new Map<number, Running | 'waiting' | 'closing'>()
  readonly #reading = new WeakMap<GrowingFile, Promise<unknown>>()
  /** Of what they print. */
  readonly #logs: string
  #isStopped = false
  #isReading = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#processes = new Processes(text => parts.note(text))
    this.#watchdog = new Watchdog(parts.mark)
    this.#watchdog.start()
    this.#logs = join(tmpdir(), `millrace-steps.${process.pid}.${randomBytes(4).toString('hex')}`)
    this.#watchdog.folder(this.#logs)
    mkdirSync(this.#logs, { mode: 0o700 })
  }

  get running(): number {
    return this.#running.size
  }

  async run(id: number, request: StepRequest): Promise<void> {
    this.#running.set(id, 'waiting')
    await this.#processes.start()
    // It may have been ended meanwhile.
    if (!this.#running.has(id)) return
    if (this.#isStopped) return this.#ended(id, neverBegan())
    const { board, mark, dir, place } = this.#parts
    const log = join(this.#logs, `${id}`)
    const full: CommandRequest = {
      argv: board.argv(request.step, request.argv),
      cwd: resolve(dir, request.cwd),
      env: {
        ...(process.env as Record<string, string>),
        MILLRACE_PLACE: place,
        ...request.env,
        MILLRACE_RUN: mark,
      },
      stdin: null,
      stdout: null,
      stderr: null,
      log,
      cpus: null,
      limits: request.limits,
      lane: null,
    }
    const output = new GrowingFile(log, bytes => {
      this.#parts.say({ say: 'printed', id, bytes: bytes.toString('base64') })
    })
    const program = this.#processes.create()
    this.#running.set(id, { process: program, log, output })
    program.start(full, {
      ended: result => void this.#close(id).then(() => this.#ended(id, result)),
      failed: error => void this.#close(id).then(() => this.#refused(id, error)),
    })
    this.#processes.flush()
    void this.#read()
  }

  /** One program: asked first, by force after a while. */
  end(id: number): void {
    const running = this.#running.get(id)
    if (running === 'waiting') return this.#ended(id, neverBegan())
    if (running === undefined || running === 'closing') return
    this.#suspect()
    running.process.stop()
    this.#processes.flush()
  }

  /** All programs, and none is started any more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const id of this.#running.keys()) this.end(id)
    while (this.#running.size > 0) await sleep(20)
  }

  async leave(): Promise<void> {
    this.#isStopped = true
    this.#processes.end(this.#running.size === 0)
    await rm(this.#logs, { recursive: true, force: true })
    this.#watchdog.end()
  }

  /** Something may have left its process group. */
  #suspect(): void {
    this.#processes.suspect()
    this.#watchdog.suspect()
  }

  async #read(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    while (this.#running.size > 0) {
      for (const running of this.#running.values())
        if (typeof running === 'object') await this.#readOnce(running.output)
      await sleep(INTERVAL)
    }
    this.#isReading = false
  }

  /** Reads what has come; the end of the program waits for it. */
  #readOnce(output: GrowingFile): Promise<unknown> {
    const reading = output.read().catch(() => false)
    this.#reading.set(output, reading)
    return reading
  }

  /** All that it printed goes before its end. */
  async #close(id: number): Promise<void> {
    const running = this.#running.get(id)
    if (typeof running !== 'object') return
    this.#running.set(id, 'closing')
    await this.#reading.get(running.output)
    await running.output.end().catch(() => undefined)
    await unlink(running.log).catch(() => undefined)
  }

  #ended(id: number, { beganAt, ...result }: CommandResult): void {
    this.#running.delete(id)
    this.#parts.say({ say: 'ran', id, result: { ...result, ago: performance.now() - beganAt } })
  }

  #refused(id: number, error: unknown): void {
    this.#running.delete(id)
    this.#parts.say({ say: 'refused', id, error: refusalOf(error) })
  }
}

function refusalOf(error: unknown): StepRefusal {
  if (!(error instanceof MillraceError)) return { message: String(error) }
  return { code: error.code, message: error.shortMessage, hint: error.hint }
}
