import type { Engine, Instruction } from '../core/engine.ts'
import type { Task } from '../core/tasks/task.ts'
import type { ReturnWhy } from '../core/why.ts'
import type { NodeFiles } from '../node/files/node-files.ts'
import type { TaskNode } from '../node/node.ts'
import type { Watchdog } from '../node/processes/watchdog.ts'
import type { Channels } from './channels.ts'
import type { RunNodes } from './run-nodes.ts'
import type { LargeValues } from './large-values.ts'
import type { Nested } from './nested.ts'
import type { Keeper } from './resume/keeper.ts'
import { StandstillWatch } from './standstill-watch.ts'
import { Ticker } from './ticker.ts'
import type { Waits } from './waits.ts'

/** A run that is older than this many milliseconds has a watchdog that cleans up after it, should it be killed. */
const GUARDED_FROM = 250

const RESOLVED = Promise.resolve()

/** What the loop drives. */
export interface LoopParts {
  readonly engine: Pick<Engine, 'decide' | 'root' | 'readyCount' | 'taskCount' | 'io' | 'looks' | 'control'>
  readonly nodes: Pick<RunNodes, 'all' | 'of'>
  readonly files: Pick<NodeFiles, 'discard'> & {
    readonly devices: Pick<NodeFiles['devices'], 'any' | 'sample' | 'look' | 'move'>
  }
  readonly largeValues: Pick<LargeValues, 'dropped'>
  readonly nested: Pick<Nested, 'resume' | 'cancelCalled'>
  readonly channels: Pick<Channels, 'any' | 'look' | 'isAwaited'>
  readonly waits: Pick<Waits, 'any' | 'wake'>
  readonly watchdog: Pick<Watchdog, 'start'>
  now(): number
  /** Null where no results are kept. */
  keeper(): Pick<Keeper, 'starting' | 'look'> | null
}

/** Asks the core what to do, and passes it on to nodes, files and waiters. */
export class Loop {
  readonly #parts: LoopParts
  readonly #ticker = new Ticker(() => this.#tick())
  readonly #standstill: StandstillWatch
  #isProgramOver = false
  #scheduled = false
  #deciding = false

  constructor(parts: LoopParts) {
    this.#parts = parts
    this.#standstill = new StandstillWatch(parts.engine, this, () => parts.now())
  }

  /** Decides once the current step of the program has ended. */
  schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    // Half the price of queueMicrotask, which makes a resource for async_hooks each time.
    void RESOLVED.then(this.#decideNow)
  }

  readonly #decideNow = (): void => {
    this.#scheduled = false
    this.decide()
  }

  /** Carries out what the core decides until there is nothing more to do at once. */
  decide(): void {
    if (this.#deciding) return
    const { engine, nodes, channels } = this.#parts
    this.#deciding = true
    try {
      for (;;) {
        const instructions = engine.decide(this.#parts.now())
        if (instructions.length === 0) break
        for (const instruction of instructions) this.#carryOut(instruction)
      }
    } finally {
      this.#deciding = false
    }
    for (const node of nodes.all) node.flush()
    // A program that only has a generator which is held, and takes no value, is at its end.
    const isHeld = channels.any && channels.look() && !this.isAwaited
    this.#ticker.keepAlive(engine.root.live > 0 && !isHeld)
    if (engine.readyCount > 0) this.#standstill.look(this.#isProgramOver)
  }

  /** No task runs or could start: the program, or a value that is taken, has to come first. */
  get isAtRest(): boolean {
    const { engine, nodes } = this.#parts
    return engine.readyCount === 0 && engine.looks.count === 0 && nodes.all.every(node => node.isAtRest)
  }

  /** The program, or a task, waits for a task. */
  get isAwaited(): boolean {
    return this.#parts.waits.any || this.#parts.channels.isAwaited
  }

  programEnded(): void {
    this.#isProgramOver = true
  }

  end(): void {
    this.#ticker.keepAlive(false)
  }

  #tick(): boolean {
    const { files, watchdog, nodes } = this.#parts
    // Tasks may start processes of their own; a run that is over soon needs no watchdog.
    if (this.#parts.now() > GUARDED_FROM) watchdog.start()
    let isSoon = files.devices.any
    for (const node of nodes.all) if (node.tick()) isSoon = true
    files.devices.sample()
    files.devices.look()
    this.decide()
    return isSoon
  }

  #carryOut(instruction: Instruction): void {
    const { files, largeValues, nested, nodes, waits } = this.#parts
    switch (instruction.type) {
      case 'start':
        this.#parts.keeper()?.starting(instruction.task)
        return (nodes.all[instruction.task.node] as TaskNode).start(instruction.task)
      case 'look':
        return this.#parts.keeper()?.look(instruction.task)
      case 'resume':
        return nested.resume(instruction.task)
      case 'stop':
        nested.cancelCalled(instruction.task)
        return nodes.of(instruction.task).stop(instruction.task)
      case 'recall':
        return this.#recall(instruction.tasks, instruction.why)
      case 'discard':
        if (instruction.version.readers === 0 && instruction.version.obsolete) {
          largeValues.dropped(instruction.version)
          files.discard(instruction.version)
        }
        return
      case 'move':
        return files.devices.move(instruction.move)
      case 'pace':
        // What moves looks at the rate all the time.
        return
      case 'settled':
      case 'unread':
      case 'idle':
        return waits.wake(instruction)
    }
  }

  #recall(tasks: readonly Task[], why: ReturnWhy): void {
    for (const [index, node] of this.#parts.nodes.all.entries()) {
      const own = tasks.filter(task => task.node === index)
      if (own.length > 0) node.recall(own, why)
    }
  }
}
