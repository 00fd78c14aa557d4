import { MillraceError } from '../../core/errors.ts'
import type { MpiArray, Received, Request } from '../../model/mpi/comm.ts'
import type { MpiNative } from './native.ts'

interface Open {
  readonly comm: number
  readonly number: number
  /** Kept from the garbage collector while MPI reads or fills them. */
  readonly arrays: readonly MpiArray[]
  readonly isReceive: boolean
}

/** What a task's rank has begun and not waited for. */
export class Requests {
  readonly #native: MpiNative
  readonly #here: () => void
  readonly #open = new Set<Open>()

  constructor(native: MpiNative, here: () => void) {
    this.#native = native
    this.#here = here
  }

  add(comm: number, number: number, arrays: readonly MpiArray[], isReceive = false): Request {
    const own: Open = { comm, number, arrays, isReceive }
    const told = new Int32Array([-1, -1, 0])
    let done: Received | null = null
    const complete = (): Received => {
      this.#open.delete(own)
      return (done = { source: told[0] ?? 0, tag: told[1] ?? 0, count: told[2] ?? 0 })
    }
    this.#open.add(own)
    return {
      wait: () => {
        if (done) return done
        this.#here()
        this.#native.wait(comm, number, told)
        return complete()
      },
      test: () => ((done ?? this.#native.test(number, told)) ? (done ?? complete()) : null),
    }
  }

  /** Nothing is left for MPI to read or fill. */
  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  /** The function has returned: what it sent arrives, and what it wanted to receive must have been waited for. */
  finish(): void {
    let missing = 0
    const told = new Int32Array(3)
    for (const own of this.#open) {
      if (own.isReceive) missing += this.#native.giveUp(own.number) === 0 ? 1 : 0
      else this.#native.wait(own.comm, own.number, told)
      this.#open.delete(own)
    }
    if (missing === 0) return
    throw new MillraceError(
      'MR_MPI_MISUSE',
      `${missing === 1 ? 'a message' : `${missing} messages`} that irecv asked for never came`,
      { hint: 'Call wait() of each request before the function returns.' },
    )
  }
}
