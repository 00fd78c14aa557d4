import { MillraceError } from '../../core/errors.ts'
import type { RunEvent } from '../../core/events.ts'
import { isMeant, labelOf } from '../../report/label.ts'
import { nearest } from '../../general/nearest.ts'

export interface FoundTask {
  id: number
  kind: string
  /** How many tasks of this name there are, when only the name was given. */
  among: number
  failed: boolean
}

/** A task by number (`12`, `#12`), by name or label (the first that failed, else the first), or by name and number (`align#12`). */
export async function findTask(events: AsyncIterable<RunEvent>, asked: string): Promise<FoundTask> {
  const match = /^(.*?)#?(\d+)$/s.exec(asked)
  const byId = match !== null && (match[1] === '' || asked.includes('#')) ? match : null
  const id = byId ? Number(byId[2]) : null
  const name = byId ? (byId[1] ?? '') : asked
  const kinds = new Map<number, string>()
  /** Only of tasks of that name, so that a journal of millions of others is no burden. */
  const named = new Set<number>()
  let found: FoundTask | null = null
  let last = -1
  for await (const event of events) {
    if (event.type === 'kind-defined') kinds.set(event.kind, event.name)
    else if (event.type === 'submitted') {
      last = Math.max(last, event.task)
      const kind = kinds.get(event.kind) ?? ''
      if (event.task === id) found = { id, kind, among: 1, failed: false }
      if (id !== null || !isMeant(name, kind, labelOf(event))) continue
      named.add(event.task)
      found ??= { id: event.task, kind, among: 0, failed: false }
    } else if (event.type === 'failed' && found && !found.failed && named.has(event.task)) {
      found.id = event.task
      found.failed = true
    }
  }
  if (!found || (id !== null && name !== '' && found.kind !== name)) {
    throw unknown(asked, id, found, last, new Set(kinds.values()))
  }
  return id === null ? { ...found, among: named.size } : found
}

function unknown(
  asked: string,
  id: number | null,
  found: FoundTask | null,
  last: number,
  kinds: Set<string>,
): MillraceError {
  const close = nearest(asked, kinds)
  const hint = found
    ? `Did you mean ${found.kind}#${found.id}?`
    : id !== null && last >= 0
      ? `Its tasks are numbered up to ${last}.`
      : close
        ? `Did you mean ${close}?`
        : kinds.size > 0
          ? `Its tasks are called ${[...kinds].slice(0, 10).join(', ')}.`
          : 'It has no tasks at all.'
  return new MillraceError('MR_JOURNAL', `this run has no task \`${asked}\``, { hint })
}
