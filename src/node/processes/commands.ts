import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import type { Task } from '../../core/tasks/task.ts'
import type { CommandRequest, CommandResult } from './command-process.ts'
import type { ProcessPort } from './process-port.ts'
import { SlotArgument } from '../../model/capture/call.ts'
import { ExitError } from '../../model/errors.ts'
import { mpiLaunch, withoutScheduler } from '../mpi/launcher.ts'
import { checkShape } from '../../model/options/option-shapes.ts'
import { NOTHING, Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import type { Argv, CommandForm, CommandHooks } from '../../model/command-form.ts'
import type { ApartFolder } from '../files/apart-files.ts'
import { attemptOf, jobOf } from '../job.ts'
import { logPath } from '../logs.ts'

export interface CommandOutcome extends Omit<CommandResult, 'exitCode'> {
  exitCode: number
  /** Nothing was written, because the files in place are right. */
  kept?: boolean
  /** How it ended is a failure. */
  error?: ExitError
}

/** What is needed to run commands that the task itself does not say. */
export interface CommandContext {
  processes: ProcessPort
  run: string
  /** The name of the machine. */
  node: string
  /** With MILLRACE_RUN, and variables that say which CPUs the task has. */
  environment(task: Task): Readonly<Record<string, string>>
  logs: string | null
  /** CPUs to bind the task's program to; null for none. */
  cpusOf(task: Task): readonly number[] | null
  decode(stored: Stored, slots: unknown[]): unknown
  valueOf(task: Task, slot: number): Kept
  /** Of a node that does not see our folders. */
  folder: ApartFolder | null
  /** Commands that read or write streams: makes the program a step of theirs, and hears when it was started. */
  step: ((request: CommandRequest) => CommandRequest) | null
  began(task: Task): void
}

/** The end of an attempt that needed none. */
const NO_PROGRAM = {
  cameBack: false,
  exitCode: 0,
  signal: null,
  printed: false,
  starved: false,
  usage: null,
} as const

/** Hears, once, what became of an attempt. */
export interface CommandEnd {
  ended(outcome: CommandOutcome): void
  failed(error: unknown): void
}

/** Asks the front end, builds the command line of a task and runs it. */
export async function runCommand(task: Task, context: CommandContext): Promise<CommandOutcome> {
  const { hooks } = formOf(task)
  // A front end looks at the files itself, where they are here.
  const args = argumentsOf(task, context, hooks !== undefined)
  const beganAt = performance.now()
  const begun = hooks && (await begin(task, hooks, args))
  if (begun === 'made' || begun === 'kept') {
    const took = performance.now() - beganAt
    return { ...NO_PROGRAM, beganAt, took, kept: begun === 'kept' }
  }
  const request = prepare(task, context, args, begun && thereIn(task, begun))
  return new Promise((resolve, reject) => {
    startProgram(task, context, request, { ended: resolve, failed: reject })
  })
}

/** The same without asking, for commands that have no front end. */
export function startCommand(task: Task, context: CommandContext, end: CommandEnd): void {
  startProgram(task, context, prepare(task, context, argumentsOf(task, context, false), undefined), end)
}

function startProgram(task: Task, context: CommandContext, request: CommandRequest, end: CommandEnd): void {
  const process = context.processes.create()
  attemptOf(task).withProgram().process = process
  process.start(context.step ? context.step(request) : request, {
    ended: result => {
      const { exitCode, cameBack } = result
      let isAccepted = false
      try {
        isAccepted = exitCode !== null && accepted(exitCode, formOf(task).exitCodes)
      } catch (error) {
        return end.failed(error)
      }
      if (isAccepted) end.ended(result as CommandOutcome)
      else if (cameBack) end.ended({ ...result, exitCode: -1 })
      else void failure(request, result, context).then(outcome => end.ended(outcome))
    },
    failed: error => end.failed(error),
  })
  if (context.step) context.began(task)
}

async function failure(
  { argv, cwd }: CommandRequest,
  result: CommandResult,
  { logs }: CommandContext,
): Promise<CommandOutcome> {
  const { exitCode, signal } = result
  const { circumstance, hint } = whyKilled(result)
  const error = new ExitError(
    argv[0] ?? '',
    exitCode,
    signal,
    circumstance + (await shortage(logs ?? cwd)),
    hint,
  )
  return { ...result, exitCode: exitCode ?? -1, error }
}

/** Of a program that is killed, nothing can be read in its output. */
function whyKilled({ signal, starved, usage }: CommandResult): { circumstance: string; hint?: string } {
  if (starved) {
    const held = usage ? `; it held ${Math.ceil(usage.peakBytes / 1e6)} MB` : ''
    return {
      circumstance: ` when the system was out of memory${held}`,
      hint: "Say how much it needs (memory: '2GB'), so that fewer run at one time, or let it use less.",
    }
  }
  if (signal !== 'SIGKILL') return { circumstance: '' }
  return { circumstance: '', hint: 'A user, a program, or the system (for lack of memory) killed it.' }
}

/** Whether a front end is asked before it starts. */
export const hasHooks = (task: Task): boolean => formOf(task).hooks !== undefined

const formOf = (task: Task): CommandForm => jobOf(task).definition.command as CommandForm

/** On a full disk, what the program said of it cannot be written to its log either. */
async function shortage(folder: string): Promise<string> {
  const room = await statfs(folder).catch(() => null)
  if (!room) return ''
  if (room.blocks > 0 && room.bavail === 0) return `; there is no room left on the disk of ${folder}`
  return room.files > 0 && room.ffree === 0 ? `; the disk of ${folder} has no inodes left for more files` : ''
}

/** A function cannot be killed. When it has to stop, its end is not waited for. */
function begin(task: Task, hooks: CommandHooks, args: readonly unknown[]): ReturnType<CommandHooks['begin']> {
  let controller: AbortController | null = null
  return new Promise((resolve, reject) => {
    attemptOf(task).withProgram().process = {
      stop: () => {
        const stopped = (controller ??= new AbortController())
        stopped.abort()
        reject(stopped.signal.reason as Error)
      },
    }
    hooks.begin(args, () => (controller ??= new AbortController()).signal).then(resolve, reject)
  })
}

function accepted(code: number, exitCodes: CommandForm['exitCodes']): boolean {
  if (exitCodes === undefined) return code === 0
  return typeof exitCodes === 'function' ? exitCodes(code) : exitCodes.includes(code)
}

/** The arguments as the command's functions see them: values decoded, files as paths. */
function argumentsOf(task: Task, context: CommandContext, isHere: boolean): unknown[] {
  const { args, slots } = jobOf(task)
  const attempt = attemptOf(task)
  const paths = (isHere ? null : attempt.seen) ?? attempt.paths
  const values = slots.map((slot, i) => {
    if (slot.kind !== 'value') return paths?.[i]
    const kept = context.valueOf(task, i)
    if (kept instanceof Stored) return context.decode(kept, [])
    return kept === NOTHING ? undefined : kept
  })
  return args.map(argument => {
    if (argument instanceof SlotArgument) {
      const value = values[argument.slot]
      return argument.within === null ? value : join(value as string, argument.within)
    }
    return argument instanceof Stored ? context.decode(argument, values) : argument
  })
}

/** Paths of its files, as the node has them. One that begins with another is replaced in the same way. */
function thereIn(task: Task, words: Argv): Argv {
  const { paths, seen } = attemptOf(task)
  const there = new Map<string, string>()
  for (const [i, path] of (seen && paths ? paths : []).entries())
    if (path?.startsWith('/') === true) there.set(path, seen?.[i] ?? path)
  if (there.size === 0) return words
  const any = new RegExp(
    [...there.keys()].map(path => path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'),
    'g',
  )
  return words.map(word =>
    typeof word === 'string' ? word.replace(any, path => there.get(path) ?? path) : word,
  )
}

const isWord = (word: unknown): boolean => typeof word === 'string' || typeof word === 'number'

function prepare(
  task: Task,
  context: CommandContext,
  args: readonly unknown[],
  begun: Argv | undefined,
): CommandRequest {
  const { definition } = jobOf(task)
  const form = formOf(task)
  const run = definition.variants[0]?.run as (...given: unknown[]) => unknown
  const argv = begun ?? run(...args)
  if (!Array.isArray(argv) || argv.length === 0 || !argv.every(isWord)) {
    throw new MillraceError('MR_OPTION', `command ${definition.name} did not give a list of words`, {
      hint: "Return an array such as ['sort', '-n', path]; for a shell write ['sh', '-c', text].",
    })
  }
  const evaluate = <T>(value: T | ((...given: never[]) => T) | undefined): T | undefined =>
    typeof value === 'function' ? (value as (...given: unknown[]) => T)(...args) : value
  const file = (position: number | undefined): string | null =>
    position === undefined ? null : (args[position] as string)
  const mpi = form.mpi ? mpiLaunch(task, form.mpi.cpus, context.node) : null
  const words = [...(mpi?.words ?? []), ...argv.map(String)]
  const cwd = evaluate<string>(form.cwd) ?? process.cwd()
  const what = `command ${definition.name}`
  if (form.cwd) checkShape(what, 'cwd', cwd)
  const { folder } = context
  const shown = folder ? words.map(word => word.replaceAll(folder.there('/'), '/')) : words
  attemptOf(task).withProgram().line = { words: shown, cwd: folder ? folder.here(cwd) : cwd }
  const own = evaluate<Readonly<Record<string, string>>>(form.env)
  if (own) checkShape(what, 'env', own)
  return {
    argv: words,
    cwd: folder ? folder.there(folder.here(cwd)) : cwd,
    env:
      own || mpi
        ? {
            ...(mpi ? withoutScheduler(context.environment(task)) : context.environment(task)),
            ...mpi?.variables,
            ...own,
            MILLRACE_RUN: context.run,
          }
        : context.environment(task),
    stdin: file(form.stdin),
    stdout: file(form.stdout),
    stderr: file(form.stderr),
    log: logThere(logPath(context.logs, task), folder),
    cpus: context.cpusOf(task),
    limits: form.limits,
    lane: task.queueable ? task.lane : null,
  }
}

const logThere = (log: string | undefined, folder: ApartFolder | null): string | null =>
  log === undefined ? null : (folder?.there(log) ?? log)
