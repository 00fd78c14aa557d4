import { Worker } from 'node:worker_threads'
import type { FileTable, LooksAhead } from './file-table.ts'

export interface AheadColumns {
  readonly size: Float64Array
  readonly mtime: Float64Array
  readonly ctime: Float64Array
  readonly ino: Float64Array
  /** 1 where the others are filled in. */
  readonly done: Uint8Array
}

export function columnsOf(memory: SharedArrayBuffer, count: number): AheadColumns {
  return {
    size: new Float64Array(memory, 0, count),
    mtime: new Float64Array(memory, count * 8, count),
    ctime: new Float64Array(memory, count * 16, count),
    ino: new Float64Array(memory, count * 24, count),
    done: new Uint8Array(memory, count * 32, count),
  }
}

/** A thread that begins with the last file, and the plan with the first; whoever comes to a file first looks at it. */
export class LooksOfThread implements LooksAhead {
  readonly isSlow = true
  readonly #columns: AheadColumns
  readonly #worker: Worker

  constructor(snapshot: string, count: number, folder: string) {
    const memory = new SharedArrayBuffer(count * 33)
    this.#columns = columnsOf(memory, count)
    this.#worker = new Worker(new URL('./flow-looks.js', import.meta.url), {
      workerData: { snapshot, memory, count, folder },
      execArgv: [],
    })
    this.#worker.on('error', () => undefined)
    this.#worker.unref()
  }

  tell(file: number, files: FileTable): boolean {
    const { size, mtime, ctime, ino, done } = this.#columns
    if (file >= done.length || Atomics.load(done, file) === 0) return false
    files.nowSize[file] = size[file] as number
    files.nowMtime[file] = mtime[file] as number
    files.nowCtime[file] = ctime[file] as number
    files.nowIno[file] = ino[file] as number
    return true
  }

  stop(): void {
    void this.#worker.terminate()
  }
}
