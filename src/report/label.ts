import type { RunEvent } from '../core/events.ts'

/** What tells a task from others of its kind: what its definition says, else a file of it; it may be nothing. */
export const labelOf = ({ label, files, writes }: Extract<RunEvent, { type: 'submitted' }>): string =>
  label ?? fileLabel(files, writes)

export const withLabel = (name: string, label: string): string => (label === '' ? name : `${name} ${label}`)

/** Whether a person means this task: by its kind (`align`), its label (`s=s4`) or both (`align s=s4`). */
export const isMeant = (asked: string, kind: string, label: string): boolean =>
  asked === kind || (label !== '' && (asked === label || asked === withLabel(kind, label)))

/** The first file that it writes, else reads. */
function fileLabel(
  files: readonly { version: number; path: string }[] | undefined,
  writes: readonly number[],
): string {
  if (files === undefined || files.length === 0) return ''
  const written = new Set(writes)
  const made = files.filter(({ version }) => written.has(version))
  const [first, ...more] = made.length > 0 ? made : files
  const others = new Set(more.map(({ path }) => path)).size
  const name = first?.path.slice(first.path.lastIndexOf('/') + 1) ?? ''
  return others > 0 ? `${name} +${others}` : name
}
