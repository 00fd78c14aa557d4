import assert from 'node:assert/strict'
import { Datum } from '../../src/core/data/datum.ts'
import type { AccessMode, Version } from '../../src/core/data/datum.ts'
import { Engine } from '../../src/core/engine.ts'
import type { Instruction } from '../../src/core/engine.ts'
import type { RunEvent } from '../../src/core/events.ts'
import type { NodeDescription } from '../../src/core/schedule/machine.ts'
import type { Policy } from '../../src/core/schedule/policy.ts'
import { MillraceError } from '../../src/core/errors.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'
import { Implementation } from '../../src/core/tasks/task.ts'
import type { Demand } from '../../src/core/tasks/demand.ts'
import type { Kind, Task, TaskSpec } from '../../src/core/tasks/task.ts'

export interface RigOptions {
  cpus?: number
  memory?: number
  nodes?: Partial<NodeDescription>[]
  policy?: Policy
}

export type Uses = [datum: Datum, mode: AccessMode, grows?: boolean][]

let lastKind = 0

export function kindOf(name: string, demands: (Demand | null)[] = [null]): Kind {
  return {
    id: ++lastKind,
    name,
    form: 'function',
    module: 'test',
    implementations: demands.map((demand, i) => new Implementation(`${name}${i}`, demand)),
  }
}

export const cpus = (n: number, memory = 0, ...tags: string[]): Demand => demandOf(n, memory, tags)

/** An engine under the hands of a test, which says everything that happens. */
export class Rig {
  readonly engine: Engine
  readonly events: RunEvent[] = []
  now = 0
  /** Everything that `decide` said since the last look, but for starts and resumes. */
  readonly said: Instruction[] = []
  readonly #kinds = new Map<string, Kind>()

  constructor({ cpus: lanes = 2, memory = 1000, nodes = [{}], policy }: RigOptions = {}) {
    this.engine = new Engine({
      nodes: nodes.map((node, i) => ({ name: `n${i}`, cpus: lanes, memory, tags: [], ...node })),
      ...(policy ? { policy } : {}),
      observer: event => this.events.push(event),
    })
  }

  datum(inPlace = false): Datum {
    const datum = new Datum(null, inPlace)
    datum.current.value = 'initial'
    return datum
  }

  /** Submits a task of the kind called `name`. */
  call(name: string, uses: Uses = [], spec: Partial<TaskSpec> = {}): Task {
    let kind = this.#kinds.get(name)
    if (!kind) this.#kinds.set(name, (kind = spec.kind ?? kindOf(name)))
    return this.engine.submit(
      { kind, group: this.engine.root, demand: cpus(1), ...spec },
      uses.map(([datum, mode, grows = false]) => ({ datum, mode, grows })),
      ++this.now,
    )
  }

  /** Lets the engine decide; returns the tasks that begin or go on. */
  go(): Task[] {
    const going: Task[] = []
    for (const instruction of this.engine.decide(++this.now)) {
      if (instruction.type === 'start' || instruction.type === 'resume') going.push(instruction.task)
      else this.said.push(instruction)
    }
    return going
  }

  /** Names of what begins now, in order. */
  names(): string[] {
    return this.go().map(task => task.kind.name)
  }

  finish(task: Task, took = 10): void {
    for (const { write } of task.accesses) if (write) write.value = task.name
    this.engine.started(task, this.now)
    this.engine.finished(task, ++this.now, took)
  }

  fail(task: Task, message = 'it broke'): Error {
    const error = new Error(message)
    this.engine.failed(task, { name: 'Error', message }, error, ++this.now)
    return error
  }

  /** Runs everything to its end, first started first; returns the names in order of ending. */
  drain(took = 10): string[] {
    const ended: string[] = []
    const running: Task[] = this.go()
    for (let task = running.shift(); task; task = running.shift()) {
      if (task.state !== 'running') continue
      this.finish(task, took)
      ended.push(task.kind.name)
      running.push(...this.go())
    }
    return ended
  }

  discarded(): Version[] {
    return this.said.flatMap(one => (one.type === 'discard' ? [one.version] : []))
  }

  stops(): Task[] {
    return this.said.flatMap(one => (one.type === 'stop' ? [one.task] : []))
  }

  settled(): Version[] {
    return this.said.flatMap(one => (one.type === 'settled' ? [one.version] : []))
  }

  /** Types of the events of a task. */
  story(task: Task): string[] {
    return this.events.flatMap(event => ('task' in event && event.task === task.id ? [event.type] : []))
  }

  assertIdle(): void {
    for (const node of this.engine.nodes) {
      assert.equal(node.freeLanes, node.cpus)
      assert.equal(node.freeMemory, node.memory)
      assert.equal(node.claims, 0)
    }
    assert.equal(this.engine.readyCount, 0)
    assert.equal(this.engine.root.live, 0)
  }
}

export const fails =
  (code: ErrorCode, ...texts: (string | RegExp)[]) =>
  (error: unknown): boolean => {
    assert(error instanceof MillraceError, String(error))
    assert.equal(error.code, code)
    for (const text of texts) assert.match(error.message, typeof text === 'string' ? new RegExp(text) : text)
    return true
  }
