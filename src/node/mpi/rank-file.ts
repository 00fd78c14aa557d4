import { MillraceError } from '../../core/errors.ts'
import type { MpiArray, MpiFile, MpiFileOptions, MpiView } from '../../model/mpi/comm.ts'
import type { MpiNative } from './native.ts'

const MODES = { r: 0, w: 3, 'r+': 4 } as const
const READ = 0
const WRITE = 1
const TOGETHER = 2
const BYTES = new Uint8Array(0)
const NONE = new Int32Array(0)

export class RankFile implements MpiFile {
  readonly #native: MpiNative
  readonly #file: number
  readonly #here: () => void
  #isOpen = true

  constructor(native: MpiNative, comm: number, path: string, options: MpiFileOptions, here: () => void) {
    this.#native = native
    this.#here = here
    const { mode = 'r+', hints = {} } = options
    if (!Object.hasOwn(MODES, mode)) {
      throw new MillraceError('MR_MPI_MISUSE', `mode is '${mode}'`, { hint: 'It is r, w or r+.' })
    }
    const words = Object.entries(hints).flatMap(([name, value]) => [name, String(value)])
    this.#file = native.fileOpen(comm, path, MODES[mode], words)
  }

  readAt(offset: number, into: MpiArray): number {
    return this.#transfer(offset, into, READ)
  }

  writeAt(offset: number, values: MpiArray): number {
    return this.#transfer(offset, values, WRITE)
  }

  readAtAll(offset: number, into: MpiArray): number {
    return this.#transfer(offset, into, READ + TOGETHER)
  }

  writeAtAll(offset: number, values: MpiArray): number {
    return this.#transfer(offset, values, WRITE + TOGETHER)
  }

  setView(view: MpiView | null): void {
    this.#here()
    if (!view) return this.#native.fileView(this.#file, 0, BYTES, NONE, NONE, NONE)
    const { start = 0, type } = view
    const [sizes, lengths, starts] = [view.sizes, view.lengths, view.starts].map(list =>
      Int32Array.from(list),
    ) as [Int32Array, Int32Array, Int32Array]
    const fits =
      sizes.length === lengths.length &&
      sizes.length === starts.length &&
      sizes.every(
        (size, i) => (starts[i] as number) >= 0 && (starts[i] as number) + (lengths[i] as number) <= size,
      )
    if (!fits) {
      throw new MillraceError('MR_MPI_MISUSE', 'setView: the block is not inside the matrix', {
        hint: 'sizes, lengths and starts have one number for each dimension, and starts + lengths are at most sizes.',
      })
    }
    this.#native.fileView(this.#file, start, type, sizes, lengths, starts)
  }

  setSize(bytes: number): void {
    this.#here()
    this.#native.fileSize(this.#file, bytes)
  }

  size(): number {
    return this.#native.fileSize(this.#file, -1)
  }

  sync(): void {
    this.#here()
    this.#native.fileSync(this.#file)
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#native.fileClose(this.#file)
  }

  #transfer(offset: number, array: MpiArray, kind: number): number {
    this.#here()
    return this.#native.fileTransfer(this.#file, offset, array, kind)
  }
}
