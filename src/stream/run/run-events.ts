import { hostname } from 'node:os'
import type { Observer, Outcome, RunEvent } from '../../core/events.ts'
import type { Plan } from '../board/plan.ts'
import type { Snapshot } from '../board/snapshot.ts'
import type { Instance } from './runner.ts'

/** What a run of streams is called in its journal. */
export interface StreamRunFacts {
  run: string
  version: string
  program: string
  again: string
}

/** Tells a run of streams in the events of all runs: a step is a task, and each file is told whenever it has changed. */
export class RunEvents {
  readonly #observer: Observer
  readonly #begun: number
  readonly #told = new Map<string, string>()
  #instances: readonly Instance[] = []

  constructor(observer: Observer, begun: number) {
    this.#observer = observer
    this.#begun = begun
  }

  begin(facts: StreamRunFacts, plan: Plan, instances: readonly Instance[]): void {
    this.#instances = instances
    const { run, version, program, again } = facts
    this.#observer({
      type: 'run-started',
      at: 0,
      run,
      version,
      wallTime: new Date(this.#begun).toISOString(),
      program,
      args: [],
      again,
      cwd: process.cwd(),
      pid: process.pid,
      // Every step runs at once: each has a lane.
      nodes: [{ name: hostname(), cpus: instances.length, memory: 0 }],
      policy: 'streams',
      simulated: false,
    })
    const kinds = new Map(plan.steps.map(({ name }, i) => [name, i + 1]))
    for (const [name, kind] of kinds)
      this.#observer({ type: 'kind-defined', at: 0, kind, name, form: 'command', module: program })
    instances.forEach(({ step, started }, lane) => {
      const task = lane + 1
      const at = Math.max(0, started - this.#begun)
      const rest = { parent: null, group: null, priority: 0, reads: [], writes: [] }
      this.#observer({ type: 'submitted', at, task, kind: kinds.get(step) ?? 0, ...rest })
      this.#observer({ type: 'ready', at, task })
      this.#observer({ type: 'started', at, task, attempt: 1, node: 0, lane, cpus: 1 })
    })
  }

  ended(instance: Instance): void {
    const task = this.#instances.indexOf(instance) + 1
    if (task === 0) return
    const at = this.#now()
    if (instance.code === 0) return this.#observer({ type: 'finished', at, task, attempt: 1 })
    const exitCode = instance.code ?? -1
    const failure = {
      name: 'ExitError',
      message: `${instance.step} ended with exit code ${exitCode}`,
      exitCode,
      command: instance.command,
      tail: instance.tail.join('\n'),
    }
    this.#observer({ type: 'failed', at, task, attempt: 1, failure, next: 'cancelSuccessors' })
  }

  look(snapshot: Snapshot): void {
    for (const { kind, path, state, written, size, producers } of snapshot.files) {
      if (kind !== 'file') continue
      const waits = snapshot.waits.filter(wait => wait.path === path)
      const readers = waits.map(({ step, sentence }) => ({ name: step ?? 'a process', waits: sentence }))
      const stream: RunEvent = {
        type: 'stream',
        at: this.#now(),
        path,
        state,
        bytes: size ?? written ?? 0,
        producers,
        readers,
      }
      const text = JSON.stringify({ ...stream, at: 0 })
      if (this.#told.get(path) === text) continue
      this.#told.set(path, text)
      this.#observer(stream)
    }
  }

  end(outcome: Outcome): void {
    this.#observer({ type: 'run-ended', at: this.#now(), outcome })
  }

  #now(): number {
    return Math.max(0, Date.now() - this.#begun)
  }
}
