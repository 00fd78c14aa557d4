import { Datum } from '../../../src/core/data/datum.ts'
import { Engine } from '../../../src/core/engine.ts'
import type { EngineOptions } from '../../../src/core/engine-options.ts'
import type { Instruction } from '../../../src/core/engine.ts'
import type { RunEvent } from '../../../src/core/events.ts'
import type { Device, DeviceDescription } from '../../../src/core/io/device.ts'
import type { NodeDescription } from '../../../src/core/schedule/machine.ts'
import { ioDemandOf } from '../../../src/core/tasks/demand.ts'
import type { IoWishes } from '../../../src/core/tasks/demand.ts'
import type { Kind, Task, TaskSpec } from '../../../src/core/tasks/task.ts'
import { kindOf } from '../rig.ts'

export const MB = 1e6

export const device = (
  name: string,
  megabytes: number,
  more: Partial<DeviceDescription> = {},
): DeviceDescription => ({
  name,
  path: `/${name}`,
  read: megabytes * MB,
  write: megabytes * MB,
  capacity: null,
  ...more,
})

export interface IoRigOptions extends Partial<Omit<EngineOptions, 'nodes'>> {
  nodes?: Partial<NodeDescription>[]
  storage?: DeviceDescription[]
  ioExecutors?: number
  cpus?: number
}

let files = 0

/** An engine with storage under the hands of a test. */
export class IoRig {
  readonly engine: Engine
  readonly events: RunEvent[] = []
  readonly said: Instruction[] = []
  now = 0
  readonly #kinds = new Map<string, Kind>()

  constructor({ nodes = [{}], storage = [], ioExecutors = 100, cpus = 1, ...options }: IoRigOptions = {}) {
    this.engine = new Engine({
      ...options,
      nodes: nodes.map((node, i) => ({
        name: `n${i}`,
        cpus,
        memory: 1000,
        tags: [],
        storage,
        ioExecutors,
        ...node,
      })),
      observer: event => this.events.push(event),
    })
  }

  file(): Datum {
    return new Datum(`/f${++files}`)
  }

  kind(name: string): Kind {
    let kind = this.#kinds.get(name)
    if (!kind) this.#kinds.set(name, (kind = kindOf(name)))
    return kind
  }

  /** Submits an I/O task that writes a file of its own, unless `files` says which it reads and writes. */
  write(name: string, wishes: IoWishes = {}, spec: Partial<TaskSpec> = {}, out = this.file()): Task {
    return this.submit(name, wishes, [{ datum: out, mode: 'out' }], spec)
  }

  read(name: string, wishes: IoWishes, input: Datum, spec: Partial<TaskSpec> = {}): Task {
    return this.submit(name, wishes, [{ datum: input, mode: 'in' }], spec)
  }

  submit(
    name: string,
    wishes: IoWishes,
    uses: { datum: Datum; mode: 'in' | 'out' | 'inout' | 'commutative' | 'concurrent' }[],
    spec: Partial<TaskSpec> = {},
  ): Task {
    const task = { kind: this.kind(name), group: this.engine.root, demand: ioDemandOf(wishes), ...spec }
    return this.engine.submit(task, uses, this.now)
  }

  many(count: number, name: string, wishes: IoWishes = {}): Task[] {
    return Array.from({ length: count }, () => this.write(name, wishes))
  }

  /** Lets the engine decide; returns the tasks that begin or go on. */
  go(): Task[] {
    const going: Task[] = []
    for (const instruction of this.engine.decide(this.now)) {
      if (instruction.type === 'start') {
        going.push(instruction.task)
        this.engine.started(instruction.task, this.now)
      } else if (instruction.type === 'resume') going.push(instruction.task)
      else this.said.push(instruction)
    }
    return going
  }

  finish(task: Task, at = this.now + 1, bytes?: number): void {
    this.now = Math.max(this.now, at)
    for (const { write } of task.accesses) {
      if (!write) continue
      write.value = task.name
      if (bytes !== undefined) this.engine.io.stored(write, bytes)
    }
    this.engine.finished(task, this.now)
  }

  fail(task: Task): void {
    this.engine.failed(task, { name: 'Error', message: 'it broke' }, new Error('it broke'), ++this.now)
  }

  device(name: string): Device {
    const found = this.engine.io.devices.find(one => one.name === name)
    if (!found) throw new Error(`no device ${name}`)
    return found
  }

  of<T extends RunEvent['type']>(type: T): Extract<RunEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type)
  }
}

/** Where each of the tasks runs. */
export const devicesOf = (tasks: readonly Task[]): string[] => tasks.map(task => task.io?.device?.name ?? '-')
