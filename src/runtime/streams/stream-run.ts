import { setTimeout as sleep } from 'node:timers/promises'
import type { NodeSpec } from '../../cluster/launch/node-spec.ts'
import type { SitesOptions } from '../../cluster/streams/stream-sites.ts'
import type { Outcome, RunEvent } from '../../core/events.ts'
import { fifo } from '../../core/schedule/policy.ts'
import { messageOf } from '../../general/thrown.ts'
import { printable } from '../../report/text.ts'
import { stepTimesOf } from '../../node/steps.ts'
import { Board } from '../../stream/board/board.ts'
import type { Plan } from '../../stream/board/plan.ts'
import { counted } from '../../stream/board/table.ts'
import { removeAbandoned } from '../../stream/board/workspace.ts'
import { loadPlan } from '../../stream/language/load.ts'
import { problemText } from '../../stream/language/problems.ts'
import { endAbandoned } from '../../stream/run/abandoned.ts'
import { openRunBoard } from '../../stream/run/run-board.ts'
import { Progress } from '../../stream/run/progress.ts'
import { doubtsOf, failuresOf, fileRemarks, streamedText, unseenOf } from '../../stream/run/run-report.ts'
import type { StreamIo } from '../../stream/run/screen.ts'
import { StepOutput } from '../../stream/run/step-output.ts'
import { matchCommands } from '../../stream/run/step-commands.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import { streamTools } from '../../stream/run/toolchain.ts'
import { watchdog } from '../../stream/run/watchdog.ts'
import { Reporting } from '../reporting.ts'
import { RunControl } from '../run-control.ts'
import { runOptions } from '../run-options.ts'
import type { RunOptions } from '../run-options.ts'
import { announce, runId, runStarted } from '../run-start.ts'
import { Runtime } from '../runtime.ts'
import { processStreams } from '../standard-output.ts'
import type { StandardStreams } from '../standard-output.ts'
import type { Boards } from './boards.ts'
import { FileEvents } from './file-events.ts'
import { LocalBoards } from './local-boards.ts'
import { NodeBoards } from './node-boards.ts'
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

export interface StreamNodesOptions extends SitesOptions {
  /** Milliseconds between looks at what the nodes told. */
  readonly interval?: number
  /** How the run is shown and recorded. */
  readonly run?: RunOptions
}

/** Runs a whole workflow on this machine: all steps at once, under its rules. Returns the exit code. */
export function streamRun(
  file: string,
  commands: readonly StepCommand[],
  options: StreamRunOptions,
  streams: StandardStreams = processStreams,
  signal?: AbortSignal,
): Promise<number> {
  return checked(file, streams, async (plan, io) => {
    const instances = matchCommands(plan, commands)
    const tools = await streamTools(io.err)
    if (signal?.aborted === true) return 130
    const boards = await new Board(tools, '-').list()
    for (const { live, workflow } of boards)
      if (!live && /\.run\d+\.\d+$/.test(workflow)) await endAbandoned(new Board(tools, workflow), io)
    const others = await new Board(tools, '-').list()
    await removeAbandoned(new Set(others.flatMap(board => [board.dir, board.layer ?? board.dir])))
    const { dir, place = process.cwd(), limit, keep } = options
    const open = await openRunBoard(plan, tools, { dir, place, instances, limit, keep })
    let code = 1
    try {
      const run = runOptionsOf(options)
      const local = new LocalBoards(open, commands, run, options)
      code = await new StreamRun({ file, plan: open.plan, boards: local, run, options, streams }).all(signal)
    } catch (error) {
      await open.discard()
      throw error
    }
    // The board goes last: should this process be killed before, the clean-up learns from it what is complete.
    await open.end()
    return code
  })
}

/** The same on several nodes. */
export function streamRunOnNodes(
  file: string,
  commands: readonly StepCommand[],
  specs: readonly NodeSpec[],
  options: StreamNodesOptions,
  streams: StandardStreams = processStreams,
  signal?: AbortSignal,
): Promise<number> {
  return checked(file, streams, async plan => {
    matchCommands(plan, commands)
    const boards = new NodeBoards(plan, file, specs, options)
    try {
      await boards.reach(commands)
      const run = runOptionsOf(options)
      return await new StreamRun({ file, plan, boards, run, options, streams }).all(signal)
    } finally {
      boards.close()
    }
  })
}

function checked(
  file: string,
  streams: StandardStreams,
  run: (plan: Plan, io: StreamIo) => Promise<number>,
): Promise<number> {
  const io: StreamIo = {
    out: text => streams.stdout.write(printable(text)),
    err: text => streams.stderr.write(printable(text)),
  }
  return watchdog(io, () => {
    const { plan, warnings } = loadPlan(file)
    for (const warning of warnings) io.err(`${problemText(warning)}\n`)
    return run(plan, io)
  })
}

const runOptionsOf = ({ run }: { run?: RunOptions }): RunOptions => ({
  ...runOptions(),
  launched: true,
  ...run,
})

