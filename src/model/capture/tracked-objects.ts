import type { Datum, Version } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import type { Graph } from '../encoding/identity.ts'
import { SharedMemory, isInSharedMemory } from '../shared.ts'
import { undoable } from './call.ts'
import type { Call } from './call.ts'
import { PlainViews } from './plain-views.ts'
import { bringUpToDate } from './up-to-date.ts'

/** What is known of an object that was passed to tasks. */
export interface Tracked {
  readonly datum: Datum
  /** A task writes it, so the object here is out of date until `waitOn`. */
  dirty: boolean
  /** The version that the object here has the value of. */
  seen: Version | null
  /** Its objects as they were numbered when a task was given it to write, until it is waited for. */
  own: readonly object[] | null
  /** Objects in it that tasks were writing by themselves when it was given to a task. */
  held: readonly Tracked[] | null
}

/** `number` is that of the object inside among those of the `root`. */
interface Whole {
  readonly owner: Tracked
  readonly root: object
  readonly number: number
}

/** For an object that has the value of the datum as it is now. */
export const upToDate = (datum: Datum): Tracked => ({
  datum,
  dirty: false,
  seen: datum.current,
  own: null,
  held: null,
})

/** Which objects of a program are which data, and whether the program's own object is up to date. */
export class TrackedObjects {
  readonly shared = new SharedMemory()
  readonly #tracked = new WeakMap<object, Tracked>()
  /** Objects inside an object that tasks write: their own value is not known until the whole is waited for. */
  readonly #partOf = new WeakMap<object, Tracked>()
  readonly #views = new PlainViews()
  readonly #writes = new WeakMap<Datum, number>()
  readonly #afterCancel: ((datum: Datum, seen: Version | null) => void) | null

  constructor(afterCancel: ((datum: Datum, seen: Version | null) => void) | null) {
    this.#afterCancel = afterCancel
  }

  find(value: object): Tracked | undefined {
    return isInSharedMemory(value) ? this.shared.find(value) : this.known(value)
  }

  /** The same for what is in no shared memory. */
  known(value: object): Tracked | undefined {
    const same = ArrayBuffer.isView(value) ? this.#views.find(value) : undefined
    if (same) this.#tracked.set(value, same)
    return same ?? this.#tracked.get(value)
  }

  /** For a call: when the program has cancelled what was to write it, its own object may be the value again. */
  atCall(value: object): Tracked | undefined {
    const tracked = this.known(value)
    if (tracked?.dirty && tracked.datum.current.state === 'cancelled') {
      this.#afterCancel?.(tracked.datum, tracked.seen)
      this.fellBack(value)
    }
    return tracked
  }

  /** This object itself, not another one for the same memory. */
  own(value: object): Tracked | undefined {
    return this.#tracked.get(value)
  }

  add(value: object, tracked: Tracked): void {
    this.#tracked.set(value, tracked)
  }

  /** What the program has of a future's value may have been written under another name of the same memory. */
  claim(value: object, datum: Datum): void {
    this.rejectPart(value)
    const tracked = this.known(value)
    if (!tracked || tracked.datum === datum) return
    if (tracked.dirty && !tracked.datum.removed) {
      throw new MillraceError('MR_ALIAS', 'a task is writing its memory as another array')
    }
    this.add(value, upToDate(datum))
  }

  // --- what tasks write ---

  /** From here on the program's object is out of date. */
  giveAway(call: Call, value: object, tracked: Tracked): void {
    if (ArrayBuffer.isView(value)) this.#views.add(value, tracked, false)
    if (tracked.dirty) return
    tracked.dirty = true
    undoable(call, () => {
      tracked.dirty = false
      tracked.own = null
      this.#views.drop(tracked)
    })
  }

  /** Calls so far that write the datum: tells whether it was given away again while someone waited for it. */
  writesOf(datum: Datum): number {
    return this.#writes.get(datum) ?? 0
  }

