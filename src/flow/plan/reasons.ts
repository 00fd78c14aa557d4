import { MillraceError } from '../../core/errors.ts'
import { MISSING } from '../state/file-table.ts'
import type { FileTable } from '../state/file-table.ts'
import type { RecordTable } from '../state/record-table.ts'
import { NO_FILE } from './work.ts'
import type { Work } from './work.ts'

/** Why a task has to be done, in a sentence. */
export function explainStale(work: Work, files: FileTable, records: RecordTable): string {
  const [first = 0] = work.outputs
  const record = records.get(first)
  // One that was not made the last time either is not missed.
  const unmade = new Set(record?.outputs.filter((_, i) => record.outputStamps[i] === 0))
  const missing = work.outputs.find((output, i) => {
    const isGone = files.nowSize[output] === MISSING
    return isGone && !unmade.has(output) && !(record && work.rule.outputs[i]?.marks.temp)
  })
  if (missing !== undefined) return `${files.path(missing)} does not exist`
  if (!record) return `nothing is known of how ${files.path(first)} was made`
  if (record.text !== work.text) return 'the command has changed'
  if (!same(record.outputs, work.outputs)) return 'the rule makes other files than before'
  const stamps = new Map(record.inputs.map((input, i) => [input, record.inputStamps[i]]))
  const inputs = new Set(work.inputs.filter(input => input !== NO_FILE))
  for (const input of inputs) if (!stamps.has(input)) return `${files.path(input)} is a new input`
  const lost = record.inputs.find(input => input !== NO_FILE && !inputs.has(input))
  if (lost !== undefined) return `${files.path(lost)} is no input any more`
  for (const input of inputs) {
    if (stamps.get(input) !== files.stamp[input]) return `${files.path(input)} has changed`
  }
  for (let i = 0; i < work.outputs.length; i++) {
    const output = work.outputs[i] as number
    if (record.outputStamps[i] !== files.stamp[output]) {
      return `${files.path(output)} is not what was made`
    }
  }
  return 'its inputs come in another order'
}

/** Nothing that is to be kept is written over. */
export function checkKept(work: Work, files: FileTable, reason: string): void {
  for (let i = 0; i < work.outputs.length; i++) {
    const output = work.outputs[i] as number
    if (!work.rule.outputs[i]?.marks.keep || files.nowSize[output] === MISSING) continue
    throw new MillraceError(
      'MR_FLOW_KEPT',
      `${files.path(output)} is to be kept, but is out of date: ${reason} (rule at ${work.rule.site})`,
    )
  }
}

const same = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((one, i) => one === b[i])
