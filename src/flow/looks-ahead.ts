import { closeSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Look } from './file-table.ts'
import { readHeaderOf } from './snapshot.ts'

/** With fewer files a thread takes longer to start than it saves. */
const WORTH_IT = 5000

export interface AheadColumns {
  readonly size: Float64Array
  readonly mtime: Float64Array
  readonly ino: Float64Array
  /** 1 where the others are filled in. */
  readonly done: Uint8Array
}

export function columnsOf(memory: SharedArrayBuffer, count: number): AheadColumns {
  return {
    size: new Float64Array(memory, 0, count),
    mtime: new Float64Array(memory, count * 8, count),
    ino: new Float64Array(memory, count * 16, count),
    done: new Uint8Array(memory, count * 24, count),
  }
}

/**
 * A thread that looks at the files of the last run while the workflow file is still being loaded. It begins with
 * the last ones and the plan with the first; whoever comes to a file first looks at it.
 */
export class LooksAhead {
  readonly #columns: AheadColumns
  readonly #worker: Worker

  private constructor(snapshot: string, count: number, folder: string) {
    const memory = new SharedArrayBuffer(count * 25)
    this.#columns = columnsOf(memory, count)
    this.#worker = new Worker(new URL('./flow-looks.js', import.meta.url), {
      workerData: { snapshot, memory, count, folder },
      execArgv: [],
    })
    this.#worker.on('error', () => undefined)
    this.#worker.unref()
  }

  /** `folder` is the `.millrace` of the workflow. */
  static start(folder: string): LooksAhead | null {
    const snapshot = join(folder, 'flow', 'snapshot')
    const count = countIn(snapshot)
    return count < WORTH_IT ? null : new LooksAhead(snapshot, count, dirname(folder))
  }

  find(file: number): Look | null | undefined {
    const { size, mtime, ino, done } = this.#columns
    if (file >= done.length || Atomics.load(done, file) === 0) return undefined
    if ((size[file] as number) < 0) return null
    return { size: size[file] as number, mtime: mtime[file] as number, ino: ino[file] as number }
  }

  stop(): void {
    void this.#worker.terminate()
  }
}

function countIn(path: string): number {
  try {
    const file = openSync(path, 'r')
    const header = readHeaderOf(file)
    closeSync(file)
    return header?.files ?? 0
  } catch {
    return 0
  }
}
