import { nearestValid } from '../core/data/datum.ts'
import type { Datum, Version } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import { Decoder } from '../model/encoding/decode.ts'
import type { DecodeHooks } from '../model/encoding/decode.ts'
import type { Fetch } from '../model/capture/wait.ts'
import { NOTHING, Stored } from '../model/encoding/stored.ts'
import type { Kept } from '../model/encoding/stored.ts'
import { versionError } from './failure.ts'
import type { Runtime } from './runtime.ts'
import { turn } from './turn.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  'copyOut' | 'engine' | 'handle' | 'modules' | 'now' | 'onSettled' | 'settled' | 'unread'
>

/** Values on their way out of the run: to the program, or to a task that called others. */
export class Values {
  readonly #runtime: Uses
  readonly #hooks: DecodeHooks

  constructor(runtime: Uses) {
    this.#runtime = runtime
    this.#hooks = {
      findClass: (module, name) => runtime.modules.findClass(module, name),
      slot: () => undefined,
    }
  }

  /** The value of a datum as a task that called others may have it. */
  fetchKept(datum: Datum): Promise<Kept> {
    return new Promise(resolve => this.#takeOut(datum, null, resolve))
  }

  readonly fetch: Fetch = (datum, seen, take, fail) => {
    this.#takeOut(datum, seen, kept => {
      if (kept instanceof Promise || kept instanceof Stored) {
        void Promise.resolve(kept)
          .then(it => this.#give(it, datum, take))
          .catch(fail)
      } else this.#give(kept, datum, take)
    })
  }

  #give(kept: Kept, datum: Datum, take: Parameters<Fetch>[2]): void {
    if (!(kept instanceof Stored)) return take(kept === NOTHING ? undefined : kept, null)
    if (datum.inPlace) return take(undefined, null)
    const decoder = new Decoder(kept.bytes, this.#hooks)
    decoder.beside(kept.blobs)
    const value = decoder.value()
    take(value, decoder.graph)
  }

  #takeOut(datum: Datum, seen: Version | null, take: (kept: Kept | Promise<Kept>) => void): void {
    if (datum.removed) return take(Promise.reject(new MillraceError('MR_REMOVED', 'the value was removed')))
    const version = this.#runtime.engine.read(datum, this.#runtime.now())
    // Taken at the very moment: a task that writes the next version may be given the memory right after.
    const go = (): void => {
      const isKept = version.state === 'ready' && !datum.inPlace
      take(isKept ? this.#runtime.copyOut(version) : this.#nothingOf(version, seen))
    }
    this.#runtime.onSettled(version, go)
  }

  async #nothingOf(version: Version, seen: Version | null): Promise<Kept> {
    // The program may fall back to what was before, which must not happen while instructions are carried out.
    await Promise.resolve()
    if (version.state !== 'ready') await this.throwFor(version, seen)
    // The memory itself is the value; a later version of it may have taken over meanwhile.
    await this.#runtime.unread(version)
    return NOTHING
  }

  /** Throws what became of a version that did not come; the datum falls back to what was before. */
  async throwFor(version: Version, seen: Version | null = null): Promise<never> {
    if (this.#runtime.engine.isClosed) await turn()
    // What comes before may be on its way; until it is settled, it is not known what to fall back to.
    for (let at = nearestValid(version); !at.settled; at = nearestValid(version))
      await this.#runtime.settled(at)
    const error = versionError(version)
    const { cause } = version
    if (cause) this.#runtime.handle(cause)
    const { datum } = version
    const valid = nearestValid(datum.current)
    const isKept =
      !valid.settled || valid.value !== undefined || valid === seen || datum.path !== null || datum.inPlace
    // A result was nothing before, and memory may have gone into the attempt that failed: the error stays.
    if (isKept) this.#runtime.engine.fallBack(datum)
    throw error
  }

  /** The program has cancelled what was to make it, and knows: tasks that it calls now have what was there before. */
  afterCancel(datum: Datum, seen: Version | null = null): void {
    const { failed } = datum.current.team ?? {}
    // A team is over when one of its tasks is.
    const root = failed?.cause ?? failed
    if (root?.state === 'cancelled' && !root.cause) this.#runtime.engine.read(datum, this.#runtime.now())
    const { cause, state } = datum.current
    if (
      state !== 'cancelled' ||
      !cause ||
      cause.state !== 'cancelled' ||
      cause.cause ||
      this.#runtime.engine.isClosed
    )
      return
    const valid = nearestValid(datum.current)
    const isKept = valid.value !== undefined || valid === seen || datum.path !== null || datum.inPlace
    if (isKept || !valid.settled) this.#runtime.engine.fallBack(datum)
  }
}
