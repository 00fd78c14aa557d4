import { constants } from 'node:os'
import { getSystemErrorMap } from 'node:util'
import { GRACE, SpawnerLost, spawnError } from './command-process.ts'
import type { ParsedLimits } from '../model/limits.ts'
import type { CommandProcess, CommandRequest, CommandResult } from './command-process.ts'
import type { Spawner } from './spawner.ts'
import type { SpawnEnded, SpawnRefused } from './spawner-wire.ts'

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

/** A command that `millrace-spawn` starts. */
export class SpawnedProcess implements CommandProcess {
  readonly #spawner: Spawner
  #id = 0
  #hasEnded = false
  #stopped = false

  constructor(spawner: Spawner) {
    this.#spawner = spawner
  }

  run(request: CommandRequest): Promise<CommandResult> {
    return new Promise((resolve, reject) => {
      if (this.#stopped) return resolve(neverBegan('stopped'))
      if (request.argv.some(word => word.includes('\0'))) {
        return reject(spawnError(request.argv[0] ?? '', request.cwd, 'EINVAL', 'a word has a NUL in it'))
      }
      const end = (): void => void (this.#hasEnded = true)
      const limits = Object.entries(request.limits ?? {}).map(
        ([name, value]) => [RESOURCES[name as keyof ParsedLimits], value] as const,
      )
      this.#id = this.#spawner.run(
        { ...request, limits },
        {
          ended: ended => {
            end()
            resolve(resultOf(ended))
          },
          refused: refused => {
            end()
            reject(refusal(request, refused))
          },
          cameBack: () => {
            end()
            resolve(neverBegan(this.#stopped ? 'stopped' : 'called back'))
          },
          lost: () => {
            end()
            reject(new SpawnerLost())
          },
        },
      )
    })
  }

  callBack(): void {
    if (this.#id !== 0 && !this.#hasEnded && !this.#stopped) this.#spawner.callBack(this.#id)
  }

  stop(): void {
    this.#stopped = true
    if (this.#id === 0 || this.#hasEnded) return
    this.#spawner.signal(this.#id, 'SIGTERM')
    setTimeout(() => {
      if (!this.#hasEnded) this.#spawner.signal(this.#id, 'SIGKILL')
    }, GRACE).unref()
  }
}

const neverBegan = (why: 'stopped' | 'called back'): CommandResult => ({
  cameBack: why === 'called back',
  exitCode: null,
  signal: 'SIGTERM',
  printed: false,
  beganAt: performance.now(),
  took: 0,
  usage: null,
})

function resultOf(ended: SpawnEnded): CommandResult {
  const { exitCode, signal, printed, beganAt, endedAt } = ended
  return {
    cameBack: false,
    exitCode,
    signal: signal === 0 ? null : (SIGNALS.get(signal) ?? `signal ${signal}`),
    printed,
    beganAt: beganAt - CLOCKS_APART,
    took: endedAt - beganAt,
    usage: {
      cpuMs: ended.user + ended.system,
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
