import { source } from '../../core/data/datum.ts'
import type { Access } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import { SlotArgument } from '../../model/capture/call.ts'
import { Encoder } from '../../model/encoding/encode.ts'
import type { EncodeHooks } from '../../model/encoding/encode.ts'
import type { ClassNames } from '../../model/encoding/instance-class.ts'
import { Stored, isPrimitive, keepPrimitive, shareCopy } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import type { FileStore } from '../../storage/file-store.ts'
import { jobOf } from '../job.ts'

/** Puts the values that a task made where their readers will look. */
export function storeOutputs(task: Task, outputs: readonly (Kept | undefined)[], returns: number): void {
  const { slots, definition } = jobOf(task)
  const { accesses } = task
  for (let i = 0; i < returns && !definition.stream; i++) {
    const version = accesses[slots.length + i]?.write
    // What was released is not what comes with the end, and may be gone by now.
    if (version && !version.settled) version.value = outputs[i]
  }
  let next = returns
  for (let i = 0; i < slots.length; i++) {
    const { write, mode } = accesses[i] as Access
    if (!write || mode === 'in' || slots[i]?.kind !== 'value') continue
    const output = outputs[next++]
    if (output !== undefined) write.value = output
    else if (write.value === undefined) write.value = source(accesses[i] as Access)?.value
  }
}

/** What an ignored failure leaves: what was written, and defaults where there are any. */
export function storeIgnored(task: Task, partial: readonly (Kept | undefined)[], classes: ClassNames): void {
  const { definition, slots, args } = jobOf(task)
  const { defaults } = definition.options
  const returns = definition.returns || 1
  const given =
    definition.returns > 0 ? ((defaults?.returns as unknown[] | undefined) ?? []) : [defaults?.returns]
  const outputs: (Kept | undefined)[] = Array.from({ length: returns }, (_, i) => keep(given[i], classes))
  outputs.push(...partial)
  storeOutputs(task, outputs, returns)
  for (const [position, value] of Object.entries(defaults?.params ?? {})) {
    const argument = args[Number(position)]
    const index = argument instanceof SlotArgument ? argument.slot : -1
    const write = task.accesses[index]?.write
    if (write && slots[index]?.kind === 'value') write.value = keep(value, classes, true)
  }
  for (let i = 0; i < slots.length; i++) {
    const write = task.accesses[i]?.write
    if (!write || slots[i]?.kind !== 'value' || write.value !== undefined) continue
    write.value = slots[i]?.initial ?? keepPrimitive(undefined)
  }
}

/** Output files for which there is a default. */
export async function defaultFiles(task: Task, files: FileStore): Promise<void> {
  const { definition, slots, args } = jobOf(task)
  for (const [position, value] of Object.entries(definition.options.defaults?.params ?? {})) {
    const argument = args[Number(position)]
    const index = argument instanceof SlotArgument ? argument.slot : -1
    const slot = slots[index]
    const write = task.accesses[index]?.write
    if (!slot || !write || slot.kind === 'value' || write.value !== undefined) continue
    const path = await files.copyIn(write, slot.kind === 'directory', String(value))
    await files.commit(write, path)
  }
}

/** `isWritten`: in the place of an object of the program, of which it has no part. */
export function keep(value: unknown, classes: ClassNames, isWritten = false): Kept {
  if (isPrimitive(value)) return keepPrimitive(value)
  const encoder = new Encoder()
  const hooks: EncodeHooks = { classes, blob: view => ({ buffer: shareCopy(view), offset: 0 }) }
  if (isWritten) encoder.whole(value, hooks, { objects: [value as object], origins: [0] })
  else encoder.value(value, hooks)
  return new Stored(encoder.copy(), encoder.blobs)
}