  countWrite(call: Call, datum: Datum): void {
    const writes = this.writesOf(datum)
    this.#writes.set(datum, writes + 1)
    undoable(call, () => this.#writes.set(datum, writes))
  }

  /** The object is inside one that tasks write. */
  addPart(inner: object, owner: Tracked): void {
    this.rejectPart(inner, owner)
    this.#partOf.set(inner, owner)
    if (ArrayBuffer.isView(inner) && !isInSharedMemory(inner)) this.#views.add(inner, owner, true)
  }

  /** The object that tasks write and that this one is inside of: its own value is not known until that is waited for. */
  wholeOf(value: object): Whole | null {
    const owner = this.#partOf.get(value)
    if (!owner?.dirty || owner.datum.removed || !owner.own) return null
    // What was part of it once may have been taken out since.
    const number = owner.own.indexOf(value)
    return number > 0 ? { owner, root: owner.own[0] as object, number } : null
  }

  /** From here on these objects, which tasks write by themselves, are written with the whole. */
  hold(call: Call, whole: Tracked, held: readonly Tracked[]): void {
    for (const one of held) for (const object of one.own ?? []) this.#partOf.set(object, whole)
    whole.held = held
    undoable(call, () => this.#letGo(whole))
  }

  /** They are by themselves again. */
  #letGo(whole: Tracked): void {
    for (const one of whole.held ?? []) for (const object of one.own ?? []) this.#partOf.set(object, one)
    whole.held = null
  }

  /** What is inside an object that tasks write is known only after the whole is waited for. */
  rejectPart(value: object, owner: Tracked | null = null): void {
    const whole = this.wholeOf(value)
    if (whole && whole.owner !== owner) {
      throw new MillraceError('MR_ALIAS', 'the object is part of another object that a task is writing')
    }
    if (ArrayBuffer.isView(value)) this.#views.reject(value, owner)
  }

  /** Tasks write it; or it is memory that they have in common, and they read it. */
  isBusy(inner: object): boolean {
    if (!isInSharedMemory(inner)) return this.known(inner)?.dirty ?? false
    const current = this.shared.find(inner)?.datum.current
    return current !== undefined && (!current.settled || current.readers > 0)
  }

  // --- after a wait ---

  /** What tasks made of the program's object is put into it. */
  arrived(value: object, datum: Datum, writes: number, graph: Graph | null): void {
    const tracked = this.#tracked.get(value)
    if (!graph || !tracked?.dirty) return this.adopt(value, datum, writes, tracked?.own ?? null)
    const own = tracked.own ?? [value]
    const standIns = bringUpToDate(own, graph)
    this.adopt(value, datum, writes, graph.origins ? own : standIns)
  }

  /** The program's object is the datum's value again, or what it was `writes` ago; `objects` are those in it. */
  adopt(value: object, datum: Datum, writes: number, objects: readonly object[] | null): void {
    if (isInSharedMemory(value)) return
    const dirty = this.writesOf(datum) !== writes
    const seen = dirty ? null : datum.current
    const own = dirty ? objects : null
    let tracked = this.#tracked.get(value)
    if (tracked?.datum === datum) {
      tracked.dirty = dirty
      tracked.seen = seen
      tracked.own = own
      if (!dirty) this.#release(tracked)
    } else this.#tracked.set(value, (tracked = { datum, dirty, seen, own, held: null }))
    if (!dirty) this.#views.drop(tracked)
    else if (ArrayBuffer.isView(value)) this.#views.add(value, tracked, false)
  }

  /** The program has the values of what it held, too. */
  #release(tracked: Tracked): void {
    const held = tracked.held ?? []
    tracked.held = null
    for (const one of held) {
      one.dirty = false
      one.seen = one.datum.current
      one.own = null
      this.#release(one)
    }
  }

  /** The wait failed: the datum is what it was before; perhaps that is what the program's object still is. */
  fellBack(value: object): void {
    const tracked = this.#tracked.get(value)
    if (!tracked || tracked.datum.current !== tracked.seen) return
    this.#letGo(tracked)
    tracked.dirty = false
    tracked.own = null
    this.#views.drop(tracked)
  }
}
