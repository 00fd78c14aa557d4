import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { append } from '../../general/append.ts'
import { parameters } from '../../flow/language/params.ts'
import { OutputCache } from '../../flow/run/cache.ts'
import type { StatPrefetch } from '../../flow/state/file-table.ts'
import { Planner } from '../../flow/plan/planner.ts'
import type { Force, Plan } from '../../flow/plan/planner.ts'
import type { Registry, Target } from '../../flow/language/registry.ts'
import { FlowState } from '../../flow/run/run-state.ts'
import { State } from '../../flow/state/state.ts'
import { touchAll } from '../../flow/run/touch.ts'
import { TempFiles } from '../../flow/run/temp-files.ts'
import { NO_FILE } from '../../flow/plan/work.ts'
import type { Work } from '../../flow/plan/work.ts'
import { isError, messageOf, nameOf } from '../../general/thrown.ts'
import { CancelledError } from '../../model/errors.ts'
import { mapAtOnce } from '../../general/at-once.ts'
import { placesOf } from '../../general/places.ts'
import type { FlowTasks } from './tasks.ts'

export interface FlowOptions {
  /** The folder of the workflow, which is the working directory. */
  readonly root: string
  /** What to do with what is not up to date: run it, only say so, or take it as it is. */
  readonly mode: 'run' | 'dry' | 'touch'
  readonly force: Force
  readonly keepGoing: boolean
  /** Tasks that are up to date may be forgotten. */
  readonly lean?: boolean
  /** A folder that keeps outputs by what they were made of. */
  readonly cache?: string | null
  /** Called with work before it is begun, in the order in which it could be done. */
  onPlan?(works: readonly Work[], run: FlowRun): void
}

/** A function of a target cannot go on in a dry run, because what it waits for is not made. */
class DryEnd extends Error {}

/** One `millrace make`: plans, hands over what is to be done, and starts the runtime only when there is something. */
export class FlowRun {
  readonly state: State
  readonly planner: Planner
  readonly flow: FlowState
  /** All that was not up to date, in the order in which it was found. */
  readonly planned: Work[] = []
  /** Targets whose functions could not go on in a dry run. */
  readonly openEnds: string[] = []
  readonly #registry: Registry
  readonly #options: FlowOptions
  readonly #temps: TempFiles
  readonly #running = new Map<Work, Promise<void>>()
  readonly #targets = new Map<Target, Promise<void>>()
  /** For which targets the function of a target has waited. */
  readonly #waits = new Map<Target, Set<Target>>()
  #tasks: Promise<FlowTasks> | null = null
  #ahead: StatPrefetch | null
  #end: ((failure: unknown) => void) | null = null
  #ended: Promise<void> | null = null

  constructor(registry: Registry, options: FlowOptions, ahead: StatPrefetch | null = null) {
    this.#registry = registry
    this.#options = options
    this.state = new State(resolve(options.root, '.millrace'))
    this.#ahead = ahead
    this.state.files.ahead = ahead
    this.planner = new Planner(registry, this.state.files, this.state.records, {
      force: options.force,
      lean: options.lean ?? false,
    })
    const cache = options.cache ? new OutputCache(options.cache, options.root, this.state.files) : null
    this.flow = new FlowState(options.root, this.state, this.planner, cache)
    this.#temps = new TempFiles(this.state.files, this.planner.makers)
  }

