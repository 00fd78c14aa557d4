import { basename, dirname, relative } from 'node:path'
import { pathIn } from '../../core/data/datum.ts'
import type { Access } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import { shellQuote } from '../../general/shell-quote.ts'
import { jobOf } from '../job.ts'

/** What is typed to see the command again; also shown when it fails. */
export function commandLine(argv: readonly string[], task: Task): string {
  if (jobOf(task).definition.command?.secret) return `${shellQuote(argv[0] ?? '')} …`
  return atHome(argv, task).map(shellQuote).join(' ')
}

/** The words with outputs under their own names: where the attempt wrote them is gone. */
function atHome(argv: readonly string[], task: Task): readonly string[] {
  const { slots, attempt } = jobOf(task)
  let words = argv
  for (let i = 0; i < slots.length; i++) {
    const staged = attempt?.paths?.[i]
    const access = task.accesses[i] as Access
    const path = pathIn(access)
    if (!staged || !path || staged === path || !access.write) continue
    const from = attempt?.program?.line?.cwd ?? ''
    const moves = [
      [`${dirname(staged)}/`, `${dirname(path)}/`],
      [`${relative(from, dirname(staged))}/`, relative(from, path).slice(0, -basename(path).length)],
    ] as const
    words = words.map(word => moves.reduce((text, [there, here]) => text.replaceAll(there, here), word))
  }
  return words
}
