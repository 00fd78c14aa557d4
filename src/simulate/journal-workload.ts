import { Datum } from '../core/data.ts'
import type { AccessMode } from '../core/data.ts'
import type { AccessRequest } from '../core/engine.ts'
import { MillraceError } from '../core/errors.ts'
import type { RunEvent } from '../core/events.ts'
import { demandOf } from '../core/task.ts'
import type { Task } from '../core/task.ts'
import { readJournal } from '../report/journal-reader.ts'
import type { Simulation } from './simulation.ts'
import type { Workload } from './workload.ts'

/** A task as the journal of a real run tells of it. */
interface Recorded {
  readonly id: number
  readonly kind: number
  readonly priority: number
  readonly reads: readonly number[]
  readonly writes: readonly number[]
  readonly paths: ReadonlyMap<number, string> | null
  /** When the program called it, in milliseconds. */
  readonly at: number
  /** The task at whose end the program probably waited before this call. */
  readonly after: number | null
  /** Milliseconds since that, or since the call before. */
  readonly gap: number
  ran: number
  cpus: number
  isIo: boolean
}

/** A call so soon after the end of a task, and so late after the call before, was waiting for that end. */
const SOON = 2

/** The tasks of a recorded run again, each as long as it was: trace-driven what-if. */
export async function journalWorkload(path: string): Promise<Workload> {
  const { name, kinds, tasks } = await readRecorded(path)
  if (tasks.length === 0) {
    throw new MillraceError('MR_SIMULATION', `the journal ${path} has no task that ended well`, {
      hint: 'Name a run of which tasks ended well: `millrace runs` lists them.',
    })
  }
  return {
    name,
    begin: simulation => new Replay(simulation, kinds, tasks).begin(),
  }
}

async function readRecorded(
  path: string,
): Promise<{ name: string; kinds: Map<number, Of<'kind-defined'>>; tasks: Recorded[] }> {
  const kinds = new Map<number, Of<'kind-defined'>>()
  const tasks = new Map<number, Recorded>()
  const started = new Map<number, number>()
  let name = path
  let lastCall = 0
  let lastEnd: { task: number; at: number } | null = null
  for await (const event of readJournal(path)) {
    if (event.type === 'run-started') name = event.program
    else if (event.type === 'kind-defined') kinds.set(event.kind, event)
    else if (event.type === 'submitted') {
      const waited =
        lastEnd && lastEnd.at >= lastCall && event.at - lastEnd.at < SOON && event.at - lastCall > SOON
          ? lastEnd
          : null
      tasks.set(event.task, recordedOf(event, waited?.task ?? null, waited?.at ?? lastCall))
      lastCall = event.at
    } else if (event.type === 'started') {
      started.set(event.task, event.at)
      const task = tasks.get(event.task)
      if (task) Object.assign(task, { cpus: Math.max(1, event.cpus), isIo: event.cpus === 0 })
    } else if (event.type === 'finished') {
      const task = tasks.get(event.task)
      if (task) task.ran = event.at - (started.get(event.task) ?? event.at)
      lastEnd = { task: event.task, at: event.at }
    }
  }
  return { name, kinds, tasks: [...tasks.values()].filter(({ ran }) => ran >= 0) }
}

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

function recordedOf(event: Of<'submitted'>, after: number | null, since: number): Recorded {
  const { task, kind, priority, reads, writes, at, files } = event
  return {
    id: task,
    kind,
    priority,
    reads,
    writes,
    paths: files ? new Map(files.map(({ version, path }) => [version, path])) : null,
    at,
    after,
    gap: Math.max(0, at - since),
    ran: -1,
    cpus: 1,
    isIo: false,
  }
}

/** Calls the recorded tasks in their order, as the program did: right after each other, or after it had waited. */
class Replay {
  readonly #simulation: Simulation
  readonly #kinds: ReadonlyMap<number, Of<'kind-defined'>>
  readonly #tasks: readonly Recorded[]
  readonly #data = new Map<number, Datum>()
  readonly #writers = new Map<number, number>()
  readonly #live = new Map<number, Task>()
  #next = 0

  constructor(
    simulation: Simulation,
    kinds: ReadonlyMap<number, Of<'kind-defined'>>,
    tasks: readonly Recorded[],
  ) {
    this.#simulation = simulation
    this.#kinds = kinds
    this.#tasks = tasks
    for (const { writes } of tasks) {
      for (const version of writes) this.#writers.set(version, (this.#writers.get(version) ?? 0) + 1)
    }
  }

  begin(): void {
    this.#wait()
  }

  /** Until the next call: it comes a while after the one before, or after the end of a task. */
  #wait(): void {
    const next = this.#tasks[this.#next]
    if (!next) return
    const before = next.after === null ? undefined : this.#live.get(next.after)
    if (before && !before.ended) {
      this.#simulation.afterEnd(before, () => this.#simulation.clock.after(next.gap, () => this.#call(next)))
    } else this.#simulation.clock.after(next.gap, () => this.#call(next))
  }

  #call(recorded: Recorded): void {
    const { id, kind, priority, reads, writes, cpus, ran, isIo } = recorded
    const accesses: AccessRequest[] = []
    for (const version of reads) accesses.push({ datum: this.#datum(recorded, version), mode: 'in' })
    for (const version of writes) {
      // Several tasks make one version together.
      const mode: AccessMode = (this.#writers.get(version) ?? 0) > 1 ? 'concurrent' : 'out'
      accesses.push({ datum: this.#datum(recorded, version), mode })
    }
    const facts = this.#kinds.get(kind)
    const task = this.#simulation.submit(
      {
        kind: this.#simulation.kind(facts?.name ?? `kind ${kind}`, facts?.form, facts?.module),
        demand: isIo ? demandOf(0, 0, [], true) : demandOf(cpus, 0, []),
        priority,
      },
      accesses,
      { compute: ran },
    )
    this.#live.set(id, task)
    this.#next++
    this.#wait()
  }

  #datum({ paths }: Recorded, version: number): Datum {
    let datum = this.#data.get(version)
    if (!datum) {
      datum = new Datum(paths?.get(version) ?? null, false, !this.#writers.has(version))
      if (!this.#writers.has(version)) datum.current.value = true
      this.#data.set(version, datum)
    }
    return datum
  }
}
