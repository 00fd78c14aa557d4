/** The commands of `millrace stream`, as functions: text goes to `io`, the result is an exit code. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Board } from '../board/board.ts'
import { planDot } from '../language/dot.ts'
import { findProgram, inspectProgram } from './elf.ts'
import { watchdog } from './watchdog.ts'
import { Keeper } from '../board/keeper.ts'
import { checkText, loadPlan, readText } from '../language/load.ts'
import type { Plan } from '../board/plan.ts'
import { planLines } from '../board/plan-lines.ts'
import { problemText } from '../language/problems.ts'
import { Progress, progressLines } from './progress.ts'
import type { StreamIo } from './screen.ts'
import { damageText, doubtText, stuckText, unseenText } from './run-report.ts'
import { StreamError } from '../stream-error.ts'
import { counted, planTable } from '../board/table.ts'
import { planGraph } from '../language/text-graph.ts'
import { streamTools } from './toolchain.ts'
import { refuseSecond } from './run-board.ts'
import { linkText, waitText } from './ps-text.ts'
import { forgetState, readState, writeState } from './up-state.ts'
import { holdOn, openWorkspace, removeOwn, removeTemporary } from '../board/workspace.ts'

export interface CheckOptions {
  /** Prints the graph for Graphviz (DOT) in place of the table and the small graph below it. */
  graph?: boolean
}

/** Prints the plan of a configuration, or what is wrong with it. */
export function streamCheck(file: string, options: CheckOptions, io: StreamIo): Promise<number> {
  return watchdog(io, async () => {
    const { plan, problems } = checkText(readText(file), file)
    for (const problem of problems) io.err(`${problemText(problem)}\n`)
    const errors = problems.filter(problem => problem.severity === 'error').length
    if (plan === undefined) {
      io.err(`${file}: ${counted(errors, 'error')}; nothing was started\n`)
      return 2
    }
    io.out(options.graph === true ? planDot(plan) : `${planTable(plan)}\n${planGraph(plan)}`)
    return 0
  })
}

export interface NameOptions {
  /** Name of the board; CAPIO_WORKFLOW_NAME, else CAPIO, as CAPIO's programs expect. */
  workflow?: string
}

export interface UpOptions extends NameOptions {
  /** Managed directory; CAPIO_DIR when that is set, else a new one in memory. */
  dir?: string
  /** Where permanent files go when the directory is a new one; the current directory by default. */
  place?: string
  limit?: number
  grace?: number
  /** How often each step will be started, where that is known: `NAME=N`. */
  times?: readonly string[]
}

/** Makes the board of a workflow, whose steps are then started one by one by the user. */
export function streamUp(file: string, options: UpOptions, io: StreamIo): Promise<number> {
  return watchdog(io, async () => {
    const { plan: checked, warnings } = loadPlan(file)
    for (const warning of warnings) io.err(`${problemText(warning)}\n`)
    const instances = readTimes(checked, options.times ?? [])
    const tools = await streamTools(io.err)
    const board = new Board(tools, nameOf(options))
    await refuseSecond(board)
    const { plan, workspace } = await openWorkspace(
      checked,
      options.dir ?? process.env['CAPIO_DIR'],
      options.place ?? process.cwd(),
    )
    const { limit, grace } = options
    const times = { ...(limit === undefined ? {} : { limit }), ...(grace === undefined ? {} : { grace }) }
    try {
      await board.create(
        planLines(plan, {
          dir: workspace.dir,
          workflow: board.workflow,
          instances,
          ...times,
          ...(workspace.layer === undefined ? {} : { layer: workspace.layer }),
          ...(workspace.own ? { inputs: workspace.place } : {}),
        }),
      )
    } catch (error) {
      await removeOwn(workspace)
      throw error
    }
    // The mark comes last: without the state, it would keep the directory for ever.
    await writeState(board, { plan, workspace })
    await holdOn(workspace)
    io.out(
      `export CAPIO_DIR=${quoted(workspace.dir)}\nexport CAPIO_WORKFLOW_NAME=${quoted(board.workflow)}\n`,
    )
    const example = plan.steps[0]?.name ?? 'STEP'
    io.err(`${plan.name} is up; start each step, in any order and at once, with one of\n`)
    io.err(`  millrace stream exec --app ${example} -- program arguments\n`)
    io.err(`  LD_PRELOAD=${tools.library} CAPIO_APP_NAME=${example} program arguments\n`)
    return 0
  })
}

