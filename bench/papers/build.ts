import { Datum } from '../../src/core/data/datum.ts'
import { demandOf, ioDemandOf } from '../../src/core/tasks/demand.ts'
import type { Bandwidth, Demand } from '../../src/core/tasks/demand.ts'
import { simulate } from '../../src/simulate/simulate.ts'
import type { SimulateOptions } from '../../src/simulate/simulate.ts'
import type { SimulatedOutcome } from '../../src/simulate/outcome.ts'
import type { Simulation } from '../../src/simulate/simulation.ts'
import { inputFile } from '../../src/simulate/input/workload.ts'

export const MB = 1e6

/** What a task uses: a datum, whether it reads or writes it, and how many bytes that is. */
export type Use = [datum: Datum, mode: 'in' | 'out', bytes?: number]

export const cpus = (count: number): Demand => demandOf(count, 0, [])

/** An I/O task that asks for a bandwidth in MB/s, or for a limit that is learned. */
export const io = (bandwidth: Bandwidth, size: number, tags: readonly string[] = []): Demand =>
  ioDemandOf({ bandwidth, direction: 'write', size, device: null }, 0, 0, [...tags])

/** Writes experiments down in the words of the papers. */
export class Build {
  readonly simulation: Simulation
  #files = 0

  constructor(simulation: Simulation) {
    this.simulation = simulation
  }

  value(): Datum {
    return new Datum(null, false, false)
  }

  file(folder = ''): Datum {
    return new Datum(`${folder}/file${this.#files++}`, false, false)
  }

  input(bytes: number, node = 0): Datum {
    return inputFile(this.simulation, new Datum(`/input${this.#files++}`), bytes, node)
  }

  task(name: string, seconds: number, uses: readonly Use[], demand: Demand = cpus(1), eager = false): void {
    this.simulation.submit(
      { kind: this.simulation.kind(name), demand },
      uses.map(([datum, mode]) => ({ datum, mode })),
      { compute: seconds * 1000, bytes: uses.map(([, , bytes = 0]) => bytes), eager },
    )
  }
}

/** Seconds until the last task has ended. */
export async function time(write: (build: Build) => void, options: SimulateOptions): Promise<number> {
  return (await outcome(write, options)).tasksEnded
}

export const outcome = (write: (build: Build) => void, options: SimulateOptions): Promise<SimulatedOutcome> =>
  simulate({ name: 'paper', begin: simulation => write(new Build(simulation)) }, options)

/** How much of the time is saved. */
export const gain = (before: number, after: number): number => (before - after) / before