  /** Makes targets and files. Failures are shown by the runtime where it has been started, else thrown. */
  async make(names: readonly string[]): Promise<void> {
    let failure: unknown = null
    try {
      await this.#need(names, new Set())
      if (this.#options.mode === 'run') await this.#removeTemps(this.#temps.leftOver(this.#registry))
    } catch (error) {
      failure = error
    }
    // What others have begun goes on to its end.
    await Promise.allSettled(this.#running.values())
    this.#end?.(failure)
    await this.#ended
    this.#stopLooking()
    this.flow.close()
    if (this.#options.mode === 'run') this.flow.settle()
    if (this.#options.mode !== 'dry') this.state.tidy()
    this.state.close()
    if (failure !== null && !this.#ended) throw failure
  }

  /** What was not made is made of these: to change one of them may help. */
  openSources(): string[] {
    const { files } = this.state
    const sources = new Set<number>()
    for (const { state, inputs } of this.planned) {
      if (state === 'done') continue
      for (const input of inputs) if (input !== NO_FILE && !this.planner.makers.of(input)) sources.add(input)
    }
    return [...sources].map(file => resolve(this.#options.root, files.path(file)))
  }

  /** `held`: temporary files that stay as long as the target that asked for them runs. */
  async #need(names: readonly string[], held: Set<number>, asker: Target | null = null): Promise<void> {
    const { files, bodies } = this.#registry.resolve(names)
    const waits = bodies.map(target => this.#runBody(target, asker))
    if (files.length > 0) waits.push(this.#makeFiles(files, held))
    await settleAll(waits)
  }

  /** With --keep-going, what cannot be planned does not keep others from being made. */
  async #makeEach(paths: readonly string[], held: Set<number>, why: unknown): Promise<void> {
    if (!this.#options.keepGoing || paths.length < 2) throw why
    await settleAll(paths.map(path => this.#makeFiles([path], held)))
    throw why
  }

  #runBody(target: Target, asker: Target | null): Promise<void> {
    if (asker) this.#checkWait(asker, target)
    let running = this.#targets.get(target)
    if (!running) this.#targets.set(target, (running = this.#callBody(target)))
    return running
  }

  /** Functions that wait for each other would do so for ever. */
  #checkWait(asker: Target, target: Target): void {
    const waits = this.#waits.get(asker) ?? new Set()
    this.#waits.set(asker, waits.add(target))
    const reached = new Set([target])
    for (const one of reached) for (const next of this.#waits.get(one) ?? []) reached.add(next)
    if (!reached.has(asker)) return
    const through = target === asker ? '' : ` by way of ${target.name}`
    throw new MillraceError(
      'MR_FLOW_CYCLE',
      `target ${asker.name} needs itself${through} (target at ${asker.site})`,
    )
  }

  async #callBody(target: Target): Promise<void> {
    // So that it is known to be running before it asks for anything.
    await Promise.resolve()
    const held = new Set<number>()
    const need = async (wanted: string | readonly string[]): Promise<string[]> => {
      const list = [wanted].flat()
      const before = this.planned.length
      await this.#need(list, held, target)
      if (this.#options.mode === 'dry' && this.planned.length > before) throw new DryEnd()
      return list
    }
    try {
      await target.body?.({ need, params: parameters })
    } catch (error) {
      if (!(error instanceof DryEnd)) throw targetFailure(target, error)
      this.openEnds.push(target.name)
    }
    await this.#removeTemps(this.#temps.release(held))
  }

  async #makeFiles(paths: readonly string[], held: Set<number>): Promise<void> {
    let plan: Plan
    try {
      plan = await this.#plan(paths)
    } catch (error) {
      return this.#makeEach(paths, held, error)
    }
    const { todo, goals } = plan
    if (this.#registry.rules.some(rule => rule.hasTemps)) {
      for (const goal of goals) this.#temps.hold(goal, held)
    }
    if (todo.length > 0) {
      append(this.planned, todo)
      this.#options.onPlan?.(todo, this)
      await this.#handOver(todo)
    }
    if (this.#running.size === 0) return
    const waits = new Set<Promise<void>>()
    for (const goal of goals) {
      const work = this.planner.makers.of(goal)
      const running = work && this.#running.get(work)
      if (running) waits.add(running)
    }
    await settleAll([...waits])
  }

  async #plan(paths: readonly string[]): Promise<Plan> {
    for (;;) {
      const plan = this.planner.plan(paths)
      if (plan.doubts.length === 0) return plan
      await this.flow.settleDoubts(plan.doubts)
    }
  }

  /** What was seen before the first task ran may not be so any more. */
  #stopLooking(): void {
    this.state.files.ahead = null
    this.#ahead?.stop()
    this.#ahead = null
  }

  async #handOver(todo: readonly Work[]): Promise<void> {
    this.#stopLooking()
    if (this.#options.mode === 'dry') return
    if (this.#options.mode === 'touch') {
      await mapAtOnce(16, touchAll(todo, this.state.files, this.state), async work => {
        if (await this.flow.accept(work)) work.state = 'done'
      })
      return
    }
    // No other plan may use these before they are marked.
    for (const work of todo) {
      work.wasMaybe = work.state === 'maybe'
      work.state = 'running'
      this.#temps.willRead(work)
    }
    this.state.open()
    this.flow.expect(todo.length)
    const tasks = (this.#tasks ??= this.#startRuntime())
    for (const work of todo) {
      const running = tasks
        .then(started => started.run(work))
        .then(
          () => this.#done(work),
          (error: unknown) => {
            work.state = 'failed'
            throw error
          },
        )
      running.catch(() => undefined)
      this.#running.set(work, running)
    }
    await tasks
  }

  async #done(work: Work): Promise<void> {
    work.state = 'done'
    this.#running.delete(work)
    await this.#removeTemps(this.#temps.hasRead(work))
  }

  async #removeTemps(gone: readonly number[]): Promise<void> {
    const tasks = await this.#tasks
    for (const file of gone) {
      if (tasks) await tasks.remove(file)
      else await rm(this.state.files.path(file), { recursive: true, force: true })
    }
  }

  /** The runtime's main goes on until this run has ended. It is loaded only where there is something to do. */
  async #startRuntime(): Promise<FlowTasks> {
    const failed = new Promise<unknown>(settle => (this.#end = settle))
    const { startTasks } = await import('./start.ts')
    return new Promise(started => {
      this.#ended = startTasks(this.flow, this.#options.keepGoing, async tasks => {
        started(tasks)
        const failure = await failed
        if (failure !== null) throw failure
      })
    })
  }
}

/** What our own parts say speaks for itself; anything else is a mistake in the function. */
function targetFailure({ name, site }: Target, error: unknown): unknown {
  if ((error as { code?: unknown } | null)?.code?.toString().startsWith('MR_')) return error
  const kind = isError(error) ? `${nameOf(error)}: ` : ''
  const where = placesOf(error).join('\n')
  return new MillraceError(
    'MR_FLOW_TARGET',
    `the function of target ${name} (${site}) failed: ${kind}${messageOf(error)}${where && `\n${where}`}`,
    { cause: error },
  )
}

/** All have ended; then the failure that explains most is thrown. */
async function settleAll(waits: readonly Promise<void>[]): Promise<void> {
  const failures: unknown[] = []
  for (const outcome of await Promise.allSettled(waits)) {
    if (outcome.status === 'rejected') failures.push(outcome.reason)
  }
  if (failures.length === 0) return
  const isFirstHand = (error: unknown): boolean =>
    !(error instanceof CancelledError) && !(error instanceof MillraceError && error.code === 'MR_CANCELLED')
  throw failures.find(isFirstHand) ?? failures[0]
}
