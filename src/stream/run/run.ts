import { setTimeout as sleep } from 'node:timers/promises'
import type { Observer } from '../../core/events.ts'
import { endAbandoned } from './abandoned.ts'
import { Board } from '../board/board.ts'
import { programsOf } from './elf.ts'
import { Keeper, type Kept } from '../board/keeper.ts'
import { loadPlan } from '../language/load.ts'
import { planLines } from '../board/plan-lines.ts'
import type { Plan } from '../board/plan.ts'
import { problemText } from '../language/problems.ts'
import { byteText, durationText, Progress, progressLines, type StreamState } from './progress.ts'
import { doubtText, failureText, summaryText, unseenText } from './run-report.ts'
import { RunEvents, type StreamRunFacts } from './run-events.ts'
import { type Instance, Runner } from './runner.ts'
import { Screen, type StreamIo } from './screen.ts'
import type { Snapshot } from '../board/snapshot.ts'
import { matchCommands, type StepCommand } from './step-commands.ts'
import { counted } from '../board/table.ts'
import { streamTools, type Tools } from './toolchain.ts'
import { forgetState, writeState } from './up-state.ts'
import { watchOver } from './watch.ts'
import {
  holdOn,
  openWorkspace,
  removeAbandoned,
  removeOwn,
  removeTemporary,
  type Workspace,
} from '../board/workspace.ts'
import { watchdog } from './watchdog.ts'

export interface RunOptions {
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
  /** Gets the events of the run, which is called so in them. */
  observed?: { observer: Observer; facts: StreamRunFacts }
  /** Milliseconds between looks at the board. */
  interval?: number
  /** Milliseconds between lines of progress when there is no terminal. */
  heartbeat?: number
  /** Milliseconds that steps get to end after the first signal. */
  patience?: number
}

/** Runs a whole workflow: all steps at once, under its rules. */
export function streamRun(
  file: string,
  commands: readonly StepCommand[],
  options: RunOptions,
  io: StreamIo,
  signal?: AbortSignal,
): Promise<number> {
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
    const { plan, workspace } = await openWorkspace(checked, options.dir, options.place ?? process.cwd())
    const run = new Run(plan, commands, instances, options, io, tools, workspace)
    return run.all(signal)
  })
}

class Run {
  private readonly board: Board
  private readonly screen: Screen
  private readonly runner: Runner
  private readonly keeper: Keeper
  private readonly progress: Progress
  private readonly begun = Date.now()
  private readonly events: RunEvents | null
  private spoke = Date.now()
  private wake = new AbortController()
  /** Programs that are not intercepted, and of which the user knows. */
  private readonly warned = new Set<string>()
  private readonly plan: Plan
  private readonly commands: readonly StepCommand[]
  private readonly counts: Map<string, number>
  private readonly options: RunOptions
  private readonly workspace: Workspace

  constructor(
    plan: Plan,
    commands: readonly StepCommand[],
    counts: Map<string, number>,
    options: RunOptions,
    io: StreamIo,
    tools: Tools,
    workspace: Workspace,
  ) {
    this.plan = plan
    this.commands = commands
    this.counts = counts
    this.options = options
    this.events = options.observed ? new RunEvents(options.observed.observer, this.begun) : null
    this.workspace = workspace
    // Runs of one configuration side by side need names of their own.
    this.board = new Board(
      tools,
      `${plan.name.replace(/[^\w.-]/g, '_').slice(0, 60)}.run${process.pid}.${runs++}`,
    )
    this.screen = new Screen(io)
    this.progress = new Progress(plan)
    this.keeper = new Keeper(plan, workspace, text => this.screen.print(text), {
      ...(options.reserve === undefined ? {} : { reserve: options.reserve }),
      relieve: bytes => this.board.spill(bytes),
    })
    const width = Math.max(...plan.steps.map(step => step.name.length))
    this.runner = new Runner(this.board, {
      line: (step, text, stream) =>
        this.screen.print(`${step.padEnd(width)} | ${text}\n`, stream === 'stdout' ? 'out' : 'err'),
      ended: instance => this.ended(instance),
    })
  }

  async all(signal?: AbortSignal): Promise<number> {
    const { dir } = this.workspace
    const limit = this.options.limit === undefined ? {} : { limit: this.options.limit }
    const { layer, own, place } = this.workspace
    const lines = planLines(this.plan, {
      dir,
      workflow: this.board.workflow,
      instances: this.counts,
      ...limit,
      ...(layer === undefined ? {} : { layer }),
      ...(own ? { inputs: place } : {}),
    })
    let last: Snapshot | undefined
    let cut = false
    let allIsWell = (): void => {}
    try {
      await this.board.create(lines, process.pid)
      await writeState(this.board, { plan: this.plan, workspace: this.workspace })
      allIsWell = watchOver(this.board.workflow, this.options.keep === true)
      this.warnOfPrograms()
      const env = { MILLRACE_PLACE: this.workspace.place }
      const next = new Map<string, number>()
      for (const command of this.commands) {
        for (let n = 0; n < (command.times ?? 1); n++) {
          const number = next.get(command.step) ?? 0
          next.set(command.step, number + 1)
          this.runner.start(command, number, dir, env)
        }
      }
      if (this.options.observed)
        this.events?.begin(this.options.observed.facts, this.plan, this.runner.instances)
      cut = await this.follow(signal)
      last = await this.board.ps()
      if (last !== undefined) this.events?.look(last)
    } catch (error) {
      this.runner.kill('SIGKILL')
      await this.board.destroy(true).catch(() => false)
      await removeOwn(this.workspace)
      await forgetState(this.board)
      allIsWell()
      throw error
    }
    this.screen.clear()
    // The board goes last: should this be killed now, the clean-up still learns from it what is complete.
    const code = await this.close(last, cut)
    this.events?.end(cut ? 'interrupted' : code === 0 ? 'ok' : 'failed')
    await this.board.destroy(true)
    await forgetState(this.board)
    allIsWell()
    return code
  }

