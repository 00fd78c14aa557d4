import type { MpiArray, Received } from '../../model/mpi/comm.ts'
import type { MpiNative } from './native.ts'

/** Places in the memory that both sides see; the order is that of native/mpi/calls.c. */
const [SOURCE, ITS_TAG, COUNT, COMM, TO, FROM, TAG, SIZE] = [0, 1, 2, 3, 4, 5, 6, 7]

/** An array that the next calls send or fill. It is kept until there is another one. */
interface Aim {
  array: MpiArray | null
  /** One that was transferred has another length. */
  length: number
}

/** Messages between two ranks: calls that are made so often that they pass no arguments. */
export class Messages {
  readonly #native: MpiNative
  readonly #numbers = new Int32Array(SIZE)
  readonly #out: Aim = { array: null, length: 0 }
  readonly #in: Aim = { array: null, length: 0 }

  constructor(native: MpiNative) {
    this.#native = native
    native.numbers(this.#numbers)
  }

  send(comm: number, array: MpiArray, to: number, tag: number): void {
    if (this.#out.array !== array || this.#out.length !== array.length) this.#aim(this.#out, array, 0)
    this.#say(comm, to, -1, tag)
    this.#native.send()
  }

  recv(comm: number, into: MpiArray, from: number, tag: number): void {
    if (this.#in.array !== into || this.#in.length !== into.length) this.#aim(this.#in, into, 1)
    this.#say(comm, -1, from, tag)
    this.#native.recv()
  }

  sendrecv(comm: number, array: MpiArray, to: number, into: MpiArray, from: number, tag: number): void {
    if (this.#out.array !== array || this.#out.length !== array.length) this.#aim(this.#out, array, 0)
    if (this.#in.array !== into || this.#in.length !== into.length) this.#aim(this.#in, into, 1)
    this.#say(comm, to, from, tag)
    this.#native.sendrecv()
  }

  /** What `recv`, `sendrecv` and `probe` have found. */
  get received(): Received {
    const numbers = this.#numbers
    return {
      source: numbers[SOURCE] as number,
      tag: numbers[ITS_TAG] as number,
      count: numbers[COUNT] as number,
    }
  }

  /** The task has ended: its arrays are not kept. */
  forget(): void {
    this.#out.array = null
    this.#in.array = null
  }

  #aim(aim: Aim, array: MpiArray, isInto: number): void {
    this.#native.aim(array, isInto)
    aim.array = array
    aim.length = array.length
  }

  #say(comm: number, to: number, from: number, tag: number): void {
    const numbers = this.#numbers
    numbers[COMM] = comm
    numbers[TO] = to
    numbers[FROM] = from
    numbers[TAG] = tag
  }
}
