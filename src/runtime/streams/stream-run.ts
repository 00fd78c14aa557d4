import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome, RunEvent } from '../../core/events.ts'
import { fifo } from '../../core/schedule/policy.ts'
import { messageOf } from '../../general/thrown.ts'
import { printable } from '../../report/text.ts'
import { stepTimesOf } from '../../node/steps.ts'
import { Board } from '../../stream/board/board.ts'
import { Keeper } from '../../stream/board/keeper.ts'
import type { Plan } from '../../stream/board/plan.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import { counted } from '../../stream/board/table.ts'
import { holdOn, removeAbandoned, removeTemporary } from '../../stream/board/workspace.ts'
import type { Workspace } from '../../stream/board/workspace.ts'
import { loadPlan } from '../../stream/language/load.ts'
import { problemText } from '../../stream/language/problems.ts'
import { endAbandoned } from '../../stream/run/abandoned.ts'
import { programsOf } from '../../stream/run/elf.ts'
import { openRunBoard } from '../../stream/run/run-board.ts'
import { Progress } from '../../stream/run/progress.ts'
import { doubtsOf, failuresOf, fileRemarks, streamedText, unseenOf } from '../../stream/run/run-report.ts'
import type { StreamIo } from '../../stream/run/screen.ts'
import { matchCommands } from '../../stream/run/step-commands.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import { streamTools } from '../../stream/run/toolchain.ts'
import { watchdog } from '../../stream/run/watchdog.ts'
import { describeNode } from '../describe-node.ts'
import { Reporting } from '../reporting.ts'
import { RunControl } from '../run-control.ts'
import { runOptions } from '../run-options.ts'
import type { RunOptions } from '../run-options.ts'
import { announce, runId, runStarted } from '../run-start.ts'
import { Runtime } from '../runtime.ts'
import { processStreams } from '../standard-output.ts'
import type { StandardStreams } from '../standard-output.ts'
import { FileEvents } from './file-events.ts'
import { StepOutput } from './step-output.ts'
import { StepTasks } from './step-tasks.ts'

export interface StreamRunOptions {
  /** Managed directory; without it a private one in memory, into which inputs are linked. */
  dir?: string
  /** Where permanent files go when no `dir` is given; the current directory by default. */
  place?: string
  /** Seconds after which one wait for a file fails. */
  limit?: number
  /** Leaves temporary files, and says where they are. */
  keep?: boolean
  /** Bytes of memory that are to stay free: complete files move to disk before. */
  reserve?: number
  /** Milliseconds between looks at the board. */
  interval?: number
  /** How the run is shown and recorded. */
  run?: RunOptions
}

/** Runs a whole workflow: all steps at once, under its rules. Returns the exit code. */
export function streamRun(
  file: string,
  commands: readonly StepCommand[],
  options: StreamRunOptions,
  streams: StandardStreams = processStreams,
  signal?: AbortSignal,
): Promise<number> {
  const io: StreamIo = {
    out: text => streams.stdout.write(printable(text)),
    err: text => streams.stderr.write(printable(text)),
  }
  return watchdog(io, async () => {
    const { plan: checked, warnings } = loadPlan(file)
    for (const warning of warnings) io.err(`${problemText(warning)}\n`)
    const instances = matchCommands(checked, commands)
    const tools = await streamTools(io.err)
    if (signal?.aborted === true) return 130
    const boards = await new Board(tools, '-').list()
    for (const { live, workflow } of boards)
      if (!live && /\.run\d+\.\d+$/.test(workflow)) await endAbandoned(new Board(tools, workflow), io)
    const others = await new Board(tools, '-').list()
    await removeAbandoned(new Set(others.flatMap(board => [board.dir, board.layer ?? board.dir])))
    const { dir, place = process.cwd(), limit, keep } = options
    const open = await openRunBoard(checked, tools, { dir, place, instances, limit, keep })
    const { board, plan, workspace } = open
    let code = 1
    try {
      code = await new StreamRun({ file, plan, workspace, board, options, streams }).all(commands, signal)
    } catch (error) {
      await open.discard()
      throw error
    }
    // The board goes last: should this process be killed before, the clean-up learns from it what is complete.
    await open.end()
    return code
  })
}

