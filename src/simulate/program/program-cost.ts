import type { Datum } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import type { Slot } from '../../model/capture/call.ts'
import { evaluateCost } from '../../model/options/cost.ts'
import type { KnownCost } from '../../model/options/cost.ts'
import type { Definition } from '../../model/definition.ts'
import { evaluate } from '../../model/options/options.ts'
import type { Work } from '../execution.ts'

/** What a call costs: what the task's `cost` says of it, and the sizes of the files that it uses. */
export function buildWork(
  definition: Definition,
  args: readonly unknown[],
  slots: readonly Slot[],
  sizeOf: (datum: Datum) => number,
): Work {
  const what = `${definition.key.startsWith('flow#') ? 'rule' : 'task'} ${definition.name}`
  const { cost, size, io } = definition.options
  if (!cost && !io) {
    throw new MillraceError(
      'MR_SIMULATION',
      `${what} has no cost: a simulation cannot know how long it takes`,
      {
        hint: "Give it one: cost: { compute: 3, reads: '290MB', writes: '10MB' }, each a number or a function.",
      },
    )
  }
  const { compute, reads, writes, ready, speedUp } = evaluateCost(what, cost ?? {}, args)
  const written = writes ?? evaluate(what, 'size', size, args) ?? 0
  const isRead = ({ kind, mode }: Slot): boolean => kind !== 'value' && mode !== 'out'
  const isWritten = ({ kind, mode }: Slot): boolean => kind !== 'value' && mode !== 'in'
  const readFiles = slots.filter(isRead).length
  const writtenFiles = slots.filter(isWritten).length
  const bytes = slots.map(slot => {
    // A file that is read and written has one size; what is written is what it has then.
    if (isWritten(slot)) return written / writtenFiles
    if (isRead(slot)) return reads === null ? sizeOf(slot.datum) : reads / readFiles
    return 0
  })
  const hasFiles = readFiles + writtenFiles > 0
  return {
    compute,
    ...(speedUp && { speedUp }),
    bytes: hasFiles ? bytes : null,
    read: readFiles === 0 ? (reads ?? 0) : 0,
    write: writtenFiles === 0 ? written : 0,
    ...releasesOf(definition, ready, slots.length, compute),
  }
}

/** What a call makes before its end: after the accesses of its arguments come a stream and its end, then values. */
function releasesOf(
  { name, stream, returns }: Definition,
  ready: KnownCost['ready'],
  first: number,
  compute: number,
): Pick<Work, 'releases'> {
  if (!ready) {
    if (!stream) return {}
    throw new MillraceError('MR_SIMULATION', `task ${name} is a generator, and its cost has no ready`, {
      hint: 'Say how many values come, or after which part of its computing each does: cost: { compute: 10, ready: 5 }.',
    })
  }
  if (!stream && ready.length > returns) {
    const has = returns === 0 ? 'has no results' : `has ${returns} results`
    throw new MillraceError(
      'MR_SIMULATION',
      `task ${name} ${has}, and by cost.ready ${ready.length} come before its end`,
      { hint: 'Only values of a generator, or of a task with `returns`, can come before its end.' },
    )
  }
  const releases = ready.map((part, i) => ({ access: first + (stream ? 2 : 0) + i, after: part * compute }))
  // A stream can be taken from its first value on.
  if (stream && ready.length > 0) releases.unshift({ access: first, after: Math.min(...ready) * compute })
  return { releases }
}
