import { MillraceError } from '../../core/errors.ts'
import type {
  CommandProcess,
  CommandRequest,
  CommandResult,
  ProcessEnd,
} from '../../node/processes/command-process.ts'
import { neverBegan, SpawnerLost } from '../../node/processes/command-process.ts'
import { FROM_AGENT, TO_AGENT } from '../link/frame-types.ts'
import type { FrameReader } from '../link/frames.ts'
import { pack, unpack } from '../link/structured.ts'
import type { NodeLink } from './node-link.ts'

/** Between the clock of `process.hrtime`, on which agents tell times, and that of `performance.now`. */
const CLOCKS_APART = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** The program was on a node that was lost: it is not to blame. */
export class NodeLost extends SpawnerLost {
  override readonly isMachine = true
}

/** Programs of an agent: the form of `Processes` that speaks through the link. */
export class RemoteProcesses {
  readonly #link: NodeLink
  readonly #running = new Map<number, ProcessEnd>()
  #last = 0
  /** What was sent last: a run has one environment, most of the time. */
  #environment: Readonly<Record<string, string>> | null = null
  #isReady = false

  constructor(link: NodeLink) {
    this.#link = link
  }

  start(): Promise<void> | null {
    if (this.#isReady) return null
    return new Promise(resolve => {
      this.#link.whenStarted(() => {
        this.#isReady = true
        resolve()
      })
    })
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
        if (this.#running.has(id)) this.#tell(TO_AGENT.stopProgram, id)
      },
      callBack: () => {
        if (this.#running.has(id)) this.#tell(TO_AGENT.callBack, id)
      },
    }
  }

  drain(): void {}

  flush(): void {
    this.#link.flush()
  }

  get hasLanes(): boolean {
    return true
  }

  suspect(): void {}

  end(): void {}

  receive(type: number, content: FrameReader): void {
    const end = this.#take(content.varint())
    if (type === FROM_AGENT.ran) {
      const result = unpack(content.block()) as CommandResult
      end?.ended({ ...result, beganAt: result.beganAt - CLOCKS_APART })
      return
    }
    const { code, message, hint } = unpack(content.block()) as Record<string, string | undefined>
    end?.failed(
      code === undefined
        ? new Error(message)
        : new MillraceError(code as 'MR_SPAWN', message ?? '', hint === undefined ? {} : { hint }),
    )
  }

  /** The node is gone with all that ran there. */
  cutOff(): void {
    this.#isReady = true
    const lost = [...this.#running.values()]
    this.#running.clear()
    for (const end of lost) end.failed(new NodeLost())
  }

  #run(request: CommandRequest, end: ProcessEnd): number {
    const id = ++this.#last
    if (this.#link.isGone) {
      setImmediate(() => end.failed(new NodeLost()))
      return id
    }
    this.#running.set(id, end)
    const { env, ...rest } = request
    const isKnown = env === this.#environment
    this.#environment = env
    const { bytes } = pack(isKnown ? rest : { ...rest, env })
    const { writer } = this.#link
    writer.begin(TO_AGENT.run)
    writer.varint(id)
    writer.block(bytes)
    writer.end()
    this.#link.flushSoon()
    return id
  }

  #take(id: number): ProcessEnd | undefined {
    const end = this.#running.get(id)
    this.#running.delete(id)
    return end
  }

  #tell(type: number, id: number): void {
    const { writer } = this.#link
    writer.begin(type)
    writer.varint(id)
    writer.end()
    this.#link.flushSoon()
  }
}
