import { join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import type { Hdf5Block, Hdf5Dataset, Hdf5File, MpiArray } from '../../model/mpi/comm.ts'
import { messageOf } from '../../general/thrown.ts'
import { buildPart, sourcesOf } from '../../native/build.ts'
import { dlopenGlobal } from './native.ts'
import type { MpiNative } from './native.ts'
import { CALL_NUMBERS } from './places.ts'

/** The add-on (native/hdf5). Files and datasets are numbers. */
interface Hdf5Native {
  open(comm: number, path: string, mode: number): number
  create(file: number, name: string, type: MpiArray, sizes: Float64Array): number
  dataset(file: number, name: string): number
  extent(dataset: number, into: Float64Array): number
  transfer(
    dataset: number,
    array: MpiArray,
    starts: Float64Array,
    lengths: Float64Array,
    isWrite: number,
  ): void
  close(number: number, isFile: number): void
}

const FILE = 'millrace-hdf5.node'
const MODES = { r: 0, w: 1, 'r+': 2 } as const
let loaded: Hdf5Native | null = null

/** Built at first use, by the compiler of the site's MPI. */
export async function loadHdf5(compiler: string): Promise<void> {
  if (loaded) return
  try {
    const part = { name: 'hdf', sources: sourcesOf('native/hdf5'), makes: [FILE], compiler }
    loaded = dlopenGlobal(join(await buildPart(part), FILE)) as Hdf5Native
  } catch (error) {
    throw new MillraceError('MR_HDF5', `parallel HDF5 cannot be used: ${messageOf(error)}`)
  }
}

export interface Hdf5Host {
  readonly native: MpiNative
  readonly comm: number
  here(): void
}

/** All calls are collective, and told of as such: a rank that does not take part is found. */
export class RankHdf5File implements Hdf5File {
  readonly #host: Hdf5Host
  readonly #file: number
  readonly #sets: RankHdf5Dataset[] = []
  #isOpen = true

  constructor(host: Hdf5Host, path: string, mode: 'r' | 'w' | 'r+') {
    if (!Object.hasOwn(MODES, mode)) {
      throw new MillraceError('MR_MPI_MISUSE', `mode is '${mode}'`, { hint: 'It is r, w or r+.' })
    }
    this.#host = host
    this.#file = together(host, 'hdf5 open', () =>
      hdf5().open(host.native.fortran(host.comm), path, MODES[mode]),
    )
  }

  create(name: string, type: MpiArray, sizes: readonly number[]): Hdf5Dataset {
    checkNumbers('sizes', sizes)
    return this.#add(
      together(this.#host, 'hdf5 dataset', () =>
        hdf5().create(this.#file, name, type, Float64Array.from(sizes)),
      ),
    )
  }

  dataset(name: string): Hdf5Dataset {
    return this.#add(together(this.#host, 'hdf5 dataset', () => hdf5().dataset(this.#file, name)))
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    for (const set of this.#sets) set.close()
    together(this.#host, 'hdf5 close', () => hdf5().close(this.#file, 1))
  }

  #add(number: number): RankHdf5Dataset {
    const set = new RankHdf5Dataset(this.#host, number)
    this.#sets.push(set)
    return set
  }
}

class RankHdf5Dataset implements Hdf5Dataset {
  readonly sizes: readonly number[]
  readonly #host: Hdf5Host
  readonly #set: number
  #isOpen = true

  constructor(host: Hdf5Host, set: number) {
    this.#host = host
    this.#set = set
    const extent = new Float64Array(32)
    this.sizes = [...extent.subarray(0, hdf5().extent(set, extent))]
  }

  write(values: MpiArray, block: Hdf5Block): void {
    this.#transfer('hdf5 write', values, block)
  }

  read(into: MpiArray, block: Hdf5Block): void {
    this.#transfer('hdf5 read', into, block)
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    together(this.#host, 'hdf5 close', () => hdf5().close(this.#set, 0))
  }

  #transfer(call: 'hdf5 write' | 'hdf5 read', array: MpiArray, { starts, lengths }: Hdf5Block): void {
    checkNumbers('starts', starts)
    checkNumbers('lengths', lengths)
    const { sizes } = this
    const isInside =
      starts.length === sizes.length &&
      lengths.length === sizes.length &&
      sizes.every((size, i) => (starts[i] as number) + (lengths[i] as number) <= size)
    const count = lengths.reduce((product, length) => product * length, 1)
    if (!isInside || count !== array.length) {
      throw new MillraceError(
        'MR_MPI_MISUSE',
        `${call}: an array of ${array.length} and a block of ${lengths.join(' x ')} at ${starts.join(', ')} in a dataset of ${sizes.join(' x ')}`,
        { hint: 'The block has to be inside the dataset, and to have as many elements as the array.' },
      )
    }
    together(this.#host, call, () =>
      hdf5().transfer(
        this.#set,
        array,
        Float64Array.from(starts),
        Float64Array.from(lengths),
        call === 'hdf5 write' ? 1 : 0,
      ),
    )
  }
}

const hdf5 = (): Hdf5Native => loaded as Hdf5Native

function together<T>(host: Hdf5Host, call: keyof typeof CALL_NUMBERS, run: () => T): T {
  host.here()
  host.native.enter(host.comm, CALL_NUMBERS[call])
  try {
    return run()
  } finally {
    host.native.leave()
  }
}

function checkNumbers(what: string, numbers: readonly number[]): void {
  if (numbers.every(one => Number.isSafeInteger(one) && one >= 0) && numbers.length > 0) return
  throw new MillraceError('MR_MPI_MISUSE', `${what} is [${numbers.join(', ')}]`, {
    hint: 'Give a whole number from 0 for each dimension.',
  })
}
