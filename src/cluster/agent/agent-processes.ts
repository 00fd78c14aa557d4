import { mkdirSync } from 'node:fs'
import { MillraceError } from '../../core/errors.ts'
import type { CommandProcess, CommandRequest, CommandResult } from '../../node/processes/command-process.ts'
import { Processes } from '../../node/processes/processes.ts'
import { FROM_AGENT } from '../link/frame-types.ts'
import type { FrameReader, FrameWriter } from '../link/frames.ts'
import { pack, unpack } from '../link/structured.ts'

/** Between the clock of `process.hrtime`, in which times are reported, and that of `performance.now`. */
const CLOCKS_APART = Number(process.hrtime.bigint()) / 1e6 - performance.now()

interface Host {
  readonly writer: FrameWriter
  /** Marks what programs start. */
  readonly mark: string
  /** Add this to a time of this machine to have that of the coordinator's. */
  readonly clockShift: number
  /** It has a folder of its own, in which the folders of programs are made. */
  readonly isApart: boolean
  changed(): void
  note(text: string): void
}

/** Programs that an agent starts for the coordinator. */
export class AgentProcesses {
  readonly #host: Host
  readonly #processes: Processes
  readonly #running = new Map<number, CommandProcess>()
  #environment: Readonly<Record<string, string>> = {}

  constructor(host: Host) {
    this.#host = host
    this.#processes = new Processes(text => host.note(text))
  }

  get isBusy(): boolean {
    return this.#running.size > 0
  }

  start(): Promise<void> | null {
    return this.#processes.start()
  }

  run(content: FrameReader): void {
    const id = content.varint()
    const request = unpack(content.block()) as Omit<CommandRequest, 'env'> & Partial<CommandRequest>
    if (request.env) this.#environment = { ...request.env, MILLRACE_RUN: this.#host.mark }
    if (this.#host.isApart) makeFolder(request.cwd)
    const full: CommandRequest = { ...request, env: this.#environment }
    const starting = this.#processes.start()
    if (!starting) return this.#run(id, full)
    void starting.then(() => this.#run(id, full))
  }

  #run(id: number, request: CommandRequest): void {
    const process = this.#processes.create()
    this.#running.set(id, process)
    process.start(request, {
      ended: result => this.#ended(id, result),
      failed: error => this.#failed(id, error),
    })
  }

  stop(id: number): void {
    this.#processes.suspect()
    this.#running.get(id)?.stop()
  }

  callBack(id: number): void {
    this.#running.get(id)?.callBack()
  }

  flush(): void {
    this.#processes.flush()
  }

  end(clean: boolean): void {
    this.#processes.end(clean)
  }

  #ended(id: number, result: CommandResult): void {
    const beganAt = result.beganAt + CLOCKS_APART + this.#host.clockShift
    this.#tell(FROM_AGENT.ran, id, { ...result, beganAt })
  }

  #failed(id: number, error: unknown): void {
    const facts =
      error instanceof MillraceError
        ? { code: error.code, message: error.shortMessage, hint: error.hint }
        : { message: error instanceof Error ? error.message : String(error) }
    this.#tell(FROM_AGENT.refused, id, facts)
  }

  #tell(type: number, id: number, facts: unknown): void {
    this.#running.delete(id)
    const { writer } = this.#host
    writer.begin(type)
    writer.varint(id)
    writer.block(pack(facts).bytes)
    writer.end()
    this.#host.changed()
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true })
  } catch {
    // The program cannot be started there, and says so.
  }
}