export interface DownOptions extends NameOptions {
  /** Also when steps still run: their waits end with an error. */
  force?: boolean
  keep?: boolean
  /** Seconds that running steps get to end by themselves. */
  wait?: number
}

/** Ends a workflow that `streamUp` began: permanent files go to their place, temporary ones are removed. */
export function streamDown(options: DownOptions, io: StreamIo): Promise<number> {
  return watchdog(io, async () => {
    const board = new Board(await streamTools(io.err), nameOf(options))
    let snapshot = await board.ps()
    const state = await readState(board)
    if (snapshot === undefined && state === undefined) throw notUp(board)
    const end = Date.now() + (options.wait ?? 0) * 1000
    for (; snapshot !== undefined && snapshot.processes.length > 0 && Date.now() < end; await sleep(50))
      snapshot = await board.ps()
    const living = snapshot?.processes ?? []
    if (living.length > 0 && options.force !== true) {
      const steps = [...new Set(living.map(process => process.step ?? `pid ${process.pid}`))].join(', ')
      throw new StreamError('MR_STREAM_BOARD', `still running: ${steps}`, 'wait for them, or use --force')
    }
    // Until the files are in their place the board stays, for a second attempt should this be killed. Where
    // steps still run it goes first, and a mark keeps others from taking the folder for an unused one.
    if (living.length > 0 && state !== undefined) await holdOn(state.workspace)
    if (living.length > 0) await board.destroy(true)
    io.err(doubtText(snapshot))
    io.err(unseenText(snapshot))
    if (state !== undefined) {
      const { plan, workspace } = state
      const { kept, incomplete, damaged, stuck } = await new Keeper(plan, workspace, io.err).finish(
        snapshot,
        snapshot !== undefined && living.length === 0 && !snapshot.steps.some(step => step.failed),
        options.keep,
      )
      for (const path of kept) io.err(`kept ${join(workspace.place, path)}\n`)
      for (const path of incomplete) io.err(`never completed: ${path}\n`)
      for (const path of damaged) io.err(`${damageText([path])}\n`)
      for (const { path, reason } of stuck) io.err(`${stuckText(path, reason, workspace)}\n`)
      const unknown = snapshot === undefined && workspace.own && incomplete.length > 0
      if (stuck.length > 0 || unknown || options.keep === true) await holdOn(workspace)
      await board.destroy(options.force === true)
      if (stuck.length > 0) return 1
      if (unknown) {
        io.err(
          `its board is gone, so it is not known whether they are complete: they stay in ${workspace.dir}\n`,
        )
        await forgetState(board)
        return 1
      }
      if (options.keep === true) io.err(`temporary files are left in ${workspace.dir}\n`)
      else io.err(`${counted(await removeTemporary(plan, workspace), 'temporary file')} removed\n`)
      await forgetState(board)
    } else await board.destroy(options.force === true)
    return 0
  })
}

export interface ExecOptions extends NameOptions {
  app: string
  command: readonly string[]
  cwd?: string
}

