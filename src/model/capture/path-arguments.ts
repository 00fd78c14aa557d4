import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { AccessMode } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import { FORMS } from '../../core/tasks/form.ts'
import { SlotArgument, undoable } from './call.ts'
import type { Argument, Call, Slot } from './call.ts'
import type { DatumKind, Direction } from '../options/directions.ts'
import { Future } from '../future.ts'
import { Paths } from './paths.ts'
import { addSlot } from './slots.ts'
import { StreamFile } from '../stream.ts'

/** An argument that is a path: the file or directory is a datum, or part of a directory that is one. */
export function pathArgument(
  paths: Paths,
  call: Call,
  value: unknown,
  kind: DatumKind,
  mode: AccessMode,
  direction: Direction,
): Argument {
  if (value instanceof StreamFile) {
    const isOutput = direction === 'FILE_OUT' || direction === 'DIR_OUT'
    if (!isOutput || !FORMS[call.definition.form].streamsFiles) {
      throw new MillraceError(
        'MR_DIRECTION',
        `stream() is for FILE_OUT and DIR_OUT of a command, not for ${direction}`,
        {
          hint: 'Give the tasks that read the file its plain path.',
        },
      )
    }
    if (value.rules.files !== undefined && direction !== 'DIR_OUT') {
      throw new MillraceError(
        'MR_DIRECTION',
        `on_n_files is for directories, and ${value.path} is ${direction}`,
        {
          hint: "Write 'on_close', or make the parameter DIR_OUT.",
        },
      )
    }
    const argument = pathArgument(paths, call, value.path, kind, mode, direction)
    const slot = argument instanceof SlotArgument ? call.slots[argument.slot] : undefined
    const { beside } = value.rules
    const rules = beside === undefined ? value.rules : { ...value.rules, beside: Paths.absolute(beside) }
    if (slot) slot.stream = rules
    return argument
  }
  // A file that is left out: the task gets null too.
  if (value === null) return null
  if (typeof value !== 'string' || value === '' || value.includes('\0')) {
    const got = value instanceof Future ? 'a future; its path is not known yet' : describePath(value)
    throw new MillraceError('MR_DIRECTION', `${direction} needs a path, and got ${got}`)
  }
  const path = mode === 'in' ? Paths.absolute(value) : Paths.writable(value)
  const spot = paths.at(path)
  const { above, existing } = spot
  // A directory that tasks only read has no version of its own: the file in it has.
  const isOwn = mode === 'in' && above?.current.number === 0
  if (above && !isOwn && (!existing || existing.current.id < above.current.id)) {
    // The file is part of a directory that a task makes, or made: it is where that version is.
    if (mode !== 'in') {
      throw new MillraceError(
        'MR_ALIAS',
        `${path} is inside ${above.path}, which is a directory parameter of another task`,
        {
          hint: 'Pass the directory as DIR_INOUT to tasks that write files in it.',
        },
      )
    }
    return new SlotArgument(
      addSlot(call, above, 'in', 'directory'),
      path.slice((above.path as string).length + 1),
    )
  }
  if (mode !== 'out' && spot.wasRemoved && !existsSync(path)) {
    throw new MillraceError('MR_REMOVED', `${path} was removed`)
  }
  if (kind === 'directory') {
    for (const inner of paths.inside(path)) addSlot(call, inner, 'in', 'file')
  }
  if (!existing || kind === 'directory') undoable(call, spot.restore())
  const slot = addSlot(call, spot.datum(kind === 'directory'), mode, kind)
  const full = resolve(value)
  if (full !== path) (call.slots[slot] as Slot).named = full
  return SlotArgument.of(slot)
}

const describePath = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value) : typeof value
