import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** So much shared memory may have gone out of use before someone looks for it; bytes. */
const ENOUGH = 2 ** 28

let collect: (() => void) | null = null

/**
 * Shared memory is freed when all threads that had it have collected their garbage, and V8 does not count it: a
 * program that makes one large array after the other would keep all of them. So count it, and collect in time.
 */
export class SharedGarbage {
  #bytes = 0

  /** Bytes that went out of use here, or will. */
  add(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes < ENOUGH) return
    this.#bytes = 0
    setImmediate((collect ??= findCollector()))
  }
}

/** A private name of V8. Without it memory is freed later, when V8 collects by itself. */
function findCollector(): () => void {
  setFlagsFromString('--expose-gc')
  const found: unknown = runInNewContext("typeof gc === 'function' ? gc : null")
  return typeof found === 'function' ? (found as () => void) : () => undefined
}
