import type { FailureFacts, RunEvent } from '../../core/events.ts'
import { STACK_FRAMES, isForeignFrame } from '../../general/places.ts'
import { formatDuration, plural } from '../format.ts'
import type { Paint } from './paint.ts'
import type { Statistics } from '../statistics/statistics.ts'
import { shellQuote } from '../../general/shell-quote.ts'
import { clean, cleanLines } from '../text.ts'

type Failed = Extract<RunEvent, { type: 'failed' }>
type RunStarted = Extract<RunEvent, { type: 'run-started' }>

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
    const cut = failure.tailCut
    add('output', cut ? `${tail.length} of ${cut.lines ?? 'many'} lines` : plural(tail.length, 'line'))
    tail.forEach((line, i) => {
      if (i === cut?.first) lines.push(`  ${paint.dim('| …')}`)
      lines.push(`  ${paint.dim('|')} ${line}`)
    })
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

/** One line for each failure that was shown in full before. */
export function keptFailureLines(statistics: Statistics, paint: Paint): string[] {
  const { failures, failureCount } = statistics
  return [
    ...failures.map(event => failedLine(event, statistics, paint)),
    ...unkeptLines(failureCount - failures.length),
  ]
}

const failedLine = (event: Failed, statistics: Statistics, paint: Paint): string =>
  `${paint.bad('failed')} ${failureLine(event, statistics.failedName(event.task))}`

export function keptFailureBlocks(statistics: Statistics, limit: number, paint: Paint): string[] {
  const { failures, failureCount, run } = statistics
  const lines: string[] = []
  failures.slice(0, limit).forEach((event, index) => {
    if (index > 0) lines.push('')
    lines.push(...failureBlock(event, statistics.failedName(event.task), run, paint))
  })
  const others = failures.slice(limit)
  if (others.length > 0) lines.push('')
  for (const event of others) lines.push(failedLine(event, statistics, paint))
  return [...lines, ...unkeptLines(failureCount - failures.length)]
}

const unkeptLines = (count: number): string[] =>
  count > 0 ? [`and ${count} more ${count === 1 ? 'failure' : 'failures'}, all in the journal`] : []

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

/** The frames of the user's own code. Users can do nothing about those of Node and of Millrace. */
function frames(failure: FailureFacts): string[] {
  const all = cleanLines(failure.stack ?? '')
    .map(line => line.trim())
    .filter(line => line.startsWith('at ') && !line.includes('node:'))
  const own = all.filter(line => !isForeignFrame(line))
  const isKnown = failure.code?.startsWith('MR_') ?? false
  return (own.length > 0 || isKnown ? own : all).slice(0, STACK_FRAMES)
}

function rerunCommand(failure: FailureFacts, run: RunStarted | null): string | null {
  if (failure.command !== undefined && !failure.needsRun) {
    const command = clean(failure.command)
    return failure.cwd === undefined ? command : `cd ${shellQuote(failure.cwd)} && ${command}`
  }
  if (run === null) return null
  if (run.again !== undefined) return clean(run.again)
  const args = run.args.length > 0 ? ['--', ...run.args] : []
  return ['millrace run', ...[run.program, ...args].map(shellQuote)].join(' ')
}