interface StreamRunParts {
  readonly file: string
  readonly plan: Plan
  readonly boards: Boards
  readonly run: RunOptions
  /** Milliseconds between looks at the boards. */
  readonly options: { readonly interval?: number }
  readonly streams: StandardStreams
}

class StreamRun {
  readonly #parts: StreamRunParts
  readonly #id: string
  readonly #reporting: Reporting
  readonly #runtime: Runtime
  readonly #tasks: StepTasks
  readonly #output: StepOutput
  readonly #files: FileEvents
  readonly #started: RunEvent
  #isEnded = false
  /** On the live page. */
  #isStopAsked = false
  /** Ends the pause between two looks. */
  #wake = new AbortController()

  constructor(parts: StreamRunParts) {
    const { file, plan, boards, run, streams } = parts
    this.#parts = parts
    this.#reporting = new Reporting(run, streams)
    const { observer } = this.#reporting
    this.#id = runId()
    this.#runtime = new Runtime({
      id: this.#id,
      nodes: boards.nodes,
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
    this.#runtime.files.streaming.coordination = boards.steps
    if (run.control)
      this.#reporting.controlBy(
        new RunControl(this.#runtime, () => {
          this.#isStopAsked = true
          this.#wake.abort()
        }),
      )
    const nodes = boards.nodes.map(({ description }) => description)
    const facts = { program: file, args: [] }
    this.#started = runStarted(this.#runtime, this.#reporting, run, nodes, fifo, facts)
    this.#tasks = new StepTasks(this.#runtime, boards, file)
    const width = Math.max(...plan.steps.map(step => step.name.length))
    this.#output = new StepOutput((step, line) =>
      streams.stdout.write(printable(`${step.padEnd(width)} | ${line}\n`)),
    )
    this.#files = new FileEvents(plan, event => this.#runtime.engine.observer?.(event))
  }

  async all(signal?: AbortSignal): Promise<number> {
    const { boards } = this.#parts
    try {
      announce(this.#runtime, this.#reporting, this.#started)
      boards.begin(this.#id, {
        note: (level, text) => this.#runtime.note(level, text),
        hasEnded: (step, number) => this.#tasks.hasEnded(step, number),
        nodeLost: (node, reason) => this.#nodeLost(node, reason),
      })
      void this.#runtime.nodes.warmUp(new Set(['command']))
      this.#tasks.submit((task, step) => {
        const { logs } = this.#runtime
        if (logs !== null) this.#output.follow(step, `${logs}/${task}.1.log`)
      })
      this.#runtime.programEnded()
      const isCut = await this.#follow(signal)
      return await this.#close(isCut)
    } catch (error) {
      this.#runtime.endNow()
      await this.#end('failed', messageOf(error))
      throw error
    }
  }

  /** Looks at the boards until the last step has ended. True when the user stopped it. */
  async #follow(signal?: AbortSignal): Promise<boolean> {
    const { boards, options } = this.#parts
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
        const snapshot = await boards.look()
        if (snapshot !== undefined) this.#files.look(snapshot, this.#runtime.now())
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

  /** Each program is asked to end, and ended by force when it does not. */
  #stop(): void {
    const { engine } = this.#runtime
    this.#runtime.note('info', `stopping ${counted(this.#tasks.running, 'step')} …`)
    engine.cancel(engine.root, { kind: 'closed', by: 'interrupt' }, this.#runtime.now())
    this.#runtime.schedule()
  }

  /** What ran there has ended with it: a step does not begin again elsewhere, its readers have got a part. */
  #nodeLost(index: number, reason: string): void {
    const { engine } = this.#runtime
    const { name } = engine.nodes[index] as { name: string }
    this.#runtime.note('warning', `node ${name} was lost: ${reason}`)
    engine.observer?.({ type: 'node-left', at: this.#runtime.now(), node: index, isLost: true, reason })
  }

  async #close(isCut: boolean): Promise<number> {
    const { plan, boards } = this.#parts
    await this.#output.end()
    const { instances } = this.#tasks
    const isOk = !isCut && instances.every(({ code }) => code === 0)
    const { last, kept, removed, workspace, isWhole } = await boards.finish(isOk, isCut)
    if (last !== undefined) this.#files.look(last, this.#runtime.now())
    if (!isCut) {
      for (const { instance, reason, facts } of failuresOf(plan, instances, last)) {
        const all = instance.code! >= 126 ? [reason, ...facts] : facts
        for (const fact of all) this.#runtime.note('warning', `step '${instance.step}' failed: ${fact}`)
      }
    }
    const doubts = doubtsOf(last)
    for (const text of [...doubts, ...unseenOf(last, boards.unseen)]) this.#runtime.note('warning', text)
    if (last !== undefined) this.#runtime.note('info', streamedText(new Progress(plan).look(last, 0)))
    for (const { level, text } of fileRemarks(kept, removed, workspace)) this.#runtime.note(level, text)
    const isSound = isOk && isWhole && kept.stuck.length === 0 && doubts.length === 0
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
