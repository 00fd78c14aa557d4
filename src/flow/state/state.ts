import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { FileTable } from './file-table.ts'
import { takeLock } from './lock.ts'
import { RecordTable } from './record-table.ts'
import type { TaskRecord } from './record-table.ts'
import { decodeSnapshot, encodeSnapshot } from './snapshot.ts'
import { StateLog, readLog } from './state-log.ts'
import type { Entry } from './state-log.ts'

/** A log with more entries than this, and than a part of the records, is folded into the snapshot. */
const COMPACT_FROM = 2000

/**
 * What is known of earlier runs: a snapshot and a log of what changed since, in `.millrace/flow`. Both survive a
 * cut at any byte: the snapshot is replaced as a whole, and what is not whole at the end of the log is dropped.
 */
export class State {
  readonly files = new FileTable()
  readonly records = new RecordTable()
  readonly #folder: string
  #generation = 0
  #logLength = 0
  #entries = 0
  /** What the files looked like before they were read. */
  #seen = ''
  #log: StateLog | null = null
  #release: (() => void) | null = null

  /** `folder` is the `.millrace` of the workflow. Reading changes nothing there. */
  constructor(folder: string) {
    this.#folder = join(folder, 'flow')
    this.#read()
  }

  #read(): void {
    this.#seen = this.#looks()
    const snapshot = readWhole(join(this.#folder, 'snapshot'))
    this.#generation = (snapshot && decodeSnapshot(snapshot, this.files, this.records)) ?? 0
    const { entries, length } = readLog(join(this.#folder, 'log'))
    const [first] = entries
    // A log of another generation is in the snapshot already.
    if (first?.[0] !== 'log' || first[1] !== this.#generation) return
    this.#logLength = length
    this.#entries = entries.length
    for (const entry of entries) this.#replay(entry)
  }

  #replay(entry: Entry): void {
    const { files, records } = this
    switch (entry[0]) {
      case 'log':
        return
      case 'file': {
        const [, path, size, mtime, ino, stamp, racy, ctime = 0] = entry
        const id = files.id(path)
        files.setStamp(id, { size, mtime, ctime, ino }, stamp, false)
        files.racy[id] = racy
        files.forget(id)
        return
      }
      case 'task': {
        const [, text, outputs, outputStamps, inputs, inputStamps] = entry
        records.add({
          text,
          outputs: outputs.map(path => files.id(path)),
          outputStamps,
          inputs: inputs.map(path => (path === null ? -1 : files.id(path))),
          inputStamps,
        })
        return
      }
      case 'gone': {
        const id = files.find(entry[1])
        if (id !== undefined) records.remove(id)
      }
    }
  }

  /** To be called before anything is run or recorded: no other process may do so at the same time. */
  open(): void {
    if (this.#log) return
    try {
      mkdirSync(this.#folder, { recursive: true })
    } catch (cause) {
      throw new MillraceError(
        'MR_FLOW_STATE',
        `${this.#folder} cannot be made: ${reasonOf(this.#folder, cause as Error)}`,
        { cause },
      )
    }
    const release = takeLock(join(this.#folder, 'lock'))
    try {
      // What was read before would be written over what is new.
      if (this.#looks() !== this.#seen) {
        throw new MillraceError(
          'MR_FLOW_STATE',
          'another run has worked in this folder since this one began',
          {
            hint: 'Start it again.',
          },
        )
      }
      this.#log = new StateLog(join(this.#folder, 'log'), this.#logLength, this.#generation)
      this.#release = release
    } catch (error) {
      release()
      throw error
    }
  }

  /** Changes with all that is written. */
  #looks(): string {
    const looks = ['snapshot', 'log'].map(name => {
      const stats = statSync(join(this.#folder, name), { throwIfNoEntry: false })
      return stats ? `${stats.ino} ${stats.size} ${stats.mtimeMs}` : ''
    })
    return looks.join(', ')
  }

  /** Resolves when it is written. */
  async record(record: TaskRecord, stamped: readonly number[]): Promise<void> {
    this.open()
    this.records.add(record)
    const entries = stamped.map(file => this.#fileEntry(file))
    entries.push(this.#taskEntry(record))
    this.#entries += entries.length
    await this.#log?.append(entries)
  }

  /** The same for many, in the background. */
  recordNow(records: readonly TaskRecord[], stamped: readonly number[]): void {
    this.open()
    const entries = stamped.map(file => this.#fileEntry(file))
    for (const record of records) {
      this.records.add(record)
      entries.push(this.#taskEntry(record))
    }
    this.#entries += entries.length
    this.#log?.appendNow(entries)
  }

  /** Stamps that were taken anew; a folder that cannot be written, or is full, does without. */
  rememberStamps(stamped: readonly number[]): void {
    if (stamped.length === 0) return
    try {
      this.open()
      this.#entries += stamped.length
      this.#log?.appendNow(stamped.map(file => this.#fileEntry(file)))
    } catch {
      // They are taken once more in the next run.
    }
  }

  remove(firstOutput: number): void {
    this.open()
    this.records.remove(firstOutput)
    this.#entries++
    this.#log?.appendNow([['gone', this.files.path(firstOutput)]])
  }

  close(): void {
    if (!this.#log) return
    this.#log.close()
    this.#log = null
    try {
      if (this.#isLong) this.#compact()
    } finally {
      this.#release?.()
    }
  }

  /** A run that was killed leaves a long log, which all runs after it would have to read. */
  tidy(): void {
    if (!this.#isLong) return
    try {
      this.open()
    } catch {
      // Another process is at work, or the folder is read-only.
    }
  }

  get #isLong(): boolean {
    return this.#entries > COMPACT_FROM && this.#entries > this.records.count / 8
  }

  #taskEntry(record: TaskRecord): Entry {
    const path = (file: number): string => this.files.path(file)
    return [
      'task',
      record.text,
      record.outputs.map(path),
      [...record.outputStamps],
      record.inputs.map(file => (file < 0 ? null : path(file))),
      [...record.inputStamps],
    ]
  }

  #fileEntry(file: number): Entry {
    const { files } = this
    return [
      'file',
      files.path(file),
      files.size[file] as number,
      files.mtime[file] as number,
      files.ino[file] as number,
      files.stamp[file] as number,
      files.racy[file] as number,
      files.ctime[file] as number,
    ]
  }

  /** A cut between the two renames leaves a log of an older generation, which is not read. */
  #compact(): void {
    const path = join(this.#folder, 'snapshot')
    try {
      const file = openSync(`${path}.new`, 'w')
      const bytes = encodeSnapshot(this.files, this.records, this.#generation + 1)
      for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at)
      fsyncSync(file)
      closeSync(file)
      renameSync(`${path}.new`, path)
      new StateLog(join(this.#folder, 'log'), 0, this.#generation + 1).close()
    } catch {
      // The log has it all; it is folded another time.
    }
  }
}

function readWhole(path: string): Buffer | null {
  try {
    return readFileSync(path)
  } catch {
    return null
  }
}

/** Node says of a folder on a read-only file system that it does not exist. */
function reasonOf(folder: string, cause: Error): string {
  try {
    accessSync(dirname(dirname(folder)), constants.W_OK)
    return cause.message
  } catch (error) {
    return (error as Error).message
  }
}