interface StreamRunParts {
  readonly file: string
  readonly plan: Plan
  readonly workspace: Workspace
  readonly board: Board
  readonly options: StreamRunOptions
  readonly streams: StandardStreams
}

class StreamRun {
  readonly #parts: StreamRunParts
  readonly #reporting: Reporting
  readonly #runtime: Runtime
  readonly #tasks: StepTasks
  readonly #output: StepOutput
  readonly #files: FileEvents
  readonly #keeper: Keeper
  readonly #started: RunEvent
  /** Programs that are not intercepted, and of which the user knows. */
  readonly #warned = new Set<string>()
  #isEnded = false
  /** On the live page. */
  #isStopAsked = false
  /** Ends the pause between two looks. */
  #wake = new AbortController()

  constructor(parts: StreamRunParts) {
    const { file, plan, workspace, board, options, streams } = parts
    this.#parts = parts
    const run: RunOptions = { ...runOptions(), launched: true, ...options.run }
    this.#reporting = new Reporting(run, streams)
    const { observer } = this.#reporting
    const node = { ...describeNode(run, null), ioExecutors: MOST_STEPS }
    this.#runtime = new Runtime({
      id: runId(),
      nodes: [{ description: node, ports: null }],
      mayGrow: false,
      policy: fifo,
      io: {},
      logs: this.#reporting.logs,
      bind: { mode: 'off', hyperThreads: true },
      stepTimes: stepTimesOf(run.stepTimes),
      observer: event => {
        observer?.(event)
        if (this.#tasks.observe(event)) this.#wake.abort()
      },
      entry: null,
    })
    this.#runtime.files.streaming.coordination = board
    if (run.control)
      this.#reporting.controlBy(
        new RunControl(this.#runtime, () => {
          this.#isStopAsked = true
          this.#wake.abort()
        }),
      )
    this.#started = runStarted(this.#runtime, this.#reporting, run, [node], fifo, { program: file, args: [] })
    this.#tasks = new StepTasks(this.#runtime, workspace, file)
    const width = Math.max(...plan.steps.map(step => step.name.length))
    this.#output = new StepOutput((step, line) =>
      streams.stdout.write(printable(`${step.padEnd(width)} | ${line}\n`)),
    )
    this.#files = new FileEvents(plan, event => this.#runtime.engine.observer?.(event))
    this.#keeper = new Keeper(plan, workspace, text => this.#runtime.note('warning', text.trimEnd()), {
      ...(options.reserve === undefined ? {} : { reserve: options.reserve }),
      relieve: bytes => board.spill(bytes),
    })
  }

  async all(commands: readonly StepCommand[], signal?: AbortSignal): Promise<number> {
    const { board } = this.#parts
    try {
      announce(this.#runtime, this.#reporting, this.#started)
      this.#warnOfPrograms(commands)
      await this.#runtime.nodes.warmUp(new Set(['command']))
      this.#tasks.submit(commands, (task, step) => {
        const { logs } = this.#runtime
        if (logs !== null) this.#output.follow(step, `${logs}/${task}.1.log`)
      })
      this.#runtime.programEnded()
      const isCut = await this.#follow(signal)
      const last = await board.ps()
      if (last !== undefined) this.#files.look(last, this.#runtime.now())
      return await this.#close(last, isCut)
    } catch (error) {
      this.#runtime.endNow()
      await this.#end('failed', messageOf(error))
      throw error
    }
  }

  /** Looks at the board until the last step has ended. True when the user stopped it. */
  async #follow(signal?: AbortSignal): Promise<boolean> {
    const { board, options } = this.#parts
    const stop = (): void => this.#wake.abort()
    signal?.addEventListener('abort', stop)
    let isCut = false
    try {
      while (this.#tasks.running > 0) {
        if ((signal?.aborted === true || this.#isStopAsked) && !isCut) {
          isCut = true
          this.#stop()
        }
        const began = Date.now()
        const snapshot = await board.ps()
        if (snapshot !== undefined) {
          this.#files.look(snapshot, this.#runtime.now())
          this.#keeper.look(snapshot)
        }
        await this.#output.read()
        // Looking must not cost more than a twentieth of the time, however many files there are.
        const pause = Math.max(options.interval ?? 250, (Date.now() - began) * 20)
        await sleep(pause, undefined, { signal: this.#wake.signal }).catch(() => {})
        if (this.#wake.signal.aborted) this.#wake = new AbortController()
      }
      await this.#runtime.idle(this.#runtime.main.group)
    } finally {
      signal?.removeEventListener('abort', stop)
    }
    return isCut
  }

  /** The node asks each program to end, and ends it by force when it does not. */
  #stop(): void {
    const { engine } = this.#runtime
    this.#runtime.note('info', `stopping ${counted(this.#tasks.running, 'step')} …`)
    engine.cancel(engine.root, { kind: 'closed', by: 'interrupt' }, this.#runtime.now())
    this.#runtime.schedule()
  }

  #warnOfPrograms(commands: readonly StepCommand[]): void {
    const { dir } = this.#parts.workspace
    for (const { step, run, cwd } of commands) {
      for (const { path, fault } of programsOf(run, typeof run === 'string' ? (cwd ?? dir) : process.cwd())) {
        if (fault === undefined) continue
        this.#warned.add(path)
        this.#runtime.note(
          'warning',
          `step '${step}': ${path} ${fault}; it is not intercepted: it waits for nothing, and of what it writes only its end is seen`,
        )
      }
    }
  }

  async #close(last: Snapshot | undefined, isCut: boolean): Promise<number> {
    const { plan, workspace, options } = this.#parts
    // Programs that left their group have not ended with their step.
    if (isCut) for (const { pid } of last?.processes ?? []) killQuietly(pid)
    await this.#output.end()
    const { instances } = this.#tasks
    const failed = instances.filter(({ code }) => code !== 0)
    const isOk = failed.length === 0 && !isCut
    const kept = await this.#keeper.finish(last, isOk, options.keep)
    const mustStay = options.keep === true || kept.stuck.length > 0
    const removed = mustStay ? undefined : await removeTemporary(plan, workspace)
    if (mustStay) await holdOn(workspace)
    if (!isCut) {
      for (const { instance, reason, facts } of failuresOf(plan, instances, last)) {
        const all = instance.code! >= 126 ? [reason, ...facts] : facts
        for (const fact of all) this.#runtime.note('warning', `step '${instance.step}' failed: ${fact}`)
      }
    }
    const doubts = doubtsOf(last)
    for (const text of [...doubts, ...unseenOf(last, this.#warned)]) this.#runtime.note('warning', text)
    if (last !== undefined) this.#runtime.note('info', streamedText(new Progress(plan).look(last, 0)))
    for (const { level, text } of fileRemarks(kept, removed, workspace)) this.#runtime.note(level, text)
    const isSound = isOk && kept.stuck.length === 0 && doubts.length === 0
    const message =
      isOk && doubts.length > 0
        ? 'in doubt: the results of a step may be wrong (see the warnings)'
        : undefined
    await this.#end(isCut ? 'interrupted' : isSound ? 'ok' : 'failed', message)
    return isCut ? 130 : isSound ? 0 : 1
  }

  async #end(outcome: Outcome, message?: string): Promise<void> {
    if (this.#isEnded) return
    this.#isEnded = true
    await this.#runtime.end()
    this.#runtime.engine.observer?.({
      type: 'run-ended',
      at: this.#runtime.now(),
      outcome,
      ...(message === undefined ? {} : { message }),
    })
    await this.#reporting.close()
  }
}

/** Steps need no CPU: as many run at one time as there are. */
const MOST_STEPS = 1_000_000

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
