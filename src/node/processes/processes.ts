import type { CommandProcess } from './command-process.ts'
import type * as Starters from './process-starters.ts'
import type { Spawner } from './spawner.ts'

/** Number of spawners that may be killed before they are taken for the cause. */
const MOST_LOSSES = 8

/** Where processes come from: the spawner, or Node itself where there is none. */
export class Processes {
  readonly #note: (text: string) => void
  /** Loaded with the first command: a program without any does not have to wait for it. */
  #starters: typeof Starters | null = null
  #spawner: Spawner | null = null
  #starting: Promise<void> | null = null
  #mustSearch = false
  #isOver = false
  /** Spawners that ended before their time. */
  #losses = 0

  /** `note` hears, once, why commands are started by Node. */
  constructor(note: (text: string) => void) {
    this.#note = note
  }

  /** To be waited for before the first command; null when there is nothing to wait for. */
  start(): Promise<void> | null {
    if (this.#spawner) return null
    return (this.#starting ??= this.#start())
  }

  create(): CommandProcess {
    const { NodeProcess, SpawnedProcess } = this.#starters as typeof Starters
    return this.#spawner && !this.#spawner.isGone ? new SpawnedProcess(this.#spawner) : new NodeProcess()
  }

  /** Takes what has come, without the event loop. */
  drain(): void {
    this.#spawner?.drain()
  }

  /** Sends what has been started since. */
  flush(): void {
    this.#spawner?.flush()
  }

  /** Programs can be given to a lane that is busy. */
  get hasLanes(): boolean {
    return this.#spawner !== null && !this.#spawner.isGone
  }

  /** Something that a command started may have left its process group. */
  suspect(): void {
    this.#mustSearch = true
  }

  /** No command runs any more, or what runs is to be killed. */
  end(clean: boolean): void {
    this.#isOver = true
    this.#starters?.killNodeProcesses()
    this.#spawner?.end(clean && !this.#mustSearch)
    this.#spawner = null
  }

  #lost(): void {
    if (this.#isOver) return
    this.#spawner = null
    this.#starting = null
    this.#losses++
    const next = this.#losses < MOST_LOSSES ? 'another one is started' : 'Node starts them from here on'
    this.#note(`the process that starts programs ended; ${next}`)
  }

  async #start(): Promise<void> {
    const { Spawner, builtSpawnTool, spawnTool } = (this.#starters = await import('./process-starters.ts'))
    const asked = process.env['MILLRACE_SPAWNER']
    if (asked === 'off' || this.#losses >= MOST_LOSSES || process.platform !== 'linux') return
    try {
      const tool = asked ?? builtSpawnTool() ?? (await spawnTool())
      if (this.#isOver) return
      this.#spawner = new Spawner(tool, () => this.#lost())
    } catch (error) {
      const reason = (error instanceof Error ? error.message : String(error)).split('\n')[0]
      this.#note(`programs are started by Node, which is slower and cannot tell what they use: ${reason}`)
    }
  }
}
