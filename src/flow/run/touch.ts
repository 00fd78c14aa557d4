import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FileTable, Look } from '../state/file-table.ts'
import { lookAt } from '../state/file-table.ts'
import type { TaskRecord } from '../state/record-table.ts'
import { STAMP_LIMIT, isRacy, stampOf, stampOfLarge } from '../state/stamp.ts'
import type { Stamped } from '../state/stamp.ts'
import { NO_FILE } from '../plan/work.ts'
import type { Work } from '../plan/work.ts'

/** Larger files are hashed in chunks elsewhere; bytes. */
const SMALL = 2 ** 20

/** Entries that are written together. */
const BATCH = 1000

interface Log {
  recordNow(records: readonly TaskRecord[], stamped: readonly number[]): void
}

/**
 * Takes what is there as if it had just been made. Nothing runs meanwhile that could be held up, so files are read
 * one after the other: handing each to a thread takes ten times as long as reading it. Gives those
 * that need more than that.
 */
export function touchAll(works: readonly Work[], files: FileTable, log: Log): Work[] {
  const others: Work[] = []
  let records: TaskRecord[] = []
  let stamped: number[] = []
  const flush = (): void => {
    if (records.length > 0) log.recordNow(records, stamped)
    records = []
    stamped = []
  }
  for (const work of works) {
    const record = recordOf(work, files, stamped)
    if (!record) {
      others.push(work)
      continue
    }
    work.state = 'done'
    if (records.push(record) === BATCH) flush()
  }
  flush()
  return others
}

/** Null when something is missing, or is not a plain file. */
function recordOf(work: Work, files: FileTable, stamped: number[]): TaskRecord | null {
  const { text, outputs, inputs } = work
  if (work.rule.outputs.some(({ marks }) => marks.directory)) return null
  const inputStamps: number[] = []
  for (const input of inputs) {
    if (input === NO_FILE) inputStamps.push(0)
    else if (!stampNow(input, files, stamped)) return null
    else inputStamps.push(files.stamp[input] as number)
  }
  const outputStamps: number[] = []
  for (const output of outputs) {
    if (!files.exists(output)) return null
    // What looks as a task left it was made by one.
    const isMade = files.isAsStamped(output)
    if (!stampNow(output, files, stamped)) return null
    if (!isMade) files.setTaken(output, true)
    outputStamps.push(files.stamp[output] as number)
  }
  return { text, outputs, outputStamps, inputs, inputStamps }
}

function stampNow(file: number, files: FileTable, stamped: number[]): boolean {
  if (!files.exists(file)) return false
  if (files.isAsStamped(file)) return true
  const path = files.path(file)
  const look = lookAt(path)
  if (!look || look.isFolder || look.isSpecial || (look.size > SMALL && look.size <= STAMP_LIMIT))
    return false
  const now = Date.now()
  files.setStamp(file, look, stampOfFile(path, look, files.stamped(file)), isRacy(look, now))
  stamped.push(file)
  return true
}

function stampOfFile(path: string, look: Look, before: Stamped | null): number {
  if (look.size > STAMP_LIMIT) return stampOfLarge(look, before)
  return stampOf(hash('sha256', readFileSync(path)))
}
