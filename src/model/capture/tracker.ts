import { Datum } from '../../core/data/datum.ts'
import type { AccessMode, Version } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import { FORMS } from '../../core/tasks/form.ts'
import { NO_SLOTS, PARTS_FROM, SlotArgument, undoable } from './call.ts'
import type { Argument, Call, Slot } from './call.ts'
import { Collections } from './collections.ts'
import type { Definition } from '../definition.ts'
import { DIRECTIONS } from '../options/directions.ts'
import type { Direction } from '../options/directions.ts'
import { BLOB_SIZE, Encoder } from '../encoding/encode.ts'
import type { EncodeHooks } from '../encoding/encode.ts'
import type { ClassNames } from '../encoding/instance-class.ts'
import { Future } from '../future.ts'
import { pathArgument } from './path-arguments.ts'
import { Paths } from './paths.ts'
import { busy, frozen, mixed, rejectUnshareable } from './refusals.ts'
import { isInSharedMemory } from '../shared.ts'
import { addSlot, checkRemoved, forgetSlots } from './slots.ts'
import { Stream } from '../value-stream.ts'
import { Stored, compareBlobs, isPrimitive, ownBlob, sameStored, shareBlob } from '../encoding/stored.ts'
import type { Kept } from '../encoding/stored.ts'
import { TrackedObjects, upToDate } from './tracked-objects.ts'
import type { Tracked } from './tracked-objects.ts'
import { TAG } from '../encoding/tags.ts'
import { codeOf } from '../encoding/typed-arrays.ts'

/**
 * Follows the data of one program: objects by identity, files by path. Turns arguments into what a call
 * carries, captured at the moment of the call, so that the program means what it would mean run in sequence.
 */
export class Tracker {
  readonly paths = new Paths()
  readonly objects: TrackedObjects
  readonly #collections: Collections
  /** Encoders at rest; capturing one value can need another one captured meanwhile. */
  readonly #encoders: Encoder[] = []
  readonly #classes: ClassNames
  /** Tells the client that the program has given a datum a new value. */
  readonly #wrote: (datum: Datum, value: Kept) => void

