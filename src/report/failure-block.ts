import type { FailureFacts, RunEvent } from '../core/events.ts'
import { STACK_FRAMES, isForeignFrame } from '../general/places.ts'
import { formatDuration, plural } from './format.ts'
import type { Paint } from './paint.ts'
import type { Statistics } from './statistics.ts'
import { clean, cleanLines, shellQuote } from './text.ts'

type Failed = Extract<RunEvent, { type: 'failed' }>
type RunStarted = Extract<RunEvent, { type: 'run-started' }>

const TAIL_LINES = 20

/** All that a person needs to understand a failure and to try again, in one place. */
export function failureBlock(event: Failed, name: string, run: RunStarted | null, paint: Paint): string[] {
  const { failure } = event
  const tries = event.attempt > 1 ? `, attempt ${event.attempt}` : ''
  const lines = [`${paint.bad('failed')} ${paint.strong(clean(name))} at ${formatDuration(event.at)}${tries}`]
  const add = (label: string, text: string): void => {
    lines.push(`  ${paint.dim(label.padEnd(8))} ${text}`.trimEnd())
  }
  const [cause, ...more] = causeLines(failure)
  add('cause', cause ?? '')
  for (const line of more) add('', line)
  for (const frame of frames(failure)) add('', paint.dim(frame))
  if (failure.command !== undefined) add('command', clean(failure.command))
  if (failure.cwd !== undefined) add('cwd', clean(failure.cwd))
  const tail = cleanLines(failure.tail ?? '')
  if (tail.length > 0) {
    const shown = tail.slice(-TAIL_LINES)
    const all = plural(tail.length, 'line')
    add('output', shown.length < tail.length ? `the last ${shown.length} of ${all}` : all)
    for (const line of shown) lines.push(`  ${paint.dim('|')} ${line}`)
  }
  if (event.log !== undefined) add('log', clean(event.log))
  const rerun = rerunCommand(failure, run)
  if (rerun !== null) add('rerun', rerun)
  return lines
}

/** One line, for where a block would be too much. */
export function failureLine(event: Failed, name: string): string {
  return `${clean(name)}: ${causeLines(event.failure)[0] ?? ''}`
}

export function keptFailureBlocks(statistics: Statistics, limit: number, paint: Paint): string[] {
  const { failures, failureCount, run } = statistics
  const lines: string[] = []
  failures.slice(0, limit).forEach((event, index) => {
    if (index > 0) lines.push('')
    lines.push(...failureBlock(event, statistics.failedName(event.task), run, paint))
  })
  const others = failures.slice(limit)
  if (others.length > 0) lines.push('')
  for (const event of others) {
    lines.push(`${paint.bad('failed')} ${failureLine(event, statistics.failedName(event.task))}`)
  }
  const unkept = failureCount - failures.length
  if (unkept > 0)
    lines.push(`and ${unkept} more ${unkept === 1 ? 'failure' : 'failures'}, all in the journal`)
  return lines
}

function causeLines(failure: FailureFacts): string[] {
  const [first = '', ...more] = cleanLines(failure.message)
  const known = failure.code === undefined ? '' : ` [${failure.code}]`
  const facts: string[] = []
  if (failure.timedOut && !/time/i.test(first)) facts.push('timed out')
  if (failure.exitCode !== undefined && !first.includes(String(failure.exitCode))) {
    facts.push(`exit code ${failure.exitCode}`)
  }
  if (failure.signal !== undefined && !first.includes(failure.signal)) facts.push(failure.signal)
  const detail = facts.length > 0 ? ` (${facts.join(', ')})` : ''
  return [`${clean(failure.name)}: ${first}${detail}${known}`, ...more]
}

/** The frames of the user's own code: those of Node help nobody, and ours only whoever looks for a mistake of ours. */
function frames(failure: FailureFacts): string[] {
  const all = cleanLines(failure.stack ?? '')
    .map(line => line.trim())
    .filter(line => line.startsWith('at ') && !line.includes('node:'))
  const own = all.filter(line => !isForeignFrame(line))
  const isKnown = failure.code?.startsWith('MR_') ?? false
  return (own.length > 0 || isKnown ? own : all).slice(0, STACK_FRAMES)
}

function rerunCommand(failure: FailureFacts, run: RunStarted | null): string | null {
  if (failure.command !== undefined) {
    const command = clean(failure.command)
    return failure.cwd === undefined ? command : `cd ${shellQuote(failure.cwd)} && ${command}`
  }
  if (run === null) return null
  if (run.again !== undefined) return clean(run.again)
  const args = run.args.length > 0 ? ['--', ...run.args] : []
  return ['millrace run', ...[run.program, ...args].map(shellQuote)].join(' ')
}
