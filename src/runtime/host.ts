import { printable } from '../report/text.ts'
import { fieldOf, isError, messageOf, nameOf, textFieldOf } from '../general/thrown.ts'
import { pathToFileURL } from 'node:url'
import { MillraceError } from '../core/errors.ts'
import type { Observer, Outcome, RunEvent } from '../core/events.ts'
import { deviceFacts, ioFacts } from '../core/io/facts.ts'
import { fifo, findPolicy } from '../core/schedule/policy.ts'
import type { Policy } from '../core/schedule/policy.ts'
import { stepTimesOf } from '../node/steps.ts'
import { TaskModules } from '../node/threads/modules.ts'
import type { Client, Host } from '../model/client.ts'
import { formsInUse, taskModules } from '../model/definition.ts'
import { TaskError, CancelledError } from '../model/errors.ts'
import { placesOf } from '../general/places.ts'
import { ArgumentNotes } from './argument-notes.ts'
import { isPolicyFile, launchedPolicy, loadPolicyFile } from './policy-file.ts'
import type { EventHandlers } from './observers.ts'
import { Reporting } from './reporting.ts'
import { bindSettings, describeNode, describedNode } from './describe-node.ts'
import { describedStorage, ioOptions, makeFolders } from './describe-storage.ts'
import { keepLearned, learnedBefore, measureUnknown } from './known-devices.ts'
import type { Remark } from './known-devices.ts'
import { RunControl } from './run-control.ts'
import { USAGE_CODES, optionsAreUsed, runOptions } from './run-options.ts'
import type { RunOptions } from './run-options.ts'
import { openKeeper, resumedBy } from './resume/open-keeper.ts'
import type { Resuming } from './resume/open-keeper.ts'
import { Runtime } from './runtime.ts'
import { recover } from '../storage/recover.ts'
import { cancelledError, taskError } from './failure.ts'
import { announce, runId, runStarted } from './run-start.ts'
import { startCluster } from './cluster-run.ts'
import type { ClusterRun } from './cluster-run.ts'

let suppliedPolicy: Policy | null = null

let usualPolicy = fifo

/** The policy of programs that set none. @internal */
export function preferPolicy(policy: Policy): void {
  usualPolicy = policy
}

/** Uses a policy of the program's own; to be called before the first task. */
export function usePolicy(policy: Policy): void {
  suppliedPolicy = policy
}

interface Run {
  runtime: Runtime
  reporting: Reporting
  options: RunOptions
  /** Resolves when programs can be started at once; null where there are none, or nothing to wait for. */
  warm: Promise<void> | null
  /** The agents, where there are several nodes. */
  clusterRun: ClusterRun | null
  /** The first event. */
  started: RunEvent
  /** The store of results, where they are kept. */
  resuming: Resuming | null
}

type Launched = Pick<Run, 'clusterRun'> & { readonly id: string }

function launchNodes(options: RunOptions): Launched {
  optionsAreUsed()
  const id = runId()
  return { id, clusterRun: startCluster(options, id) }
}

/** The embedded runtime: starts at the first call and ends with the last, or with `main`. @internal */
export class EmbeddedHost implements Host {
  #run: Run | null = null
  /** The name of the run, and its agents, which are started first. */
  #launched: Launched | null = null
  #interrupts = 0
  #hasMain = false
  /** The body of main has begun and not ended. */
  #isInMain = false
  #ending: Promise<void> | null = null
  /** What came up before there was a run to tell it. */
  #remarks: readonly Remark[] = []

  client(): Client {
    return this.#start().runtime
  }

  /** Adds an observer to the run, which begins now unless it goes on. */
  observe(observer: Observer | EventHandlers): () => void {
    const { runtime, reporting, started } = this.#start()
    const stop = reporting.program.add(observer, [started, ...runtime.engine.snapshot()])
    runtime.engine.observer = reporting.observer
    return stop
  }

