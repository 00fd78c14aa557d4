import { Engine } from '../../src/core/engine.ts'
import type { Node } from '../../src/core/schedule/machine.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'
import type { Form } from '../../src/core/tasks/form.ts'
import { Implementation } from '../../src/core/tasks/task.ts'
import type { Kind, Task } from '../../src/core/tasks/task.ts'
import type { Definition } from '../../src/model/definition.ts'
import { NodeFiles } from '../../src/node/files/node-files.ts'
import { Job } from '../../src/node/job.ts'
import { LocalNode } from '../../src/node/local-node.ts'
import type { NodePorts } from '../../src/node/local-node.ts'
import type { NodeEvents, NodeHost } from '../../src/node/node.ts'
import type { CommandRequest, ProcessEnd } from '../../src/node/processes/command-process.ts'
import type { Watchdog } from '../../src/node/processes/watchdog.ts'
import { BufferOwnership } from '../../src/node/threads/buffer-ownership.ts'
import type { LaneThread, LaneThreadEvents } from '../../src/node/threads/lane-thread.ts'
import { TaskModules } from '../../src/node/threads/modules.ts'

/** A thread that does nothing: it keeps what it is sent until it is asked back or ends. */
export class FakeThread {
  readonly isReady = true
  readonly isStillborn = false
  readonly largest = 1 << 20
  readonly messages = 0
  readonly began = 0
  readonly sent: number[] = []
  /** Positions that were taken, and cannot be had back. */
  readonly taken = new Set<number>()
  isKilled = false
  /** It ends some time after it is stopped, when the test says so. */
  endsLater = false
  isCutOff = false
  readonly events: LaneThreadEvents

  constructor(events: LaneThreadEvents) {
    this.events = events
  }

  sendRecord(): number {
    this.sent.push(this.sent.length)
    return this.sent.length - 1
  }
  revoke(position: number): boolean {
    return !this.taken.has(position)
  }
  isTaken(position: number): boolean {
    return this.taken.has(position)
  }
  kill(reason: string): void {
    this.isKilled = true
    if (!this.endsLater) this.events.ended(reason)
  }
  whenReady(go: () => void): void {
    go()
  }
  sendCounted(): void {}
  send(): void {}
  announce(): void {}
  drain(): void {}
  hurry(): boolean {
    return false
  }
  checkAlive(): void {}
  end(): Promise<void> {
    return Promise.resolve()
  }
}

export interface FakeProgram {
  readonly request: CommandRequest
  readonly end: ProcessEnd
  isStopped: boolean
}

/** Threads and programs that do nothing, for a node. */
export function fakePorts() {
  const threads: FakeThread[] = []
  const programs: FakeProgram[] = []
  const ports: NodePorts = {
    openThread: (_lane, _io, threadEvents) => {
      const thread = new FakeThread(threadEvents)
      threads.push(thread)
      return thread as unknown as LaneThread
    },
    processes: {
      hasLanes: true,
      start: () => null,
      create: () => {
        let program: FakeProgram | null = null
        return {
          start: (request, end) => void programs.push((program = { request, end, isStopped: false })),
          stop: () => {
            if (program) program.isStopped = true
          },
          callBack: () => undefined,
        }
      },
      drain: () => undefined,
      flush: () => undefined,
      suspect: () => undefined,
      end: () => undefined,
    },
  }
  return { threads, programs, ports }
}

/** A task without parameters: a program, or a function that does nothing. */
export function fakeDefinition(form: Form): Definition {
  const run = form === 'command' ? () => ['true'] : () => undefined
  const command = form === 'command' ? { limits: null } : null
  const variants = [{ name: form, module: '', options: {}, run }]
  const facts = { key: form, module: 'fake', name: form, form, returns: 0, stream: null, timeout: 0 }
  const takes = { params: null, readsOnly: true, kind: null }
  return { ...facts, ...takes, options: {}, variants, command } as unknown as Definition
}

/** A node whose threads and programs are fakes, and whose events are written down. */
export function fakeNode(cpus = 1) {
  const description = { name: 'fake', cpus, memory: 0, tags: [] }
  const engine = new Engine({ nodes: [description] })
  const { threads, programs, ports } = fakePorts()
  const log: string[] = []
  const givenUp: Task[] = []
  let now = 0
  const events: NodeEvents = {
    began: (task, at) => void log.push(`began ${task.id} at ${at}`),
    released: task => void log.push(`released ${task.id}`),
    committed: task => void log.push(`committed ${task.id}`),
    flows: task => void log.push(`flows ${task.id}`),
    finished: (task, { took }) => void log.push(`finished ${task.id} in ${took}`),
    failed: (task, { facts }) => void log.push(`failed ${task.id}: ${facts.code}`),
    returned: (task, why) => void log.push(`returned ${task.id}: ${why.kind}`),
    kept: () => void log.push('kept'),
    stopped: task => void log.push(`stopped ${task.id}`),
    said: task => void log.push(`said ${task.id}`),
    travels: task => void log.push(`travels ${task.id}`),
    givenUp: task => void givenUp.push(task),
    laneSilent: () => false,
    died: (lane, reason) => void log.push(`died ${lane}: ${reason}`),
    note: (_level, text) => void log.push(text),
    changed: () => undefined,
  }
  const host: NodeHost = {
    now: () => ++now,
    timeOf: moment => moment,
    filesMade: () => null,
    afterFailure: task => engine.afterFailure(task),
    afterLoss: (task, lostWith, culprit) => engine.afterLoss(task, lostWith, culprit),
    lastAttempt: task => engine.lastAttempt(task),
    staysFrom: () => 0,
    filesStay: () => false,
    here: () => Promise.resolve(),
    want: () => undefined,
    earlyStart: () => null,
    taskCount: 0,
    dataInside: () => [],
    remove: () => undefined,
    settled: () => Promise.resolve(),
    unread: () => Promise.resolve(),
  }
  const watchdog = { start() {}, suspect() {}, folder() {} } as unknown as Watchdog
  const files = new NodeFiles({ run: 'fake', engine, watchdog, host, events, abort: () => undefined })
  const shared = {
    run: 'fake',
    logs: null,
    bind: { mode: 'off' as const, hyperThreads: true },
    stepTimes: 'off' as const,
    host,
    files,
    watchdog,
    ranks: [],
  }
  const node = new LocalNode(
    { ...shared, buffers: new BufferOwnership(), modules: new TaskModules() },
    {
      machine: engine.nodes[0] as Node,
      description,
      events,
      ...ports,
    },
  )
  const kinds = new Map<string, Kind>()
  const kindOf = (form: Form): Kind => {
    const known = kinds.get(form)
    if (known) return known
    const implementations = [new Implementation(form)]
    const kind: Kind = { id: kinds.size + 1, name: form, form, module: 'fake', implementations }
    kinds.set(form, kind)
    return kind
  }
  /** Submits a task and has it started by the engine's decision. */
  const start = (form: Form, retries = 0): Task => {
    const payload = new Job(fakeDefinition(form), [], [], { unhandled: new Set() })
    const task = engine.submit(
      { kind: kindOf(form), group: engine.root, demand: demandOf(1, 0, []), retries, payload },
      [],
      now,
    )
    for (const one of engine.decide(now)) if (one.type === 'start') node.start(one.task)
    node.flush()
    return task
  }
  return { node, engine, threads, programs, log, givenUp, start }
}
