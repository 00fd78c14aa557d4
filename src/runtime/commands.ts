import { statfs } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { MillraceError } from '../core/errors.ts'
import type { Task } from '../core/task.ts'
import type { CommandRequest, CommandResult } from '../execute/command-process.ts'
import type { Processes } from '../execute/processes.ts'
import { pathIn } from '../core/data.ts'
import type { Access } from '../core/data.ts'
import { SlotArgument } from '../model/call.ts'
import { ExitError } from '../model/errors.ts'
import { checkShape } from '../model/option-shapes.ts'
import { NOTHING, Stored } from '../model/stored.ts'
import type { Kept } from '../model/stored.ts'
import type { Argv, CommandExtra, CommandHooks } from '../model/task.ts'
import { shellQuote } from '../report/text.ts'
import { jobOf, liveOf } from './job.ts'
import { logPath } from './logs.ts'

export interface CommandOutcome extends Omit<CommandResult, 'exitCode'> {
  exitCode: number
  /** Nothing was written, because the files in place are right. */
  kept?: boolean
  /** How it ended is a failure. */
  error?: ExitError
}

/** What is needed to run commands that the task itself does not say. */
export interface CommandContext {
  processes: Processes
  run: string
  /** Of all commands, with MILLRACE_RUN in it. */
  environment(): Readonly<Record<string, string>>
  logs: string | null
  /** CPUs to bind the task's program to; null for none. */
  cpusOf(task: Task): readonly number[] | null
  decode(stored: Stored, slots: unknown[]): unknown
  valueOf(task: Task, slot: number): Kept
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

/** Asks whoever has a say in it, builds the command line of a task and runs it. */
export async function runCommand(task: Task, context: CommandContext): Promise<CommandOutcome> {
  const args = argumentsOf(task, context)
  const { hooks } = extraOf(task)
  const beganAt = performance.now()
  const begun = hooks && (await begin(task, hooks, args))
  if (begun === 'made' || begun === 'kept') {
    const took = performance.now() - beganAt
    return { ...NO_PROGRAM, beganAt, took, kept: begun === 'kept' }
  }
  const request = prepare(task, context, args, begun)
  return new Promise((resolve, reject) => {
    startProgram(task, context, request, { ended: resolve, failed: reject })
  })
}

/** The same at once, where nobody has a say in it. */
export function startCommand(task: Task, context: CommandContext, end: CommandEnd): void {
  startProgram(task, context, prepare(task, context, argumentsOf(task, context), undefined), end)
}

function startProgram(task: Task, context: CommandContext, request: CommandRequest, end: CommandEnd): void {
  const process = context.processes.create()
  liveOf(task).process = process
  process.start(context.step ? context.step(request) : request, {
    ended: result => {
      const { exitCode, cameBack } = result
      let isAccepted = false
      try {
        isAccepted = exitCode !== null && accepted(exitCode, extraOf(task).exitCodes)
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
  return { circumstance: '', hint: 'Somebody killed it, or the system did for lack of memory.' }
}

/** Somebody is to be asked before it starts. */
export const hasHooks = (task: Task): boolean => extraOf(task).hooks !== undefined

const extraOf = (task: Task): CommandExtra => jobOf(task).definition.extra as CommandExtra

/** On a full disk, what the program said of it cannot be written to its log either. */
async function shortage(folder: string): Promise<string> {
  const room = await statfs(folder).catch(() => null)
  return room && room.blocks > 0 && room.bavail === 0
    ? `; there is no room left on the disk of ${folder}`
    : ''
}

/** A function cannot be killed: when it is to stop, nobody waits for it any more. */
function begin(task: Task, hooks: CommandHooks, args: readonly unknown[]): ReturnType<CommandHooks['begin']> {
  let controller: AbortController | null = null
  return new Promise((resolve, reject) => {
    liveOf(task).process = {
      stop: () => {
        const stopped = (controller ??= new AbortController())
        stopped.abort()
        reject(stopped.signal.reason as Error)
      },
    }
    hooks.begin(args, () => (controller ??= new AbortController()).signal).then(resolve, reject)
  })
}

function accepted(code: number, exitCodes: CommandExtra['exitCodes']): boolean {
  if (exitCodes === undefined) return code === 0
  return typeof exitCodes === 'function' ? exitCodes(code) : exitCodes.includes(code)
}

/** The arguments as the command's functions see them: values decoded, files as paths. */
function argumentsOf(task: Task, context: CommandContext): unknown[] {
  const { args, slots } = jobOf(task)
  const { paths } = liveOf(task)
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

/** What is typed to see the command again; also shown when it fails. */
export function commandLine(argv: readonly string[], task: Task): string {
  return atHome(argv, task).map(shellQuote).join(' ')
}

/** The words with outputs under their own names: where the attempt wrote them is gone. */
function atHome(argv: readonly string[], task: Task): readonly string[] {
  const { slots, live } = jobOf(task)
  let words = argv
  for (let i = 0; i < slots.length; i++) {
    const staged = live?.paths?.[i]
    const access = task.accesses[i] as Access
    const path = pathIn(access)
    if (!staged || !path || staged === path || !access.write) continue
    const from = live?.command?.cwd ?? ''
    const moves = [
      [`${dirname(staged)}/`, `${dirname(path)}/`],
      [`${relative(from, dirname(staged))}/`, relative(from, path).slice(0, -basename(path).length)],
    ] as const
    words = words.map(word => moves.reduce((text, [there, here]) => text.replaceAll(there, here), word))
  }
  return words
}

const isWord = (word: unknown): boolean => typeof word === 'string' || typeof word === 'number'

function prepare(
  task: Task,
  context: CommandContext,
  args: readonly unknown[],
  begun: Argv | undefined,
): CommandRequest {
  const { definition } = jobOf(task)
  const extra = extraOf(task)
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
  const words = argv.map(String)
  const cwd = evaluate<string>(extra.cwd) ?? process.cwd()
  const what = `command ${definition.name}`
  if (extra.cwd) checkShape(what, 'cwd', cwd)
  liveOf(task).command = { words, cwd }
  const own = evaluate<Readonly<Record<string, string>>>(extra.env)
  if (own) checkShape(what, 'env', own)
  return {
    argv: words,
    cwd,
    env: own ? { ...context.environment(), ...own, MILLRACE_RUN: context.run } : context.environment(),
    stdin: file(extra.stdin),
    stdout: file(extra.stdout),
    stderr: file(extra.stderr),
    log: logPath(context.logs, task) ?? null,
    cpus: context.cpusOf(task),
    limits: extra.limits,
    lane: task.queueable ? task.lane : null,
  }
}
