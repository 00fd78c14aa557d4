import { isShared } from '../../model/encoding/memory.ts'
import type { Collection, WrittenSlot } from './task-reader.ts'

type Owner = WrittenSlot | Collection | null

/**
 * Which of the elements of a collection each object belongs to. They go back each by itself, so an object that a task has
 * put from one into another, or into two, would no longer be one object.
 */
export class Elements {
  readonly #owners = new Map<object, Owner>()
  readonly #slots: readonly WrittenSlot[]

  /** `members` are the values of the elements. */
  constructor(collection: Collection, members: ReadonlySet<unknown>, written: readonly WrittenSlot[]) {
    for (const object of collection.objects) this.#owners.set(object, collection)
    this.#slots = written.filter(({ value }) => members.has(value))
    for (const slot of this.#slots) {
      for (const object of slot.graph?.objects ?? [slot.value as object]) {
        for (const one of withMemory(object)) {
          const known = this.#owners.get(one)
          // What came with two of them is memory that they have in common.
          this.#owners.set(one, known === undefined || known === slot ? slot : null)
        }
      }
    }
  }

  /** Whether none of the objects that go back with an element belongs to another one. */
  areOf(slot: WrittenSlot, objects: readonly unknown[]): boolean {
    if (!this.#slots.includes(slot)) return true
    return objects.every(object =>
      withMemory(object).every(one => {
        const owner = this.#owners.get(one)
        if (owner === undefined) this.#owners.set(one, slot)
        return owner === undefined || owner === null || owner === slot
      }),
    )
  }
}

/** Memory that the program shares is the same wherever it is. */
function withMemory(object: unknown): object[] {
  if (typeof object !== 'object' || object === null) return []
  if (!ArrayBuffer.isView(object)) return [object]
  return isShared(object.buffer) ? [] : [object, object.buffer]
}
