import type { Kept } from '../board/keeper.ts'
import { ruleFinder, type Plan } from '../board/plan.ts'
import { byteText, durationText, type StreamState } from './progress.ts'
import type { Instance } from './instance.ts'
import type { EventLine, Snapshot } from '../board/snapshot.ts'
import { counted } from '../board/table.ts'
import type { Workspace } from '../board/workspace.ts'

/** A step that failed, with what the board knows of it. */
export interface StepFailure {
  instance: Instance
  /** How it ended, in words. */
  reason: string
  /** What happened to it, after which steps it failed, and what became of its readers. */
  facts: string[]
}

/** Why a workflow failed: the steps that began it come first, then those that only had to follow. */
export function failuresOf(
  plan: Plan,
  instances: readonly Instance[],
  last: Snapshot | undefined,
): StepFailure[] {
  const failed = instances.filter(instance => instance.code !== 0)
  const files = (last?.files ?? []).filter(file => file.state === 'failed')
  const find = ruleFinder(plan)
  const readers = (step: string): Map<string, string[]> => {
    const out = new Map<string, string[]>()
    for (const { path, producers } of files.filter(file => file.producers.includes(step))) {
      const names = (find(path)?.consumers ?? []).filter(name => !producers.includes(name))
      for (const name of names) out.set(name, [...(out.get(name) ?? []), path])
    }
    return out
  }
  const codes = new Map(failed.map(instance => [instance.step, instance.code!]))
  const followed = new Set(
    [...codes.keys()].flatMap(step => [...readers(step).keys()]).filter(step => codes.has(step)),
  )
  // What failed only because of another comes after its cause.
  const order = failed.toSorted(
    (a, b) => Number(followed.has(a.step)) - Number(followed.has(b.step)) || a.ended! - b.ended!,
  )
  return order.map(instance => {
    const facts = eventsOf(last, instance.step).map(event => event.text)
    // Other reasons say what became of a step, which is told as such. Several nodes may have the same one.
    const coded = files.flatMap(({ path, reason = '' }) => {
      const isRead = find(path)?.consumers.includes(instance.step) === true
      return isRead && reason.startsWith('MR_') ? `'${path}': ${reason}` : []
    })
    facts.push(...new Set(coded))
    const causes = [...codes.keys()].filter(
      step => step !== instance.step && readers(step).has(instance.step),
    )
    if (causes.length > 0)
      facts.push(`after ${causes.map(step => `'${step}'`).join(' and ')} had failed, from which it reads`)
    for (const [reader, paths] of readers(instance.step)) {
      const code = codes.get(reader)
      const end = code === undefined ? 'ended with exit code 0' : `got EIO and ended with code ${code}`
      facts.push(`reader '${reader}' of ${listed(paths)} ${end}`)
    }
    return { instance, reason: reasonOf(instance.code!), facts }
  })
}

export function failureText(plan: Plan, instances: readonly Instance[], last: Snapshot | undefined): string {
  const blocks = failuresOf(plan, instances, last).map(({ instance, reason, facts }) => {
    const lines = [`step '${instance.step}' failed: ${reason}`, `  command: ${instance.command}`]
    lines.push(...facts.map(fact => `  ${fact}`))
    if (instance.tail.length > 0)
      lines.push('  last lines on stderr:', ...instance.tail.map(line => `    ${line}`))
    return lines.join('\n')
  })
  return `${blocks.join('\n')}\n`
}

/** Steps whose results may be wrong although they ended well: they read what was not final, or could not read. */
export const doubtsOf = (last: Snapshot | undefined): string[] =>
  (last?.events ?? []).flatMap(event => {
    switch (event.kind) {
      case 'trusted':
        return `step '${event.step}' may have read only a part of '${event.path}': ${event.text}`
      case 'rewritten':
        return `step '${event.step}' changed '${event.path}' too late: ${event.text}`
      case 'broken':
        return `step '${event.step}' is taken for failed: ${event.text}; what it had not completed is not kept`
      default:
        return []
    }
  })

export const doubtText = (last: Snapshot | undefined): string => linesOf(doubtsOf(last))

/** Programs that steps started and that the library does not see. */
export const unseenOf = (last: Snapshot | undefined, known: ReadonlySet<string> = new Set()): string[] =>
  (last?.events ?? [])
    .filter(event => event.kind === 'unseen' && !known.has(event.text.split(' is ')[0]!))
    .map(
      event =>
        `step '${event.step}' started a program that is not intercepted: ${event.text}. It waits for nothing by itself; files that its arguments name were complete when it started`,
    )

