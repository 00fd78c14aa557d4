import { clean } from '../report/text.ts'
import { plural } from '../report/format.ts'
import { commandText } from '../flow/work.ts'
import { NO_FILE, asArgument } from '../flow/work.ts'
import type { Work } from '../flow/work.ts'
import type { FlowRun } from '../runtime/flow-run.ts'

/** Why each task is done. */
export function explainLines(works: readonly Work[], run: FlowRun): string[] {
  return works.map(work => `  ${nameOf(work, run)}: ${clean(work.reason)}`)
}

/** What a run would do: the commands, and how many of each rule. */
export function planLines(run: FlowRun, explain: boolean): string[] {
  const lines: string[] = []
  const counts = new Map<string, number>()
  for (const work of run.planned) {
    counts.set(work.rule.name, (counts.get(work.rule.name) ?? 0) + 1)
    const maybe = work.state === 'maybe' ? ' (if that changes what it reads)' : ''
    if (explain) lines.push(`# ${nameOf(work, run)}: ${clean(work.reason)}${maybe}`)
    lines.push(commandLine(work, run))
  }
  if (run.planned.length === 0) lines.push('nothing to do, all is up to date')
  else {
    lines.push(`# ${plural(run.planned.length, 'task')}`)
    for (const [name, count] of counts) lines.push(`#   ${count} x ${clean(name)}`)
  }
  for (const name of run.openEnds) {
    lines.push(`# what target ${clean(name)} needs after that is known when it has been made`)
  }
  return lines
}

const nameOf = (work: Work, run: FlowRun): string => clean(run.state.files.path(work.outputs[0] as number))

function commandLine(work: Work, run: FlowRun): string {
  const names = (files: readonly number[]): (string | undefined)[] =>
    files.map(file => (file === NO_FILE ? undefined : asArgument(run.state.files.path(file))))
  const text = commandText(work, names(work.outputs) as string[], names(work.inputs))
  return text ?? `# ${nameOf(work, run)} is made by a function at ${work.rule.site}`
}
