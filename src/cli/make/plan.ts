import { existsSync } from 'node:fs'
import { clean } from '../../report/text.ts'
import { plural } from '../../report/format.ts'
import { commandText } from '../../flow/plan/work.ts'
import { NO_FILE, asArgument } from '../../flow/plan/work.ts'
import type { Work } from '../../flow/plan/work.ts'
import type { FlowRun } from '../../runtime/workflow/run.ts'

/** Why each task is done. */
export function explainLines(works: readonly Work[], run: FlowRun): string[] {
  return works.map(work => `  ${nameOf(work, run)}: ${reasonOf(work, run)}`)
}

/** What a run would do: the commands, and how many of each rule. */
export function planLines(run: FlowRun, explain: boolean): string[] {
  const lines: string[] = []
  const counts = new Map<string, number>()
  for (const work of run.planned) {
    counts.set(work.rule.name, (counts.get(work.rule.name) ?? 0) + 1)
    const maybe = work.state === 'maybe' ? ' (if that changes what it reads)' : ''
    if (explain) lines.push(`# ${nameOf(work, run)}: ${reasonOf(work, run)}${maybe}`)
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

/** Also reports outputs that are older than they look. */
function reasonOf(work: Work, run: FlowRun): string {
  const { files } = run.state
  const isThere = work.outputs.some(output => existsSync(files.path(output)))
  return `${clean(work.reason)}${isThere ? '; what is there is of an earlier run' : ''}`
}

const nameOf = (work: Work, run: FlowRun): string => clean(run.state.files.path(work.outputs[0] as number))

function commandLine(work: Work, run: FlowRun): string {
  const names = (files: readonly number[]): (string | undefined)[] =>
    files.map(file => (file === NO_FILE ? undefined : asArgument(run.state.files.path(file))))
  const text = commandText(work, names(work.outputs) as string[], names(work.inputs))
  return text ?? `# ${nameOf(work, run)} is made by a function at ${work.rule.site}`
}
