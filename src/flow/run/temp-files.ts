import { MISSING } from '../state/file-table.ts'
import type { FileTable } from '../state/file-table.ts'
import type { Makers } from '../plan/makers.ts'
import type { Registry } from '../language/registry.ts'
import { NO_FILE, placeOf } from '../plan/work.ts'
import type { Work } from '../plan/work.ts'

/** Knows when a temporary file has had its last reader. */
export class TempFiles {
  readonly #files: FileTable
  readonly #makers: Makers
  /** Tasks that are going to read it. */
  readonly #readers = new Map<number, number>()
  /** Number of requests for the file itself. */
  readonly #holders = new Map<number, number>()

  constructor(files: FileTable, makers: Makers) {
    this.#files = files
    this.#makers = makers
  }

  hold(file: number, held: Set<number>): void {
    if (!this.#isTemp(file) || held.has(file)) return
    held.add(file)
    this.#holders.set(file, (this.#holders.get(file) ?? 0) + 1)
  }

  /** Gives the files that are to be deleted now. */
  release(held: Iterable<number>): number[] {
    const gone: number[] = []
    for (const file of held) {
      this.#holders.set(file, (this.#holders.get(file) ?? 1) - 1)
      if (this.#isUnwanted(file)) gone.push(this.#drop(file))
    }
    return gone
  }

  willRead({ inputs }: Work): void {
    for (const input of new Set(inputs)) {
      if (this.#isTemp(input)) this.#readers.set(input, (this.#readers.get(input) ?? 0) + 1)
    }
  }

  hasRead({ inputs }: Work): number[] {
    const gone: number[] = []
    for (const input of new Set(inputs)) {
      if (!this.#readers.has(input)) continue
      this.#readers.set(input, (this.#readers.get(input) ?? 1) - 1)
      if (this.#isUnwanted(input)) gone.push(this.#drop(input))
    }
    return gone
  }

  /** At the end of a run that went well: files that a run before was killed over. */
  leftOver(registry: Registry): number[] {
    if (!registry.rules.some(rule => rule.hasTemps)) return []
    const gone: number[] = []
    for (const work of this.#makers.works()) {
      for (const output of work.outputs) {
        if (this.#isTemp(output) && this.#isUnwanted(output)) gone.push(this.#drop(output))
      }
    }
    return gone
  }

  #isTemp(file: number): boolean {
    if (file === NO_FILE) return false
    const maker = this.#makers.of(file)
    const at = maker ? placeOf(file, maker) : -1
    return at >= 0 && maker?.rule.outputs[at]?.marks.temp === true
  }

  #isUnwanted(file: number): boolean {
    const state = this.#makers.of(file)?.state
    // Others that its task made may have gone before.
    const isMade = state === 'done' || state === 'fresh' || state === 'absent'
    const isThere = isMade && this.#files.nowSize[file] !== MISSING
    return isThere && !this.#readers.get(file) && !this.#holders.get(file)
  }

  #drop(file: number): number {
    const maker = this.#makers.of(file)
    if (maker) maker.state = 'absent'
    this.#files.see(file, null)
    return file
  }
}