  constructor(
    classes: ClassNames,
    wrote: (datum: Datum, value: Kept) => void,
    afterCancel: ((datum: Datum, seen: Version | null) => void) | null = null,
  ) {
    this.#classes = classes
    this.#wrote = wrote
    this.objects = new TrackedObjects(afterCancel)
    this.#collections = new Collections(
      value => this.objects.known(value),
      value => this.isKnownClass(value),
    )
  }

  /** What a future stands for, or an object that was passed to tasks. */
  datumOf(value: unknown): Datum | undefined {
    return value instanceof Future ? value.datum : this.objects.find(value as object)?.datum
  }

  /** Its class is one that tasks know: what is inside an instance counts as what is inside a plain object. */
  isKnownClass(value: object): boolean {
    const { constructor } = value
    return typeof constructor === 'function' && this.#classes.nameOf(constructor) !== null
  }

  call(definition: Definition, given: readonly unknown[]): Call {
    const { params, isOpen } = definition
    if (params && given.length > params.length && !isOpen) {
      throw new MillraceError(
        'MR_DIRECTION',
        `${definition.name} takes ${params.length} arguments and was called with ${given.length}`,
      )
    }
    if (definition.readsOnly && given.every(isPrimitive)) {
      return { definition, given, args: given as Argument[], slots: NO_SLOTS }
    }
    // As long as they have to be: arrays that are pushed to keep room for more, for each of a million calls.
    const call: Call = { definition, given, args: given.slice() as Argument[], slots: NO_SLOTS }
    try {
      this.#capture(call, given, params)
    } catch (error) {
      this.takeBack(call)
      throw error
    } finally {
      forgetSlots()
    }
    return call
  }

  /** The call was refused: what it was about to write is as it was before. */
  takeBack({ undo }: Call): void {
    for (const back of undo?.reverse() ?? []) back()
  }

  /** First what is written: an argument that is read may hold it, and then the task gets one object for both. */
  #capture(call: Call, given: readonly unknown[], params: readonly Direction[] | null): void {
    if (params && !call.definition.readsOnly) {
      for (let i = 0; i < params.length; i++) {
        if (params[i] === 'IN') continue
        const argument = this.#argument(call, given[i], params[i] as Direction, i)
        if (i < given.length) call.args[i] = argument
      }
    }
    for (let i = 0; i < given.length; i++) {
      if ((params?.[i] ?? 'IN') !== 'IN' || isPrimitive(given[i])) continue
      call.args[i] = this.#argument(call, given[i], 'IN', i)
    }
  }

  #argument(call: Call, value: unknown, direction: Direction, position: number): Argument {
    const { kind, mode, isList } = DIRECTIONS[direction]
    try {
      if (isList) return this.#list(call, value, direction)
      if (kind !== 'value') return pathArgument(this.paths, call, value, kind, mode, direction)
      if (mode === 'in') return this.#read(call, value)
      return this.#write(call, value, mode, direction)
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      const { name, isMethod } = call.definition
      const where =
        position === 0 && isMethod
          ? `this of ${name}`
          : `argument ${isMethod ? position : position + 1} of ${name}`
      throw new MillraceError(error.code, `${where}: ${error.shortMessage}`, {
        hint: error.hint,
        cause: error,
      })
    }
  }

  /** A list of paths: in its place the task gets a list of those that it is to use. */
  #list(call: Call, value: unknown, direction: Direction): Argument {
    const { kind, mode } = DIRECTIONS[direction]
    if (!Array.isArray(value)) {
      const what = value instanceof Future ? 'a future' : typeof value
      throw new MillraceError('MR_DIRECTION', `${direction} needs a list of paths, and got ${what}`)
    }
    const items = value.map((path: unknown) => {
      const argument = pathArgument(this.paths, call, path, kind, mode, direction)
      if (!(argument instanceof SlotArgument)) return null
      if (argument.within === null) return { slot: argument.slot }
      throw new MillraceError('MR_ALIAS', `${String(path)} is part of a directory that a task makes`, {
        hint: 'Give it a parameter of its own, or pass the directory.',
      })
    })
    return this.#encode(items, inner => (inner as { slot: number }).slot)
  }

  /** An object inside one that tasks write: the task gets both, as they are then, and uses the one inside. */
  #part(call: Call, value: unknown, mode: AccessMode): SlotArgument | null {
    const object = value instanceof Future ? value.object : value
    if (typeof object !== 'object' || object === null) return null
    const isPart = this.objects.wholeOf(object)
    if (!isPart) return null
    this.objects.atCall(isPart.root)
    const whole = this.objects.wholeOf(object)
    if (!whole || mode === 'concurrent' || mode === 'commutative') return null
    if (FORMS[call.definition.form].runsOn !== 'threads') return null
    const { datum } = whole.owner
    const slot = addSlot(call, datum, mode === 'out' ? 'inout' : mode, 'value')
    ;(call.slots[slot] as Slot).hasParts = true
    if (mode !== 'in') this.objects.countWrite(call, datum)
    return new SlotArgument(slot, null, whole.number)
  }

  // --- values that are read ---

  #read(call: Call, value: unknown): Argument {
    if (isPrimitive(value)) return value as Argument
    if (typeof value !== 'object' || value === null) return this.#encode(value, null)
    const part = this.#part(call, value, 'in')
    if (part) return part
    const slot = this.#readSlot(call, value)
    if (slot >= 0) return SlotArgument.of(slot)
    const slots = call.slots.length
    let areApart: boolean | null = null
    const isApart = (): boolean =>
      (areApart ??= this.#collections.areApart(value, ({ datum }) => isLarge(datum)))
    const stored = this.#encode(value, inner => this.#readSlot(call, inner, isApart))
    if (call.slots.length > slots) return stored
    if (!isLargeStored(stored) && !isRepeated(call.given, value)) return stored
    // Large values are kept once, however many calls they are passed to. So is an object that is passed
    // twice in one call: it must be one object there too.
    const known = this.objects.own(value)
    if (known && !known.datum.removed) {
      if (!sameStored(known.datum.current.value as Kept, stored)) this.#wrote(known.datum, stored)
      known.seen = known.datum.current
      return SlotArgument.of(addSlot(call, known.datum, 'in', 'value'))
    }
    const datum = new Datum()
    datum.current.value = stored
    this.objects.add(value, upToDate(datum))
    return SlotArgument.of(addSlot(call, datum, 'in', 'value'))
  }

  /**
   * The slot of a value that exists on its own: a future, a tracked object, shared memory; else -1. `isApart` is for one
   * inside another value, and says whether the large ones in that have nothing in common.
   */
  #readSlot(call: Call, value: object, isApart: (() => boolean) | null = null): number {
    if (value instanceof Stream) {
      if (FORMS[call.definition.form].runsOn !== 'threads') {
        throw new MillraceError('MR_DIRECTION', 'a command cannot take the values of a stream')
      }
      if (value.takeFor(call.definition.name, call)) undoable(call, () => value.giveBack())
      return addSlot(call, value.datum, 'in', 'value')
    }
    if (value instanceof Future) {
      checkRemoved(value.datum)
      if (value.object) {
        this.objects.claim(value.object, value.datum)
        this.#refresh(value.object)
      }
      return addSlot(call, value.datum, 'in', 'value')
    }
    this.objects.rejectPart(value)
    if (isInSharedMemory(value)) {
      return addSlot(
        call,
        this.objects.shared.track(value, () => this.#encode(value, null)).datum,
        'in',
        'value',
      )
    }
    const tracked = this.objects.atCall(value)
    if (!tracked || (!tracked.dirty && this.#collections.is(value))) return -1
    checkRemoved(tracked.datum)
    // What is inside another value may have parts in common with it: only large ones are worth a slot of their own.
    if (isApart && !tracked.dirty && !hasSlot(call, tracked.datum)) {
      if (!isLarge(tracked.datum) || !(ArrayBuffer.isView(value) || isApart())) return -1
    }
    if (!tracked.dirty) this.#refresh(value)
    return addSlot(call, tracked.datum, 'in', 'value')
  }

  /** Captures the program's own object again, if it has changed since. */
  #refresh(value: object, toWrite = false): void {
    const tracked = this.objects.own(value)
    if (!tracked || tracked.dirty) return
    const before = tracked.datum.current.value as Kept
    const hasLarge = before instanceof Stored && before.blobs.length > 0
    const encode = (take: EncodeHooks['blob']): Stored =>
      toWrite ? this.#encodeWhole(value, tracked, take) : this.#encode(value, null, take)
    // To copy a large array takes many times as long as to see that it is as it was.
    const blob = toWrite ? ownBlob : shareBlob
    const seen = encode(hasLarge ? compareBlobs(before) : blob)
    if (!sameStored(before, seen)) this.#wrote(tracked.datum, hasLarge ? encode(blob) : seen)
    tracked.seen = tracked.datum.current
  }

  // --- values that are written ---

  #write(call: Call, value: unknown, mode: AccessMode, direction: Direction): Argument {
    const part = this.#part(call, value, mode)
    if (part) return part
    if (value instanceof Stream) {
      throw new MillraceError(
        'MR_DIRECTION',
        `${direction} needs an object that the task can write, and got a stream`,
      )
    }
    if (value instanceof Future) {
      checkRemoved(value.datum)
      if (value.object) {
        this.objects.claim(value.object, value.datum)
        this.#refresh(value.object, true)
        const tracked = this.objects.own(value.object)
        if (tracked) this.objects.giveAway(call, value.object, tracked)
      }
      const slot = addSlot(call, value.datum, mode === 'out' ? 'inout' : mode, 'value')
      this.objects.countWrite(call, value.datum)
      return SlotArgument.of(slot)
    }
    if (typeof value !== 'object' || value === null) {
      const what = value === null ? 'null' : typeof value
      throw new MillraceError(
        'MR_DIRECTION',
        `${direction} needs an object that the task can write, and got ${what}`,
      )
    }
    this.objects.rejectPart(value)
    if (isInSharedMemory(value)) {
      return new SlotArgument(
        addSlot(call, this.objects.shared.track(value, () => this.#encode(value, null)).datum, mode, 'value'),
      )
    }
    let tracked = this.objects.atCall(value)
    if (!tracked?.dirty && this.#collections.isToBeWritten(value)) {
      if (this.#collections.holdsOthers(value)) return this.#writeWith(call, value, direction)
      return this.#encode(value, inner => this.#writeElement(call, inner, mode))
    }
    if (Object.isFrozen(value)) throw frozen(direction)
    if (tracked) {
      checkRemoved(tracked.datum)
      if (!tracked.dirty && mode !== 'out') this.#refresh(value, true)
    } else {
      tracked = upToDate(new Datum())
      if (mode !== 'out') tracked.datum.current.value = this.#encodeWhole(value, tracked)
      this.objects.add(value, tracked)
    }
    if (mode === 'concurrent') rejectUnshareable(tracked.datum.current.value)
    const slot = addSlot(call, tracked.datum, mode, 'value')
    if (mode === 'out') (call.slots[slot] as Slot).initial = this.#shapeOf(value, tracked)
    this.objects.giveAway(call, value, tracked)
    this.objects.countWrite(call, tracked.datum)
    return SlotArgument.of(slot)
  }

  /**
   * An object that holds others which tasks write by themselves: from here on they are written with the whole. The task
   * gets it as it is here, with those as tasks will have left them.
   */
  #writeWith(call: Call, value: object, direction: Direction): Argument {
    const { form, options } = call.definition
    const isApart = FORMS[form].runsOn !== 'threads' || options.onFailure === 'ignore'
    if (direction !== 'INOUT' || isApart || Object.isFrozen(value)) throw mixed(direction)
    const whole = this.objects.own(value) ?? upToDate(new Datum())
    const held: Tracked[] = []
    const slots: { slot: number; from: number; size: number }[] = []
    const parts: { slot: number; number: number }[] = []
    const slotOf = (one: Tracked): number => {
      checkRemoved(one.datum)
      const slot = addSlot(call, one.datum, 'inout', 'value')
      if (!held.includes(one)) {
        held.push(one)
        slots.push({ slot, from: 0, size: one.own?.length ?? 0 })
      }
      return slot
    }
    const inside = (inner: object): number => {
      if (inner instanceof Future) throw mixed(direction)
      const isView = ArrayBuffer.isView(inner)
      const part = isView ? null : this.objects.wholeOf(inner)
      if (part) return PARTS_FROM + parts.push({ slot: slotOf(part.owner), number: part.number }) - 1
      const known = this.objects.known(inner)
      if (known?.dirty && known.own && !isView) return slotOf(known)
      this.#takePart(inner, whole)
      return -1
    }
    const initial = this.#encode(value, inside, ownBlob, whole)
    const own = [...(whole.own ?? [value])]
    held.forEach((one, i) => {
      const at = slots[i] as (typeof slots)[number]
      ;(call.slots[at.slot] as Slot).hasParts = true
      at.from = own.length
      own.push(...(one.own ?? []))
      this.objects.countWrite(call, one.datum)
    })
    whole.own = own
    this.objects.add(value, whole)
    this.objects.hold(call, whole, held)
    this.objects.giveAway(call, value, whole)
    this.objects.countWrite(call, whole.datum)
    const at = addSlot(call, whole.datum, 'out', 'value')
    Object.assign(call.slots[at] as Slot, { initial, holds: { slots, parts } })
    return SlotArgument.of(at)
  }

  #writeElement(call: Call, inner: object, mode: AccessMode): number {
    const object = inner instanceof Future ? inner.object : inner
    if (typeof object === 'object' && object !== null) this.objects.rejectPart(object)
    if (!this.#collections.isElement(inner) && !ArrayBuffer.isView(inner)) return -1
    return (this.#write(call, inner, mode, 'INOUT') as SlotArgument).slot
  }

  /** What a task gets to write into: arrays of the right size, other objects as they are. */
  #shapeOf(value: object, tracked: Tracked): Stored {
    if (!ArrayBuffer.isView(value)) return this.#encodeWhole(value, tracked)
    tracked.own ??= [value]
    const encoder = new Encoder()
    encoder.byte(TAG.zeros)
    encoder.byte(codeOf(value))
    encoder.varint(value.byteLength)
    return new Stored(encoder.copy(), [])
  }

  // --- encoding ---

  #encode(
    value: unknown,
    slot: ((inner: object) => number) | null,
    blob = shareBlob,
    owner: Tracked | null = null,
  ): Stored {
    const encoder = this.#encoders.pop() ?? new Encoder()
    encoder.reset()
    const hooks: EncodeHooks = { classes: this.#classes, blob }
    if (slot) hooks.slot = inner => (inner === value ? -1 : slot(inner))
    if (owner) owner.own = encoder.whole(value, hooks, null)
    else encoder.value(value, hooks)
    const stored = new Stored(encoder.copy(), encoder.blobs)
    this.#encoders.push(encoder)
    return stored
  }

  /** Throws when tasks are making or writing something in a value that is to be sent as it is. */
  rejectBusy(value: unknown): void {
    if (typeof value !== 'object' || value === null) return
    const isBusy = this.#collections.isBusy(value)
    if (isBusy) throw busy()
  }

  #takePart(inner: object, owner: Tracked): void {
    if (inner instanceof Future || inner instanceof Stream || this.objects.isBusy(inner)) {
      throw busy()
    }
    this.objects.addPart(inner, owner)
  }

  /** An object that tasks write as a whole: what is inside it is written with it. */
  #encodeWhole(value: object, owner: Tracked, blob = ownBlob): Stored {
    const take = (inner: object): number => {
      this.#takePart(inner, owner)
      return -1
    }
    return this.#encode(value, take, blob, owner)
  }
}

const isLargeStored = ({ bytes, blobs }: Stored): boolean => bytes.length >= BLOB_SIZE || blobs.length > 0

const isLarge = ({ current: { value } }: Datum): boolean => !(value instanceof Stored) || isLargeStored(value)

const hasSlot = ({ slots }: Call, datum: Datum): boolean => slots.some(slot => slot.datum === datum)

const isRepeated = (given: readonly unknown[], value: unknown): boolean =>
  given.length > 1 && given.indexOf(value) !== given.lastIndexOf(value)
