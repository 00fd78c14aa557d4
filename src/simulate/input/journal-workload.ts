import { Datum } from '../../core/data/datum.ts'
import type { AccessMode } from '../../core/data/datum.ts'
import type { AccessRequest } from '../../core/engine.ts'
import { demandOf } from '../../core/tasks/demand.ts'
import type { Demand, StorageDemand } from '../../core/tasks/demand.ts'
import type { Task } from '../../core/tasks/task.ts'
import type { Work } from '../execution.ts'
import type { RecordedRun, RecordedTask } from './recorded-run.ts'
import type { Simulation } from '../simulation.ts'
import { deviceAt, splitTimes } from './split-time.ts'
import type { Split } from './split-time.ts'
import { inputFile } from './workload.ts'
import type { Workload } from './workload.ts'

/** The tasks of a recorded run again: each computes as long as it did, and its bytes take what the models say. */
export function journalWorkload(run: RecordedRun): Workload {
  const splits = splitTimes(run)
  return {
    name: run.facts.program,
    begin: simulation => new Replay(simulation, run, splits).begin(),
  }
}

/** Calls the recorded tasks in their order, as the program did: right after each other, or after it had waited. */
class Replay {
  readonly #simulation: Simulation
  readonly #run: RecordedRun
  readonly #splits: ReadonlyMap<number, Split>
  readonly #data = new Map<number, Datum>()
  /** How many tasks make each version. */
  readonly #writers = new Map<number, number>()
  readonly #live = new Map<number, Task>()
  /** Of the devices that there are; bytes per second. */
  readonly #fastest: Readonly<Record<'read' | 'write', number>>
  #next = 0
  #inputs = 0

  constructor(simulation: Simulation, run: RecordedRun, splits: ReadonlyMap<number, Split>) {
    this.#simulation = simulation
    this.#run = run
    this.#splits = splits
    for (const task of run.tasks) {
      for (const version of madeBy(task)) this.#writers.set(version, (this.#writers.get(version) ?? 0) + 1)
    }
    const { facts } = run
    const { stores } = simulation
    const fastest = (way: 'read' | 'write'): number =>
      stores.devices.reduce((most, { model }) => Math.max(most, model[way] ?? Infinity), 0) || Infinity
    this.#fastest = { read: fastest('read'), write: fastest('write') }
    // Devices are known by their names: on another machine they are elsewhere.
    stores.deviceAt = path => facts.devices?.[deviceAt(facts, path) ?? -1]?.name ?? null
  }

  begin(): void {
    this.#wait()
  }

  /** Until the next call: it comes a while after the one before, or after the end of a task. */
  #wait(): void {
    const next = this.#run.tasks[this.#next]
    if (!next) return
    const { clock } = this.#simulation
    const before = next.after === null ? undefined : this.#live.get(next.after)
    const call = (): void => clock.after(next.gap, () => this.#call(next))
    if (before && !before.ended) this.#simulation.afterEnd(before, call)
    else call()
  }

  #call(recorded: RecordedTask): void {
    const { id, kind, priority, label, reads } = recorded
    const accesses: AccessRequest[] = []
    for (const version of reads) accesses.push({ datum: this.#datum(version), mode: 'in' })
    for (const version of madeBy(recorded)) {
      // Several tasks make one version together.
      const mode: AccessMode = (this.#writers.get(version) ?? 0) > 1 ? 'concurrent' : 'out'
      accesses.push({ datum: this.#datum(version), mode })
    }
    const facts = this.#run.kinds.get(kind)
    const task = this.#simulation.submit(
      {
        kind: this.#simulation.kind(facts?.name ?? `kind ${kind}`, facts?.form, facts?.module),
        demand: this.#demand(recorded),
        priority,
        label,
      },
      accesses,
      this.#work(recorded),
    )
    this.#live.set(id, task)
    this.#next++
    this.#wait()
  }

  #demand({ demand, cpus, isIo }: RecordedTask): Demand {
    const known = demand === null ? undefined : this.#run.demands.get(demand)
    // Which version of a task ran may have had another demand than the call.
    if (!known || known.io !== isIo) return demandOf(cpus, 0, [], isIo)
    return demandOf(isIo ? 0 : cpus, known.memory, known.tags, isIo, this.#within(known.storage))
  }

  /** Where devices are slower than what a task asked for, it asks for all of the fastest. */
  #within(storage: StorageDemand | null): StorageDemand | null {
    if (typeof storage?.bandwidth !== 'number') return storage
    const most = this.#fastest[storage.direction ?? 'write']
    return storage.bandwidth > most ? { ...storage, bandwidth: most } : storage
  }

  #work(recorded: RecordedTask): Work {
    const { compute, read, written } = this.#splits.get(recorded.id) as Split
    const bytes = [...read, ...written]
    const hasBytes = bytes.some(one => one > 0)
    const { released } = recorded
    if (!released) return { compute, bytes: hasBytes ? bytes : null }
    const took = Math.max(1e-9, recorded.endedAt - recorded.startedAt - recorded.blocked)
    const made = madeBy(recorded)
    const releases = made.flatMap((version, i) => {
      const after = released.get(version)
      if (after === undefined) return []
      return { access: recorded.reads.length + i, after: Math.min(compute, (after / took) * compute) }
    })
    return { compute, bytes: hasBytes ? bytes : null, releases }
  }

  #datum(version: number): Datum {
    let datum = this.#data.get(version)
    if (!datum) {
      const file = this.#run.files.get(version)
      const isInput = !this.#writers.has(version)
      datum = new Datum(file?.path ?? null, false, isInput)
      if (isInput && file?.path) inputFile(this.#simulation, datum, file.bytes, this.#inputs++)
      else if (isInput) datum.current.value = true
      this.#data.set(version, datum)
    }
    return datum
  }
}

/** What it made, also what had no name at its call. */
function madeBy({ writes, released }: RecordedTask): readonly number[] {
  if (!released) return writes
  return [...new Set([...writes, ...released.keys()])]
}
