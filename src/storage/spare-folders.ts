import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Folders for tasks to write in are used again under another name: to make one and to remove it takes ten times as long
 * as to rename it, and where there are many small files, longer than all else that is done for them.
 *
 * A folder is renamed only if no folder of the new name is there that has something in it. So each has an empty file
 * from the beginning: what another run has claimed is never replaced.
 */
const CLAIM = '.millrace-claim'
const SPARE = '.spare-'

/** As many as are kept for later. */
const MOST = 64

/** Whether a task wrote it. */
export const isOfTask = (name: string): boolean => name !== CLAIM

/** Those of all staging folders on one device. */
export class SpareFolders {
  readonly #run: string
  readonly #spares: string[] = []
  #made = 0

  constructor(run: string) {
    this.#run = run
  }

  /** Throws `ENOTEMPTY` or `EEXIST` when the place is taken. */
  become(place: string): void {
    const spare = this.#spares.pop() ?? this.#make(dirname(place))
    try {
      renameSync(spare, place)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // Another mount of the same device.
      if (code === 'EXDEV') {
        quietly(() => discard(spare))
        return this.become(place)
      }
      // It was removed, or the folder of the place was.
      if (code !== 'ENOENT' || existsSync(spare)) this.#spares.push(spare)
      throw error
    }
  }

  #make(folder: string): string {
    const spare = this.#next(folder)
    mkdirSync(spare, 0o700)
    writeFileSync(join(spare, CLAIM), '')
    return spare
  }

  /** False when something else is in the place. */
  takeBack(place: string): boolean {
    const names = readdirSync(place)
    if (names.some(isOfTask)) return false
    if (names.length === 0) rmdirSync(place)
    else if (this.#spares.length === MOST) discard(place)
    else {
      const spare = this.#next(dirname(place))
      renameSync(place, spare)
      this.#spares.push(spare)
    }
    return true
  }

  /** Removes those in a staging folder. */
  remove(folder: string): void {
    for (const spare of this.#spares.splice(0)) {
      if (dirname(spare) === folder) quietly(() => discard(spare))
      else this.#spares.push(spare)
    }
  }

  #next(folder: string): string {
    return join(folder, `${SPARE}${this.#run}-${++this.#made}`)
  }
}

function discard(folder: string): void {
  unlinkSync(join(folder, CLAIM))
  rmdirSync(folder)
}

export function quietly(action: () => void): void {
  try {
    action()
  } catch {
    // What cannot be removed now is left to the watchdog, or to the next run.
  }
}
