import { constants } from 'node:os'
import { getSystemErrorMap } from 'node:util'
import { GRACE, neverBegan, SpawnerLost, spawnError } from './command-process.ts'
import type { ParsedLimits } from '../../model/options/process-limits.ts'
import type { CommandProcess, CommandRequest, CommandResult, ProcessEnd } from './command-process.ts'
import type { SpawnListener, Spawner } from './spawner.ts'
import type { NumberedLimits, SpawnEnded, SpawnRefused } from './spawner-wire.ts'

/** Numbers of Linux for what can be limited. */
const RESOURCES: Readonly<Record<keyof ParsedLimits, number>> = {
  cpuTime: 0,
  fileSize: 1,
  openFiles: 7,
  memory: 9,
}

/** Between the clock of `process.hrtime`, which the spawner uses too, and that of `performance.now`. */
const CLOCKS_APART = Number(process.hrtime.bigint()) / 1e6 - performance.now()

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

const NO_LIMITS: NumberedLimits = []

/** A command that `millrace-spawn` starts. */
export class SpawnedProcess implements CommandProcess, SpawnListener {
  readonly #spawner: Spawner
  #request: CommandRequest | null = null
  #end: ProcessEnd | null = null
  #id = 0
  #stopped = false

  constructor(spawner: Spawner) {
    this.#spawner = spawner
  }

  start(request: CommandRequest, end: ProcessEnd): void {
    if (this.#stopped) return end.ended(neverBegan())
    if (request.argv.some(word => word.includes('\0'))) {
      return end.failed(spawnError(request.argv[0] ?? '', request.cwd, 'EINVAL', 'a word has a NUL in it'))
    }
    this.#request = request
    this.#end = end
    this.#id = this.#spawner.run(request, request.limits ? numbered(request.limits) : NO_LIMITS, this)
  }

  // --- what the spawner says ---

  ended(ended: SpawnEnded): void {
    this.#take()?.ended(resultOf(ended))
  }

  refused(refused: SpawnRefused): void {
    this.#take()?.failed(refusal(this.#request as CommandRequest, refused))
  }

  cameBack(): void {
    this.#take()?.ended(neverBegan(!this.#stopped))
  }

  lost(): void {
    this.#take()?.failed(new SpawnerLost())
  }

  #take(): ProcessEnd | null {
    const end = this.#end
    this.#end = null
    return end
  }

  // --- calls of the owner ---

  callBack(): void {
    if (this.#end && !this.#stopped) this.#spawner.callBack(this.#id)
  }

  stop(): void {
    this.#stopped = true
    if (!this.#end) return
    this.#spawner.signal(this.#id, 'SIGTERM')
    setTimeout(() => {
      if (this.#end) this.#spawner.signal(this.#id, 'SIGKILL')
    }, GRACE).unref()
  }
}

const numbered = (limits: ParsedLimits): NumberedLimits =>
  Object.entries(limits).map(([name, value]) => [RESOURCES[name as keyof ParsedLimits], value as number])

function resultOf(ended: SpawnEnded): CommandResult {
  const { exitCode, signal, printed, starved, beganAt, endedAt } = ended
  return {
    cameBack: false,
    exitCode,
    signal: signal === 0 ? null : (SIGNALS.get(signal) ?? `signal ${signal}`),
    printed,
    starved,
    beganAt: beganAt - CLOCKS_APART,
    took: endedAt - beganAt,
    usage: {
      cpuMs: ended.cpu,
      peakBytes: ended.peak,
      askedBytes: ended.asked,
      readBytes: ended.deviceRead,
      writtenBytes: ended.written,
    },
  }
}

function refusal({ argv, cwd, stdin, stdout, stderr, log }: CommandRequest, refused: SpawnRefused): Error {
  const { stage, errno } = refused
  const [code, text] = getSystemErrorMap().get(-errno) ?? [`E${errno}`, `error ${errno}`]
  const paths = { stdin, stdout, stderr, log, cwd }
  const path = stage in paths ? paths[stage as keyof typeof paths] : null
  if (path !== null && stage !== 'cwd')
    return spawnError(argv[0] ?? '', cwd, undefined, `${code}: ${text}, open '${path}'`)
  return spawnError(argv[0] ?? '', cwd, code, `${code}: ${text}`)
}
