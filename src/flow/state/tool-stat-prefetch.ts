import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MISSING, UNSEEN } from './file-table.ts'
import type { FileTable, StatPrefetch } from './file-table.ts'

/** Numbers of a file in what the tool writes. */
const FIELDS = 4
const RECORD = FIELDS * 8

/** Number of files that are statted here before the tool's progress is checked again. */
const FILES_BETWEEN_CHECKS = 64

/** Files whose numbers are read at a time. */
const ROOM = 4096

/** `millrace-look`, which writes what it sees into a file without a name, in the order of the snapshot. */
export class ToolStatPrefetch implements StatPrefetch {
  readonly #child: ChildProcess
  readonly #bytes: Buffer
  readonly #numbers: Float64Array
  readonly #count: number
  #file: number | null
  #have = 0
  #waiting = 0

  private constructor(child: ChildProcess, file: number, count: number) {
    this.#child = child
    this.#file = file
    this.#count = count
    const memory = new ArrayBuffer(ROOM * RECORD)
    this.#bytes = Buffer.from(memory)
    this.#numbers = new Float64Array(memory)
    child.on('error', () => undefined)
    child.unref()
  }

  /** Null when there is no room for what it would write. */
  static start(tool: string, snapshot: string, count: number, folder: string): ToolStatPrefetch | null {
    const path = join(tmpdir(), `millrace-look-${process.pid}-${Date.now().toString(36)}`)
    try {
      const file = openSync(path, 'wx+', 0o600)
      unlinkSync(path)
      const child = spawn(tool, [snapshot, folder], { stdio: ['ignore', file, 'ignore'] })
      return new ToolStatPrefetch(child, file, count)
    } catch {
      return null
    }
  }

  tell(file: number, files: FileTable): boolean {
    if (file >= this.#have) this.#takeMore(file, files)
    return files.nowSize[file] !== UNSEEN
  }

  /** Written down as it comes, because it is much. What the plan has statted meanwhile is younger and stays. */
  #takeMore(file: number, files: FileTable): void {
    if (this.#file === null || file >= this.#count || this.#waiting-- > 0) return
    let read: number
    do {
      read = Math.floor(readSync(this.#file, this.#bytes, 0, ROOM * RECORD, this.#have * RECORD) / RECORD)
      for (let i = 0; i < read; i++) this.#put(i * FIELDS, this.#have++, files)
    } while (read === ROOM)
    this.#waiting = FILES_BETWEEN_CHECKS
  }

  #put(at: number, file: number, files: FileTable): void {
    const numbers = this.#numbers
    const size = numbers[at] as number
    if (size < MISSING || file >= this.#count || files.nowSize[file] !== UNSEEN) return
    files.nowSize[file] = size
    files.nowMtime[file] = numbers[at + 1] as number
    files.nowCtime[file] = numbers[at + 2] as number
    files.nowIno[file] = numbers[at + 3] as number
  }

  stop(): void {
    if (this.#file === null) return
    closeSync(this.#file)
    this.#file = null
    this.#child.kill()
  }
}