  /** Until the last step has ended. True when the user stopped it. */
  private async follow(signal?: AbortSignal): Promise<boolean> {
    let stopping = 0
    const stop = (): void => this.wake.abort()
    signal?.addEventListener('abort', stop)
    try {
      while (this.runner.running > 0) {
        if (signal?.aborted === true) stopping = await this.stop(stopping)
        const began = Date.now()
        const snapshot = await this.board.ps()
        if (snapshot !== undefined) this.show(snapshot)
        // Looking must not cost more than a twentieth of the time, however many files there are.
        const pause = Math.max(this.options.interval ?? 250, (Date.now() - began) * 20)
        await sleep(stopping > 0 ? 50 : pause, undefined, { signal: this.wake.signal }).catch(() => {})
        if (this.wake.signal.aborted) this.wake = new AbortController()
      }
    } finally {
      signal?.removeEventListener('abort', stop)
    }
    return stopping > 0
  }

  private async stop(since: number): Promise<number> {
    const now = Date.now()
    if (since === 0) {
      this.screen.print(`stopping ${counted(this.runner.running, 'step')} …\n`)
      this.runner.kill('SIGTERM')
      return now
    }
    if (now - since > (this.options.patience ?? 3000)) {
      // Those that left their group are known to the board.
      const snapshot = await this.board.ps()
      this.runner.kill('SIGKILL')
      for (const { pid } of snapshot?.processes ?? []) killQuietly(pid)
    }
    return since
  }

  private show(snapshot: Snapshot): void {
    this.events?.look(snapshot)
    this.keeper.look(snapshot)
    const states = this.progress.look(snapshot, Date.now())
    if (this.screen.live) this.screen.paint(this.block(states))
    else if (Date.now() - this.spoke >= (this.options.heartbeat ?? 30_000)) {
      this.spoke = Date.now()
      this.screen.print(`${this.block(states).join('\n')}\n`)
    }
  }

  private block(states: StreamState[]): string[] {
    const bytes = states.reduce((sum, state) => sum + state.bytes, 0)
    const total = this.runner.instances.length
    const done = total - this.runner.running
    const head = `${this.plan.name}  ${durationText(Date.now() - this.begun)}  [${done}/${total}] steps ended  ${byteText(bytes)} written`
    return [head, ...progressLines(states, this.screen.width, this.screen.height - 2)]
  }

  private ended(instance: Instance): void {
    this.events?.ended(instance)
    const total = this.runner.instances.length
    const done = total - this.runner.running
    const time = durationText(instance.ended! - instance.started)
    const state = instance.code === 0 ? 'ended' : 'FAILED'
    this.screen.print(`[${done}/${total}] ${state} ${instance.step} (exit code ${instance.code}) ${time}\n`)
    this.wake.abort()
  }

  private warnOfPrograms(): void {
    for (const { step, run, cwd } of this.commands) {
      for (const { path, fault } of programsOf(
        run,
        typeof run === 'string' ? (cwd ?? this.workspace.dir) : process.cwd(),
      )) {
        if (fault === undefined) continue
        this.warned.add(path)
        this.screen.print(
          `warning: step '${step}': ${path} ${fault}; it is not intercepted: it waits for nothing, and of what it writes only its end is seen\n`,
        )
      }
    }
  }

  private async close(last: Snapshot | undefined, cut: boolean): Promise<number> {
    const failed = this.runner.instances.filter(instance => instance.code !== 0)
    const ok = failed.length === 0 && !cut
    const kept: Kept = await this.keeper.finish(last, ok, this.options.keep)
    const left = this.options.keep === true || kept.stuck.length > 0
    const removed = left ? undefined : await removeTemporary(this.plan, this.workspace)
    if (left) await holdOn(this.workspace)
    const states = last === undefined ? [] : new Progress(this.plan).look(last, Date.now())
    if (failed.length > 0 && !cut) this.screen.print(failureText(this.plan, this.runner.instances, last))
    const doubt = doubtText(last)
    if (doubt !== '') this.screen.print(doubt)
    const unseen = unseenText(last, this.warned)
    if (unseen !== '') this.screen.print(unseen)
    const elapsed = Date.now() - this.begun
    this.screen.print(
      summaryText({
        plan: this.plan,
        instances: this.runner.instances,
        states,
        kept,
        removed,
        elapsed,
        cut,
        doubtful: doubt !== '',
        workspace: this.workspace,
      }),
    )
    return cut ? 130 : ok && kept.stuck.length === 0 && doubt === '' ? 0 : 1
  }
}

let runs = 0

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
