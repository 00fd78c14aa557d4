import type { NodeDescription, Node } from '../core/schedule/machine.ts'
import type { Form } from '../core/tasks/form.ts'
import type { Task } from '../core/tasks/task.ts'
import { formsInUse } from '../model/definition.ts'
import { jobOf } from '../node/job.ts'
import { LocalNode } from '../node/local-node.ts'
import type { AgentEvents, NodePorts, RunParts } from '../node/local-node.ts'
import { UseMeter } from '../node/machine-use.ts'
import type { MachineUse } from '../node/machine-use.ts'
import type { TaskNode } from '../node/node.ts'
import { Processes } from '../node/processes/processes.ts'
import { localThreads } from '../node/threads/local-threads.ts'
import { NodeSink } from './node-sink.ts'
import type { Runtime } from './runtime.ts'
import type { RuntimeOptions } from './runtime-options.ts'

/** The nodes of a run, by the numbers that the core gives them. */
export class RunNodes {
  readonly all: TaskNode[] = []
  readonly #runtime: Runtime
  readonly #parts: RunParts
  /** What measures each node. */
  readonly #meters: ((isWanted: boolean) => void)[] = []
  #isMeasured = false

  constructor(runtime: Runtime, parts: Omit<RunParts, 'ranks'>) {
    this.#runtime = runtime
    this.#parts = { ...parts, ranks: [] }
  }

  /** Those that the core has known from the start. */
  begin({ nodes, logs, entry }: RuntimeOptions): void {
    const runtime = this.#runtime
    const { run } = this.#parts
    for (const { description, ports } of nodes) {
      const own = (): NodePorts => ({
        openThread: localThreads({ run, logs, entry, startedAt: runtime.startedAt }),
        processes: new Processes(text => runtime.note('warning', text)),
      })
      this.#make(description, ports ?? own())
    }
  }

  /** A node takes part from now on. Returns its number. */
  join(description: NodeDescription, ports: NodePorts): number {
    const { engine } = this.#runtime
    const { index, name, cpus, memory } = engine.membership.joined(description)
    const node = this.#make(description, ports)
    void node.warmUp(formsInUse())
    engine.observer?.({ type: 'node-joined', at: this.#runtime.now(), node: index, name, cpus, memory })
    this.#runtime.schedule()
    return index
  }

  /** Whether a live page is open, which shows how loaded the machines are. */
  measure(isWanted: boolean): void {
    if (this.#isMeasured === isWanted) return
    this.#isMeasured = isWanted
    for (const want of this.#meters) want(isWanted)
  }

  /** The node that a task was started on. */
  of(task: Task): TaskNode {
    return this.all[jobOf(task).attempt?.node ?? task.node] as TaskNode
  }

  /** Starts ahead what the first tasks will need; gives what is worth waiting for. */
  warmUp(forms: ReadonlySet<Form>): Promise<void> | null {
    const starts = this.all.map(node => node.warmUp(forms)).filter(start => start !== null)
    return starts.length > 0 ? Promise.all(starts).then(() => undefined) : null
  }

  #make(description: NodeDescription, ports: NodePorts): TaskNode {
    const index = this.all.length
    ports.attach?.(this.#agentEvents(index, description.name))
    const meter = ports.attach ? null : new UseMeter(use => this.#measured(index, use))
    const want = (isWanted: boolean): void => (meter ? meter.want(isWanted) : ports.measure?.(isWanted))
    this.#meters.push(want)
    if (this.#isMeasured) want(true)
    const machine = this.#runtime.engine.nodes[index] as Node
    const events = new NodeSink(this.#runtime, index)
    const node = new LocalNode(this.#parts, { machine, description, events, ...ports })
    this.all.push(node)
    return node
  }

  #measured(node: number, use: MachineUse): void {
    const runtime = this.#runtime
    runtime.engine.observer?.({ type: 'measured', at: runtime.now(), node, ...use })
  }

  #agentEvents(index: number, name: string): AgentEvents {
    const runtime = this.#runtime
    return {
      note: text => runtime.note('warning', `node ${name}: ${text}`),
      measured: use => this.#measured(index, use),
      gone: (reason, isLost) => {
        const { engine } = runtime
        if (isLost)
          runtime.note('warning', `node ${name} was lost: ${reason}; its tasks begin again on others`)
        engine.observer?.({ type: 'node-left', at: runtime.now(), node: index, isLost, reason })
        engine.membership.lost(index, runtime.now())
        runtime.lineage.lost(name)
        runtime.schedule()
      },
    }
  }
}