/** Runs one instance of a step under the library, with our own input and output. Its exit code is ours. */
export function streamExec(options: ExecOptions, io: StreamIo, signal?: AbortSignal): Promise<number> {
  return watchdog(io, async () => {
    const [word] = options.command
    if (word === undefined) {
      throw new StreamError('MR_STREAM_STEPS', 'there is nothing to run', 'write -- program arguments')
    }
    const board = new Board(await streamTools(io.err), nameOf(options))
    const snapshot = await board.ps()
    if (snapshot === undefined) throw notUp(board)
    const steps = snapshot.steps.map(step => step.name)
    if (!steps.includes(options.app)) {
      throw new StreamError(
        'MR_STREAM_STEPS',
        `'${board.workflow}' has no step '${options.app}'`,
        `the steps are ${steps.join(', ')}`,
      )
    }
    const here = (await readState(board))?.steps
    if (here !== undefined && !here.includes(options.app)) {
      throw new StreamError(
        'MR_STREAM_STEPS',
        `step '${options.app}' is not for this node`,
        here.length === 0
          ? 'no step is'
          : `its steps are ${here.join(', ')}; 'stream up' said which node has which`,
      )
    }
    const cwd = options.cwd ?? process.cwd()
    const path = findProgram(word, cwd)
    const fault = path === undefined ? undefined : inspectProgram(path).fault
    // Static and set-uid programs are named by the tool itself; the rest only we know.
    if (fault !== undefined) io.err(`warning: ${path} ${fault}; it is not intercepted\n`)
    const child = board.exec(options.app, options.command, { cwd, stdio: 'inherit' })
    const stop = (): boolean => child.kill('SIGTERM')
    signal?.addEventListener('abort', stop)
    const code = await new Promise<number>(done => {
      child.on('error', () => done(127))
      child.on('close', (exit, killed) => done(exit ?? (killed === 'SIGINT' ? 130 : 143)))
    })
    signal?.removeEventListener('abort', stop)
    return signal?.aborted === true ? 130 : code
  })
}

export interface PsOptions extends NameOptions {
  /** The lines of the board as they are, one JSON object each. */
  json?: boolean
}

/** What runs and who waits for whom, in the workflow of that name or, without one, in all of this user. */
export function streamPs(options: PsOptions, io: StreamIo): Promise<number> {
  return watchdog(io, async () => {
    const tools = await streamTools(io.err)
    const named = options.workflow ?? process.env['CAPIO_WORKFLOW_NAME']
    const names =
      named === undefined ? (await new Board(tools, '-').list()).map(board => board.workflow) : [named]
    if (names.length === 0) io.err('no workflow is up\n')
    for (const name of names) {
      const board = new Board(tools, name)
      const snapshot = await board.ps()
      if (snapshot === undefined) {
        if (named !== undefined) throw notUp(board)
        continue
      }
      if (options.json === true) {
        const { board: head, ...rest } = snapshot
        for (const line of [head, ...Object.values(rest).flat()]) io.out(`${JSON.stringify(line)}\n`)
        continue
      }
      io.out(`${name} in ${snapshot.board?.dir ?? '?'}\n`)
      for (const step of snapshot.steps) {
        const state = step.failed
          ? 'failed'
          : step.ended
            ? 'ended'
            : step.running > 0
              ? 'running'
              : 'not started'
        io.out(`  step ${step.name}: ${state}\n`)
      }
      const state = await readState(board)
      if (state !== undefined) {
        const states = new Progress(state.plan).look(snapshot, Date.now())
        io.out(
          progressLines(states, 100, 50)
            .map(line => `${line}\n`)
            .join(''),
        )
      }
      for (const wait of snapshot.waits) io.out(`  ${waitText(wait, snapshot.nodes)}\n`)
      for (const link of snapshot.nodes?.links ?? []) io.out(`  ${linkText(link)}\n`)
    }
    return 0
  })
}

function readTimes(plan: Plan, texts: readonly string[]): Map<string, number> {
  const out = new Map<string, number>()
  for (const text of texts) {
    const [, name = '', count] = /^(.+)=([1-9]\d{0,5})$/.exec(text) ?? []
    if (!plan.steps.some(step => step.name === name)) {
      const fix = `write STEP=N; the steps are ${plan.steps.map(step => step.name).join(', ')}`
      throw new StreamError('MR_STREAM_STEPS', `'${text}' does not say how often a step is started`, fix)
    }
    out.set(name, Number(count))
  }
  return out
}

const nameOf = (options: NameOptions): string =>
  options.workflow ?? process.env['CAPIO_WORKFLOW_NAME'] ?? 'CAPIO'

const notUp = (board: Board): StreamError =>
  new StreamError(
    'MR_STREAM_BOARD',
    `no workflow '${board.workflow}' is up`,
    "start it: 'millrace stream up Config.json'",
  )

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