export const unseenText = (last: Snapshot | undefined): string =>
  linesOf(unseenOf(last).map(text => `warning: ${text}`))

const linesOf = (texts: readonly string[]): string => texts.map(text => `${text}\n`).join('')

export const damageText = (paths: string[]): string =>
  `there before, and written again only in part: ${listed(paths)}`

const eventsOf = (last: Snapshot | undefined, step: string): EventLine[] =>
  (last?.events ?? [])
    .filter(event => event.step === step && ['killed', 'deadlock', 'timeout', 'full'].includes(event.kind))
    .slice(0, 5)

function reasonOf(code: number): string {
  if (code === 126) return 'its program cannot be executed'
  if (code === 127) return 'its program was not found'
  return code > 128 ? `killed by signal ${code - 128}` : `exit code ${code}`
}

/** How much went through the streams. */
export function streamedText(states: readonly StreamState[]): string {
  const bytes = states.reduce((sum, state) => sum + state.bytes, 0)
  const files = states.reduce((sum, state) => sum + state.files, 0)
  return `${counted(files, 'file')}, ${byteText(bytes)} through ${counted(states.length, 'stream')}`
}

/** Something about the files of a run that its user should know. */
export interface FileRemark {
  level: 'info' | 'warning'
  text: string
}

/** What became of the files. `removed`: undefined when temporary files were left. */
export function fileRemarks(kept: Kept, removed: number | undefined, workspace: Workspace): FileRemark[] {
  const remarks: FileRemark[] = []
  const info = (text: string): unknown => remarks.push({ level: 'info', text })
  const warn = (text: string): unknown => remarks.push({ level: 'warning', text })
  if (kept.kept.length > 0) info(`kept in ${workspace.place}: ${listed(kept.kept)}`)
  if (kept.incomplete.length > 0) warn(`never completed, so not kept: ${listed(kept.incomplete)}`)
  if (kept.damaged.length > 0) warn(damageText(kept.damaged))
  for (const { path, reason } of kept.stuck) warn(stuckText(path, reason, workspace))
  for (const { path, nodes } of kept.contested ?? [])
    warn(
      `${path}: steps on ${nodes.join(' and ')} wrote it, and what is in its place is of one of them only (MR_STREAM_WRITERS)`,
    )
  if (kept.moved > 0) info(`${counted(kept.moved, 'file')} moved to another layer while it ran`)
  if (removed === undefined) info(`temporary files are left in ${workspace.dir}`)
  else if (removed > 0) info(`${counted(removed, 'temporary file')} removed`)
  return remarks
}

export interface Summary {
  plan: Plan
  instances: readonly Instance[]
  states: StreamState[]
  kept: Kept
  /** undefined: they were left. */
  removed: number | undefined
  elapsed: number
  cut: boolean
  /** A step read what was not final, or could not read an input and ended with exit code 0. */
  doubtful: boolean
  workspace: Workspace
}

/** At most a dozen lines, the outcome first. */
export function summaryText(summary: Summary): string {
  const { plan, instances, states, kept, removed, elapsed, cut, doubtful, workspace } = summary
  const failed = instances.filter(instance => instance.code !== 0)
  const outcome = cut ? 'stopped' : failed.length > 0 ? 'failed' : doubtful ? 'in doubt' : 'done'
  const busy = instances.reduce((sum, instance) => sum + (instance.ended! - instance.started), 0)
  const ok = instances.length - failed.length
  const lines = [
    `${plan.name}: ${outcome} in ${durationText(elapsed)}: ${ok} of ${counted(instances.length, 'step')} ok`,
    `  ${streamedText(states)}; on average ${(busy / Math.max(1, elapsed)).toFixed(1)} steps at once`,
  ]
  for (const { text } of fileRemarks(kept, removed, workspace)) lines.push(`  ${text}`)
  if (doubtful) lines.push('  the results of a step may be wrong (see above)')
  if (failed.length > 0 && !cut)
    lines.push(`  failed: ${[...new Set(failed.map(instance => instance.step))].join(', ')} (see above)`)
  return `${lines.join('\n')}\n`
}

function listed(names: string[]): string {
  return names.length <= 5 ? names.join(', ') : `${names.slice(0, 4).join(', ')} and ${names.length - 4} more`
}

export const stuckText = (path: string, reason: string, workspace: Workspace): string =>
  `${path} could not be brought to ${workspace.place}: ${reason}; it is left in ${workspace.dir}`
