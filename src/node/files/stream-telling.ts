import { statSync } from 'node:fs'
import type { Version } from '../../core/data/datum.ts'
import type { RunEvent } from '../../core/events.ts'
import type { Task } from '../../core/tasks/task.ts'
import { Board } from '../../stream/board/board.ts'
import type { WaitLine } from '../../stream/board/snapshot.ts'
import { streamTools } from '../../stream/run/toolchain.ts'

/** Milliseconds between two looks. */
const PERIOD = 1000

type Facts = Omit<Extract<RunEvent, { type: 'stream' }>, 'type' | 'at'>

/** A file that grows: see `Streaming`. */
interface Growing {
  readonly version: Version
  readonly task: Task
  readonly path: string
  readonly name: string
  readonly failure: string | null
}

/** Tells observers how far each file is that programs pass on while it grows, who writes and reads it, and who waits. */
export class StreamTelling {
  readonly #tell: (facts: Facts) => void
  readonly #streams: () => Iterable<Growing>
  readonly #workflow: string
  readonly #told = new Map<string, string>()
  readonly #bytes = new Map<string, number>()
  #timer: NodeJS.Timeout | null = null
  #isLooking = false

  constructor(workflow: string, streams: () => Iterable<Growing>, tell: (facts: Facts) => void) {
    this.#workflow = workflow
    this.#streams = streams
    this.#tell = tell
  }

  start(): void {
    // It keeps no process alive: tasks do.
    this.#timer ??= setInterval(() => void this.#look(), PERIOD).unref()
  }

  end(): void {
    if (this.#timer) clearInterval(this.#timer)
    this.#timer = null
  }

  began(stream: Growing): void {
    this.#tellOne(stream, [])
  }

  /** The attempt that writes it has ended: this event is its last one. */
  over(stream: Growing): void {
    this.#tellOne(stream, [])
    this.#told.delete(stream.name)
    this.#bytes.delete(stream.name)
  }

  async #look(): Promise<void> {
    const growing = [...this.#streams()].filter(({ version }) => version.state === 'pending')
    if (growing.length === 0 || this.#isLooking) return
    this.#isLooking = true
    try {
      const snapshot = await new Board(await streamTools(), this.#workflow).ps()
      for (const stream of growing) this.#tellOne(stream, snapshot?.waits ?? [])
    } catch {
      // The waiters are not known, but the sizes of the files are.
      for (const stream of growing) this.#tellOne(stream, [])
    } finally {
      this.#isLooking = false
    }
  }

  #tellOne(stream: Growing, waits: readonly WaitLine[]): void {
    const { version, task, name } = stream
    const waiting = waits.filter(({ path }) => path === name)
    const readers = [...(version.growth?.followers ?? [])].map(({ name: reader, title }) => {
      // Steps of the board are named after the task and its attempt.
      const isWaiting = waiting.some(({ step }) => step?.startsWith(`${reader}.`))
      return { name: title, waits: isWaiting ? `${title} waits for more from ${task.title}` : null }
    })
    const facts: Facts = {
      path: version.datum.path ?? name,
      state: stateOf(stream),
      bytes: this.#sizeOf(stream),
      producers: [task.title],
      readers,
    }
    const text = JSON.stringify(facts)
    if (this.#told.get(name) === text) return
    this.#told.set(name, text)
    this.#tell(facts)
  }

  /** The last that is known, once the file is gone. */
  #sizeOf({ path, name }: Growing): number {
    const stat = statSync(path, { throwIfNoEntry: false })
    const known = this.#bytes.get(name) ?? 0
    const bytes = stat?.isFile() ? stat.size : known
    this.#bytes.set(name, bytes)
    return bytes
  }
}

function stateOf({ version, failure, task }: Growing): Facts['state'] {
  if (version.state === 'ready') return 'committed'
  return failure !== null || task.state === 'failed' || task.state === 'cancelled' ? 'failed' : 'growing'
}