  async main(body: () => unknown): Promise<void> {
    if (this.#hasMain) {
      throw new MillraceError('MR_OPTION', 'main was called twice', { hint: 'A program has one main.' })
    }
    this.#hasMain = true
    let failure: unknown
    let failed = false
    try {
      await afterLoading()
      await loadPolicy(runOptions())
      this.#remarks = await measureDevices(runOptions())
      if (!this.#run) {
        this.#launched = launchNodes(runOptions())
        if (this.#launched.clusterRun) await this.#launched.clusterRun.reach()
      }
      const { runtime, warm, clusterRun } = this.#start()
      await clusterRun?.ready
      // A program that calls a thousand commands in one go does not let us start anything meanwhile. Where
      // `millrace-spawn` has to be built first, it need not wait for that.
      const isWarm = warm && forAtMost(warm, 50)
      await Promise.all([this.#loadClasses(runtime), this.#prepareDevices(runtime), isWarm])
      this.#isInMain = true
      await body()
      this.#isInMain = false
      runtime.programEnded()
      await runtime.idle(runtime.main.group)
    } catch (error) {
      failure = error
      failed = true
    }
    await this.#end(failed, failure)
  }

  #start(): Run {
    if (this.#run) return this.#run
    const options = runOptions()
    optionsAreUsed()
    const reporting = new Reporting(options)
    const own = describeNode(options, describedNode(options))
    const { id, clusterRun } = (this.#launched ??= launchNodes(options))
    const nodes = clusterRun ? clusterRun.nodes(options) : [{ description: own, ports: null }]
    const storage = nodes.flatMap(({ description }) => description.storage ?? [])
    const hasStorage = nodes.some(({ description }) => description.storage !== undefined)
    const policy = policyOf(options)
    const io = ioOptions(options, storage.length)
    const runtime = new Runtime({
      id,
      nodes,
      mayGrow: clusterRun?.mayGrow ?? false,
      policy,
      io: {
        ...io,
        ...(hasStorage ? { learned: learnedBefore(options) } : {}),
      },
      logs: reporting.logs,
      bind: bindSettings(options),
      stepTimes: stepTimesOf(options.stepTimes),
      observer: reporting.observer,
      // Node itself passes prints of threads on to our streams, which a display may have diverted. Taking
      // them here would keep a program without main alive for ever.
      entry: process.argv[1] ? pathToFileURL(process.argv[1]).href : null,
    })
    if (clusterRun) {
      const entry = process.argv[1] ? pathToFileURL(process.argv[1]).href : null
      clusterRun.begin(runtime, { id, entry, logs: reporting.logs, startedAt: runtime.startedAt })
    }
    const warm = runtime.nodes.warmUp(formsInUse())
    const resuming = openKeeper(runtime, reporting.run, options)
    runtime.keeper = resuming?.keeper ?? null
    const descriptions = nodes.map(({ description }) => description)
    const program = { program: process.argv[1] ?? '', args: process.argv.slice(2) }
    const storageFacts = hasStorage
      ? { devices: deviceFacts(runtime.engine.io.devices), io: ioFacts(io) }
      : {}
    const started = runStarted(runtime, reporting, options, descriptions, policy, {
      ...program,
      ...storageFacts,
    })
    this.#run = { runtime, reporting, options, warm, clusterRun, started, resuming }
    if (options.dashboard === true)
      runtime.argumentNotes = new ArgumentNotes(event => runtime.engine.observer?.(event))
    reporting.measureBy(isWanted => runtime.measure(isWanted))
    if (options.control) reporting.controlBy(new RunControl(runtime, () => this.#onSignal('SIGINT')))
    announce(runtime, reporting, started)
    for (const text of resuming?.remarks ?? [])
      runtime.engine.observer?.({ type: 'note', at: runtime.now(), level: 'info', text })
    for (const remark of this.#remarks)
      runtime.engine.observer?.({ type: 'note', at: runtime.now(), ...remark })
    if (!this.#hasMain) {
      void this.#loadClasses(runtime)
      void this.#prepareDevices(runtime)
    }
    process.on('SIGINT', this.#onSignal)
    process.on('SIGTERM', this.#onSignal)
    process.on('beforeExit', this.#onBeforeExit)
    process.on('exit', this.#onExit)
    process.on('uncaughtExceptionMonitor', this.#onUncaught)
    return this.#run
  }

  /** Finds out which devices are there, and brings home what killed runs left on them. */
  async #prepareDevices(runtime: Runtime): Promise<void> {
    const { engine, files } = runtime
    const { devices } = engine.io
    if (devices.length === 0) return
    await files.devices.check()
    for (const { path, from, left } of await recover(devices.map(device => device.path))) {
      const text = left === null ? `${path}: brought from ${from}` : `${path} is left in ${from}: ${left}`
      const note = `a killed run left results. ${text}`
      engine.observer?.({
        type: 'note',
        at: runtime.now(),
        level: left === null ? 'info' : 'warning',
        text: note,
      })
    }
  }

  /** Classes that task modules export can cross between threads; here they are known already, or soon. */
  async #loadClasses(runtime: Runtime): Promise<void> {
    const entry = process.argv[1] ? pathToFileURL(process.argv[1]).href : null
    const loads = [...taskModules()].map(module => {
      const load = runtime.modules.load(module).catch(() => undefined)
      // A program that waits for main at its top level is not loaded until main ends.
      return module === entry ? forAtMost(load, 2000) : load
    })
    await Promise.all(loads)
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    const run = this.#run
    if (!run) return
    const { runtime } = run
    this.#interrupts++
    runtime.engine.observer?.({ type: 'interrupted', at: runtime.now(), signal, times: this.#interrupts })
    if (this.#interrupts > 1 || signal === 'SIGTERM') {
      process.exitCode = signal === 'SIGTERM' ? 143 : 130
      process.exit()
    }
    const { again } = run.options
    if (again) {
      const text = `to go on, start it again: ${run.resuming === null ? again : resumedBy(again)}`
      runtime.engine.observer?.({ type: 'note', at: runtime.now(), level: 'info', text })
    }
    runtime.close('interrupt')
    if (!this.#hasMain) void runtime.idle(runtime.main.group).then(() => this.#end(false, undefined))
  }

  /** A program without main ends when nothing is left to do; in main, a promise is left that nothing resolves. */
  readonly #onBeforeExit = (): void => {
    if (this.#ending) return
    const isStuck = this.#isInMain && this.#interrupts === 0
    void this.#end(isStuck, isStuck ? stuck() : undefined)
  }

  readonly #onExit = (code: number): void => {
    const live = this.#ending ? 0 : (this.#run?.runtime.engine.root.live ?? 0)
    if (live > 0 && this.#interrupts === 0) complain(exited(live))
    this.#run?.runtime.endNow()
    this.#run?.clusterRun?.endNow()
    this.#endNow(this.#interrupts > 0 ? 'interrupted' : code === 0 ? 'ok' : 'failed')
  }

  /** Node prints the error next, and a display that is still up would be repainted over it. */
  readonly #onUncaught = (error: unknown): void => {
    if (process.listenerCount('uncaughtException') === 0) this.#endNow('failed', firstLine(error))
  }

  #endNow(outcome: Outcome, message?: string): void {
    const run = this.#run
    if (!run || this.#ending) return
    this.#ending = Promise.resolve()
    run.runtime.engine.observer?.({
      type: 'run-ended',
      at: run.runtime.now(),
      outcome,
      ...(message === undefined ? {} : { message }),
    })
    run.reporting.closeNow()
  }

  #end(failed: boolean, failure: unknown): Promise<void> {
    return (this.#ending ??= this.#endOnce(failed, failure))
  }

  async #endOnce(failed: boolean, failure: unknown): Promise<void> {
    const run = this.#run
    // What a person took out of the run is missing from its results.
    const taken = run?.runtime.engine.root.missing
    if (!failed && taken?.why?.kind === 'person') return this.#endOnce(true, cancelledError(taken))
    const unhandled = run ? [...run.runtime.main.unhandled] : []
    const interrupted = this.#interrupts > 0
    let outcome: Outcome = interrupted ? 'interrupted' : failed || unhandled.length > 0 ? 'failed' : 'ok'
    if (outcome !== 'ok') process.exitCode = interrupted ? 130 : exitCodeFor(failure)
    if (run) {
      const { runtime, reporting } = run
      if (failed) {
        runtime.close('program-failed')
        runtime.programEnded()
        await runtime.idle(runtime.main.group)
      }
      const stranded = await endAll(runtime, run.clusterRun)
      if (stranded.length > 0 && outcome === 'ok') {
        outcome = 'failed'
        process.exitCode = 1
      }
      if (runtime.engine.io.devices.length > 0) await keepLearned(run.options, runtime.engine.io.export())
      const message = failed ? firstLine(failure) : undefined
      for (const text of (await run.resuming?.end(outcome)) ?? [])
        runtime.engine.observer?.({ type: 'note', at: runtime.now(), level: 'info', text })
      runtime.engine.observer?.({
        type: 'run-ended',
        at: runtime.now(),
        outcome,
        ...(message === undefined ? {} : { message }),
      })
      await reporting.close().catch((error: unknown) => {
        process.exitCode ||= 1
        complain(error)
      })
      const shown = reporting.mode === 'live' || reporting.mode === 'plain'
      if (!shown) for (const task of unhandled) complain(taskError(task))
      if (!shown && !reporting.showsWarnings)
        for (const sentence of stranded) complain(new MillraceError('MR_DEVICE', sentence))
      if (
        failed &&
        !interrupted &&
        !(shown && (failure instanceof TaskError || failure instanceof CancelledError))
      ) {
        complain(failure)
      }
      process.off('SIGINT', this.#onSignal)
      process.off('SIGTERM', this.#onSignal)
    } else if (failed) complain(failure)
  }
}

const exited = (live: number): MillraceError =>
  new MillraceError(
    'MR_ENDED',
    `process.exit was called while ${live === 1 ? 'a task' : `${live} tasks`} had not ended: what ${live === 1 ? 'it makes' : 'they make'} is lost`,
    { hint: 'Return from main instead, or await what the tasks make before.' },
  )

const stuck = (): MillraceError =>
  new MillraceError('MR_MAIN_WAITS', 'main waits for something that can never come', {
    hint: 'No task, timer or file is left to wait for. Look for a promise that nothing resolves.',
  })

function exitCodeFor(failure: unknown): number {
  const isUsage = failure instanceof MillraceError && !(failure instanceof TaskError)
  return isUsage && USAGE_CODES.includes(failure.code) ? 2 : 1
}

function policyOf({ policy }: RunOptions): Policy {
  const supplied = suppliedPolicy ?? launchedPolicy()
  if (supplied) return supplied
  return policy === undefined ? usualPolicy : findPolicy(policy)
}

/** A policy may be the default export of a module; loading it takes a moment, which only main has. */
async function loadPolicy({ policy }: RunOptions): Promise<void> {
  if (policy === undefined || suppliedPolicy || launchedPolicy() || !isPolicyFile(policy)) return
  suppliedPolicy = await loadPolicyFile(policy, () => new TaskModules().enableTypescript())
}

/** Limits need to know what a device can do; only main has the time to find out. */
async function measureDevices(options: RunOptions): Promise<Remark[]> {
  const devices = describedStorage(options.machine, describedNode(options))
  makeFolders(devices)
  return measureUnknown(devices)
}

/** Connections to agents do not keep the process alive, so something else has to until they have ended. */
async function endAll(runtime: Runtime, clusterRun: ClusterRun | null): ReturnType<Runtime['end']> {
  if (!clusterRun) return runtime.end()
  const alive = setInterval(() => undefined, 1000)
  try {
    const stranded = await runtime.end()
    await clusterRun.end()
    return stranded
  } finally {
    clearInterval(alive)
  }
}

/** The module that calls main is not loaded completely yet. */
const afterLoading = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** Waits for something to be loaded or started, and no longer than this; milliseconds. It keeps the process alive meanwhile. */
const forAtMost = (load: Promise<void>, time: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, time)
    load.then(resolve, reject).finally(() => clearTimeout(timer))
  })

const firstLine = (error: unknown): string =>
  (textFieldOf(error, 'shortMessage') ?? messageOf(error)).split('\n')[0] ?? ''

/** The one thing that is printed without a reporter: why a program ended, when no display shows it. */
function complain(error: unknown): void {
  const isOurs = isError(error) && error instanceof MillraceError
  const text = isOurs
    ? [`${error.name}: ${error.message}`, ...placesOf(error)].join('\n')
    : (textFieldOf(error, 'stack') ?? messageOf(error))
  process.stderr.write(printable(`${text}${causeOf(error, text)}\n`))
}

/** With the places in the user's own code; what has been said is not said twice. */
function causeOf(error: unknown, said: string): string {
  const cause = fieldOf(error, 'cause')
  if (!isError(cause)) return ''
  const frames = placesOf(cause)
  if (frames.length === 0 && said.includes(shortOf(cause))) return ''
  return `\n  caused by ${[`${nameOf(cause)}: ${shortOf(cause)}`, ...frames].join('\n')}`
}

const shortOf = (error: Error): string => textFieldOf(error, 'shortMessage') ?? messageOf(error)
