import { Future } from '../future.ts'
import { isShared } from '../encoding/memory.ts'
import { bufferOf, isInSharedMemory } from '../shared.ts'
import { Stream } from '../value-stream.ts'
import { holds, isContainer, isList, shares } from './parts.ts'
import type { Search } from './parts.ts'
import type { Tracked } from './tracked-objects.ts'

type Find = (value: object) => Tracked | undefined

/**
 * An array or plain object that holds futures, tracked objects or shared arrays is a collection: its
 * elements are data of their own, the collection itself only says which ones.
 */
export class Collections {
  readonly #known: Find
  readonly #elements: Search
  readonly #busy: Search
  readonly #written: Search

  constructor(known: Find, isKnownClass: (value: object) => boolean) {
    this.#known = known
    const enters = (value: object): boolean => isContainer(value) || isKnownClass(value)
    this.#elements = { enters, isWanted: item => this.isElement(item) }
    this.#written = { enters, isWanted: item => this.#isDirty(item) }
    this.#busy = {
      enters: isList,
      isWanted: item =>
        item instanceof Future || (isInSharedMemory(item) && isShared(bufferOf(item))) || this.#isDirty(item),
    }
  }

  is(value: object): boolean {
    return holds(value, this.#elements)
  }

  /**
   * An object that holds others which were passed before and are up to date is written as a whole: what the task
   * does to it, and to other values in it, must come back too.
   */
  isToBeWritten(value: object): boolean {
    return isList(value) && this.is(value) && holds(value, this.#busy)
  }

  /** Whether there are values in it that are not data of their own. */
  holdsOthers(value: object): boolean {
    return holds(value, {
      enters: item => item === value || (isList(item) && !this.isElement(item)),
      isWanted: item => !this.isElement(item) && !ArrayBuffer.isView(item),
      leavesOnly: true,
    })
  }

  /** Whether those in it that are worth a slot of their own, as `isWorth` says, have nothing in common with the rest. */
  areApart(value: object, isWorth: (tracked: Tracked) => boolean): boolean {
    const isRoot = (item: object): boolean => {
      const tracked = this.#known(item)
      return tracked !== undefined && !tracked.dirty && isWorth(tracked) && !this.is(item)
    }
    const enters = (item: object): boolean =>
      this.#elements.enters(item) && (!this.isElement(item) || this.#known(item)?.dirty === false)
    return !shares(value, enters, isRoot)
  }

  /** Whether it is a datum of its own. */
  isElement(value: object): boolean {
    return (
      value instanceof Future ||
      value instanceof Stream ||
      isInSharedMemory(value) ||
      this.#known(value) !== undefined
    )
  }

  /** Whether tasks write it, or something in it. */
  isBusy(value: object): boolean {
    return this.#isDirty(value) || holds(value, this.#written)
  }

  #isDirty(value: object): boolean {
    return this.#known(value)?.dirty ?? false
  }
}
