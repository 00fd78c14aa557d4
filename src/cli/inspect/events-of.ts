import type { RunEvent } from '../../core/events.ts'
import { formatBytes } from '../../report/format.ts'
import { readJournal } from '../../report/journal/reader.ts'
import type { RunInfo } from '../../report/journal/runs.ts'
import { remark } from '../output.ts'

/** The events of a run. Says when some cannot be read, because the answer could differ with them. */
export function eventsOf(run: RunInfo): AsyncGenerator<RunEvent> {
  return readJournal(run.journal, bytes => {
    const told = unreadText(run, bytes)
    if (told !== null) remark(told)
  })
}

/** A note about bytes at the end of a journal that are no events, or null while they are being written. */
export function unreadText({ outcome }: RunInfo, bytes: number): string | null {
  if (bytes === 0 || outcome === 'running') return null
  const ended = outcome === 'killed' || outcome === 'unreadable' ? '' : ` The run itself ended: ${outcome}.`
  return `The last ${formatBytes(bytes)} of its journal cannot be read: it was cut or damaged there.${ended}`
}
