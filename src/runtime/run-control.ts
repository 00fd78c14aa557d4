import type { ControlAction } from '../core/events.ts'
import type { Task } from '../core/tasks/task.ts'
import { controlText } from '../report/control-text.ts'
import type { ControlAnswer, ControlOrder } from '../report/dashboard/protocol.ts'
import type { Runtime } from './runtime.ts'

/** What it uses of the runtime. */
type Uses = Pick<Runtime, 'engine' | 'now' | 'schedule'>

/** Carries out what people ask on the live page, and writes down who did it. */
export class RunControl {
  readonly #runtime: Uses
  readonly #stop: () => void

  /** `stop` does what Ctrl-C does. */
  constructor(runtime: Uses, stop: () => void) {
    this.#runtime = runtime
    this.#stop = stop
  }

  carryOut(order: ControlOrder): ControlAnswer {
    const { action, by, priority } = order
    const { control } = this.#runtime.engine
    switch (action) {
      case 'pause':
      case 'go-on': {
        const isPaused = action === 'pause'
        if (control.isPaused === isPaused)
          return { problem: isPaused ? 'The run is paused already.' : 'The run is not paused.' }
        control.isPaused = isPaused
        this.#runtime.schedule()
        return this.#tell({ action, by })
      }
      case 'stop': {
        if (this.#runtime.engine.isClosed) return { problem: 'The run is being stopped already.' }
        const answer = this.#tell({ action, by })
        // What is paused could not come to an end.
        control.isPaused = false
        this.#stop()
        return answer
      }
      case 'cancel':
      case 'priority': {
        const task = control.find(order.task ?? -1)
        if (task === null) return { problem: `Task ${order.task} has ended, or was never there.` }
        return action === 'cancel' ? this.#cancel(task, by) : this.#prioritize(task, order, priority ?? 0)
      }
    }
  }

  /** The page is gone: what is paused would stay so for ever. */
  pageGone(): void {
    if (!this.#runtime.engine.control.isPaused) return
    this.carryOut({ action: 'go-on', by: 'the end of the page' })
  }

  #cancel(task: Task, by: string): ControlAnswer {
    const answer = this.#tell({ action: 'cancel', by, task: task.id, what: task.title })
    this.#runtime.engine.cancelTask(task, null, { kind: 'person', by }, this.#runtime.now())
    this.#runtime.schedule()
    return answer
  }

  #prioritize(task: Task, { by, isForKind = false }: ControlOrder, priority: number): ControlAnswer {
    const count = this.#runtime.engine.control.prioritize(task, isForKind, priority)
    this.#runtime.schedule()
    if (count === 0) return { problem: `${task.title} has begun: its priority does not matter any more.` }
    const whom = isForKind ? { what: task.kind.name, count } : { what: task.title }
    return this.#tell({ action: 'priority', by, task: task.id, priority, ...whom })
  }

  #tell(facts: {
    action: ControlAction
    by: string
    task?: number
    what?: string
    count?: number
    priority?: number
  }): ControlAnswer {
    const event = { type: 'control', at: this.#runtime.now(), ...facts } as const
    this.#runtime.engine.observer?.(event)
    return { done: controlText(event) }
  }
}
