import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Datum } from '../core/data.ts'
import type { AccessMode, Version } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import { NO_SLOTS, SlotArgument } from './call.ts'
import type { Argument, Call, Slot } from './call.ts'
import type { Definition } from './definition.ts'
import { DIRECTIONS } from './directions.ts'
import type { DatumKind, Direction } from './directions.ts'
import { BLOB_SIZE, Encoder } from './encode.ts'
import type { ClassNames, EncodeHooks } from './encode.ts'
import { Future } from './future.ts'
import { Paths } from './paths.ts'
import { PlainViews } from './plain-views.ts'
import { StreamFile } from './stream.ts'
import { SharedMemory } from './shared.ts'
import { addSlot, checkRemoved, forgetSlots } from './slots.ts'
import { Stream } from './value-stream.ts'
import { Stored, compareBlobs, isPrimitive, sameStored, shareBlob } from './stored.ts'
import type { Kept } from './stored.ts'
import { TAG } from './tags.ts'
import { codeOf } from './typed-arrays.ts'

/** What is known of an object that was passed to tasks. */
export interface Tracked {
  readonly datum: Datum
  /** A task writes it, so the object here is out of date until `waitOn`. */
  dirty: boolean
  /** The version that the object here has the value of. */
  seen: Version | null
}

/**
 * Follows the data of one program: objects by identity, files by path. Turns arguments into what a call
 * carries, captured at the moment of the call, so that the program means what it would mean run in sequence.
 */
export class Tracker {
  readonly paths = new Paths()
  readonly #tracked = new WeakMap<object, Tracked>()
  /** Objects inside an object that tasks write: their own value is not known until the whole is waited for. */
  readonly #partOf = new WeakMap<object, Tracked>()
  readonly #shared = new SharedMemory()
  readonly #views = new PlainViews()
  readonly #writes = new WeakMap<Datum, number>()
  /** Encoders at rest; capturing one value can need another one captured meanwhile. */
  readonly #encoders: Encoder[] = []
  readonly #classes: ClassNames
  /** Tells the client that the program has given a datum a new value. */
  readonly #wrote: (datum: Datum, value: Kept) => void

  constructor(classes: ClassNames, wrote: (datum: Datum, value: Kept) => void) {
    this.#classes = classes
    this.#wrote = wrote
  }

  find(value: object): Tracked | undefined {
    return isSharedView(value) ? this.#shared.find(value) : this.#known(value)
  }

  #known(value: object): Tracked | undefined {
    const same = ArrayBuffer.isView(value) ? this.#views.find(value) : undefined
    if (same) this.#tracked.set(value, same)
    return same ?? this.#tracked.get(value)
  }

  /** Calls so far that write the datum: tells whether it was given away again while someone waited for it. */
  writesOf(datum: Datum): number {
    return this.#writes.get(datum) ?? 0
  }

  /** After a wait: the program's object is the datum's value again, or what it was `writes` ago. */
  adopt(value: object, datum: Datum, writes: number): void {
    if (isSharedView(value)) return
    const dirty = this.writesOf(datum) !== writes
    const seen = dirty ? null : datum.current
    const known = this.#tracked.get(value)
    const tracked = known?.datum === datum ? Object.assign(known, { dirty, seen }) : { datum, dirty, seen }
    if (tracked !== known) this.#tracked.set(value, tracked)
    if (!dirty) this.#views.drop(tracked)
    else if (ArrayBuffer.isView(value)) this.#views.add(value, tracked, false)
  }

  /** After a wait that failed: the datum is what it was before; perhaps that is what the program's object still is. */
  fellBack(value: object): void {
    const tracked = this.#tracked.get(value)
    if (!tracked || tracked.datum.current !== tracked.seen) return
    tracked.dirty = false
    this.#views.drop(tracked)
  }

  call(definition: Definition, given: readonly unknown[]): Call {
    const { params } = definition
    if (params && given.length > params.length) {
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
    for (let i = 0; i < given.length; i++) {
      const value = given[i]
      const direction = params?.[i] ?? 'IN'
      if (direction !== 'IN' || !isPrimitive(value)) call.args[i] = this.#argument(call, value, direction, i)
    }
    if (params) {
      for (let i = given.length; i < params.length; i++) {
        if (params[i] !== 'IN') this.#argument(call, undefined, params[i] as Direction, i)
      }
    }
    forgetSlots()
    return call
  }

  #argument(call: Call, value: unknown, direction: Direction, position: number): Argument {
    const { kind, mode } = DIRECTIONS[direction]
    try {
      if (kind !== 'value') return this.#path(call, value, kind, mode, direction)
      if (mode === 'in') return this.#read(call, value)
      return this.#write(call, value, mode, direction)
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      const where = `argument ${position + 1} of ${call.definition.name}`
      throw new MillraceError(error.code, `${where}: ${error.shortMessage}`, {
        hint: error.hint,
        cause: error,
      })
    }
  }

  // --- values that are read ---

  #read(call: Call, value: unknown): Argument {
    if (isPrimitive(value)) return value as Argument
    if (typeof value !== 'object' || value === null) return this.#encode(value, null)
    const slot = this.#readSlot(call, value)
    if (slot >= 0) return SlotArgument.of(slot)
    const slots = call.slots.length
    const stored = this.#encode(value, inner => this.#readSlot(call, inner))
    if (call.slots.length > slots) return stored
    const isLarge = stored.bytes.length >= BLOB_SIZE || stored.blobs.length > 0
    if (!isLarge && !isRepeated(call.given, value)) return stored
    // Large values are kept once, however many calls they are passed to. So is an object that is passed
    // twice in one call: it must be one object there too.
    const datum = new Datum()
    datum.current.value = stored
    this.#tracked.set(value, { datum, dirty: false, seen: datum.current })
    return SlotArgument.of(addSlot(call, datum, 'in', 'value'))
  }

  /** The slot of a value that exists on its own: a future, a tracked object, shared memory; else -1. */
  #readSlot(call: Call, value: object): number {
    if (value instanceof Stream) {
      if (call.definition.form !== 'function') {
        throw new MillraceError('MR_DIRECTION', 'a command cannot take the values of a stream')
      }
      value.takeFor(call.definition.name)
      return addSlot(call, value.datum, 'in', 'value')
    }
    if (value instanceof Future) {
      checkRemoved(value.datum)
      if (value.object) {
        this.#claim(value.object, value.datum)
        this.#refresh(value.object)
      }
      return addSlot(call, value.datum, 'in', 'value')
    }
    this.rejectPart(value)
    if (isSharedView(value)) {
      return addSlot(call, this.#shared.track(value, () => this.#encode(value, null)).datum, 'in', 'value')
    }
    const tracked = this.#known(value)
    if (!tracked || (!tracked.dirty && this.#isCollection(value))) return -1
    checkRemoved(tracked.datum)
    if (!tracked.dirty) this.#refresh(value)
    return addSlot(call, tracked.datum, 'in', 'value')
  }

  /** What is inside an object that tasks write is known only after the whole is waited for. */
  rejectPart(value: object, owner: Tracked | null = null): void {
    const part = this.#partOf.get(value)
    if (part?.dirty && part !== owner && !part.datum.removed) {
      throw new MillraceError('MR_ALIAS', 'the object is part of another object that a task is writing')
    }
    if (ArrayBuffer.isView(value)) this.#views.reject(value, owner)
  }

  /** What the program has of a future's value may have been written under another name of the same memory. */
  #claim(value: object, datum: Datum): void {
    this.rejectPart(value)
    const tracked = this.#known(value)
    if (!tracked || tracked.datum === datum) return
    if (tracked.dirty && !tracked.datum.removed) {
      throw new MillraceError('MR_ALIAS', 'a task is writing its memory as another array')
    }
    this.#tracked.set(value, { datum, dirty: false, seen: datum.current })
  }

  /** Captures the program's own object again, if it has changed since. */
  #refresh(value: object, toWrite = false): void {
    const tracked = this.#tracked.get(value)
    if (!tracked || tracked.dirty) return
    const before = tracked.datum.current.value as Kept
    const hasLarge = before instanceof Stored && before.blobs.length > 0
    const encode = (blob: EncodeHooks['blob']): Stored =>
      toWrite ? this.#encodeWhole(value, tracked, blob) : this.#encode(value, null, blob)
    // To copy a large array takes many times as long as to see that it is as it was.
    const seen = encode(hasLarge ? compareBlobs(before) : shareBlob)
    if (!sameStored(before, seen)) this.#wrote(tracked.datum, hasLarge ? encode(shareBlob) : seen)
    tracked.seen = tracked.datum.current
  }

  // --- values that are written ---

  #write(call: Call, value: unknown, mode: AccessMode, direction: Direction): Argument {
    if (value instanceof Stream) {
      throw new MillraceError(
        'MR_DIRECTION',
        `${direction} needs an object that the task can write, and got a stream`,
      )
    }
    if (value instanceof Future) {
      checkRemoved(value.datum)
      if (value.object) {
        this.#claim(value.object, value.datum)
        this.#refreshAndGiveAway(value.object)
      }
      this.#countWrite(value.datum)
      return SlotArgument.of(addSlot(call, value.datum, mode === 'out' ? 'inout' : mode, 'value'))
    }
    if (typeof value !== 'object' || value === null) {
      const what = value === null ? 'null' : typeof value
      throw new MillraceError(
        'MR_DIRECTION',
        `${direction} needs an object that the task can write, and got ${what}`,
      )
    }
    this.rejectPart(value)
    if (isSharedView(value)) {
      return new SlotArgument(
        addSlot(call, this.#shared.track(value, () => this.#encode(value, null)).datum, mode, 'value'),
      )
    }
    let tracked = this.#known(value)
    if (!tracked?.dirty && this.#isCollectionToWrite(value)) {
      if (this.#holdsOthers(value)) throw mixed(direction)
      return this.#encode(value, inner => this.#writeElement(call, inner, mode))
    }
    if (Object.isFrozen(value)) throw frozen(direction)
    if (tracked) {
      checkRemoved(tracked.datum)
      if (!tracked.dirty && mode !== 'out') this.#refresh(value, true)
    } else {
      tracked = { datum: new Datum(), dirty: false, seen: null }
      tracked.seen = tracked.datum.current
      if (mode !== 'out') tracked.datum.current.value = this.#encodeWhole(value, tracked)
      this.#tracked.set(value, tracked)
    }
    if (mode === 'concurrent') rejectUnshareable(tracked.datum.current.value)
    const slot = addSlot(call, tracked.datum, mode, 'value')
    if (mode === 'out') (call.slots[slot] as Slot).initial = this.#shapeOf(value, tracked)
    if (ArrayBuffer.isView(value)) this.#views.add(value, tracked, false)
    tracked.dirty = true
    this.#countWrite(tracked.datum)
    return SlotArgument.of(slot)
  }

  /**
   * An array or plain object that holds futures, tracked objects or shared arrays is a collection: its
   * elements are data of their own, the collection itself only says which ones.
   */
  #isCollection(value: object): boolean {
    return holds(value, null, item => this.#isElement(item))
  }

  /**
   * An object that holds, beside other values, objects that were passed before and are up to date, is
   * written as a whole: what the task does to the other values must come back too.
   */
  #isCollectionToWrite(value: object): boolean {
    if (!this.#isCollection(value)) return false
    const isElsewhere = (item: object): boolean =>
      item instanceof Future || isSharedView(item) || (this.#known(item)?.dirty ?? false)
    return holds(value, null, isElsewhere) || !this.#holdsOthers(value)
  }

  /** Values that are not data of their own. */
  #holdsOthers(value: object): boolean {
    return holds(value, null, item => !this.#isElement(item) && !ArrayBuffer.isView(item), true)
  }

  #isElement(value: object): boolean {
    return (
      value instanceof Future ||
      value instanceof Stream ||
      isSharedView(value) ||
      this.#known(value) !== undefined
    )
  }

  #writeElement(call: Call, inner: object, mode: AccessMode): number {
    if (!this.#isElement(inner) && !ArrayBuffer.isView(inner)) return -1
    return (this.#write(call, inner, mode, 'INOUT') as SlotArgument).slot
  }

  #countWrite(datum: Datum): void {
    this.#writes.set(datum, this.writesOf(datum) + 1)
  }

  #refreshAndGiveAway(value: object): void {
    this.#refresh(value, true)
    const tracked = this.#tracked.get(value)
    if (!tracked) return
    if (ArrayBuffer.isView(value)) this.#views.add(value, tracked, false)
    tracked.dirty = true
  }

  /** What a task gets to write into: arrays of the right size, other objects as they are. */
  #shapeOf(value: object, tracked: Tracked): Stored {
    if (!ArrayBuffer.isView(value)) return this.#encodeWhole(value, tracked)
    const encoder = new Encoder()
    encoder.byte(TAG.zeros)
    encoder.byte(codeOf(value))
    encoder.varint(value.byteLength)
    return new Stored(encoder.copy(), [])
  }

  // --- files and directories ---

  #path(call: Call, value: unknown, kind: DatumKind, mode: AccessMode, direction: Direction): Argument {
    if (value instanceof StreamFile) {
      const isOutput = direction === 'FILE_OUT' || direction === 'DIR_OUT'
      if (!isOutput || call.definition.form !== 'command') {
        throw new MillraceError(
          'MR_DIRECTION',
          `stream() is for FILE_OUT and DIR_OUT of a command, not for ${direction}`,
          {
            hint: 'Give whoever reads the file its plain path.',
          },
        )
      }
      if (value.rules.files !== undefined && direction !== 'DIR_OUT') {
        throw new MillraceError(
          'MR_DIRECTION',
          `on_n_files is for directories, and ${value.path} is ${direction}`,
          {
            hint: "Write 'on_close', or make the parameter DIR_OUT.",
          },
        )
      }
      const argument = this.#path(call, value.path, kind, mode, direction)
      const slot = argument instanceof SlotArgument ? call.slots[argument.slot] : undefined
      const { beside } = value.rules
      const rules = beside === undefined ? value.rules : { ...value.rules, beside: Paths.absolute(beside) }
      if (slot) slot.stream = rules
      return argument
    }
    if (typeof value !== 'string' || value === '' || value.includes('\0')) {
      const got = value instanceof Future ? 'a future; its path is not known yet' : describePath(value)
      throw new MillraceError('MR_DIRECTION', `${direction} needs a path, and got ${got}`)
    }
    const path = Paths.absolute(value)
    const above = this.paths.directoryAbove(path)
    const existing = this.paths.find(path)
    if (above && (!existing || existing.current.id < above.current.id)) {
      // The file is part of a directory that a task makes, or made: it is where that version is.
      if (mode !== 'in') {
        throw new MillraceError(
          'MR_ALIAS',
          `${path} is inside ${above.path}, which is a directory parameter of another task`,
          {
            hint: 'Pass the directory as DIR_INOUT to tasks that write files in it.',
          },
        )
      }
      return new SlotArgument(
        addSlot(call, above, 'in', 'directory'),
        path.slice((above.path as string).length + 1),
      )
    }
    if (mode !== 'out' && this.paths.wasRemoved(path) && !existsSync(path)) {
      throw new MillraceError('MR_REMOVED', `${path} was removed`)
    }
    if (kind === 'directory') {
      for (const inner of this.paths.inside(path)) addSlot(call, inner, 'in', 'file')
    }
    const slot = addSlot(call, this.paths.datum(path, kind === 'directory'), mode, kind)
    const full = resolve(value)
    if (full !== path) (call.slots[slot] as Slot).named = full
    return SlotArgument.of(slot)
  }

  // --- encoding ---

  #encode(value: unknown, slot: ((inner: object) => number) | null, blob = shareBlob): Stored {
    const encoder = this.#encoders.pop() ?? new Encoder()
    encoder.reset()
    const hooks: EncodeHooks = { classes: this.#classes, blob }
    if (slot) hooks.slot = inner => (inner === value ? -1 : slot(inner))
    encoder.value(value, hooks)
    const stored = new Stored(encoder.copy(), encoder.blobs)
    this.#encoders.push(encoder)
    return stored
  }

  /** Tasks write it; or it is memory that they have in common, and they read it. */
  #isBusy(inner: object): boolean {
    if (!isSharedView(inner)) return this.#known(inner)?.dirty ?? false
    const current = this.#shared.find(inner)?.datum.current
    return current !== undefined && (!current.settled || current.readers > 0)
  }

  #takePart(inner: object, owner: Tracked): void {
    if (inner instanceof Future || inner instanceof Stream || this.#isBusy(inner)) {
      throw new MillraceError(
        'MR_ALIAS',
        'it holds something that tasks are still making, writing, or sharing',
        {
          hint: 'waitOn() that first, or pass it as an argument of its own.',
        },
      )
    }
    this.rejectPart(inner, owner)
    this.#partOf.set(inner, owner)
    if (ArrayBuffer.isView(inner) && !isSharedView(inner)) this.#views.add(inner, owner, true)
  }

  /** An object that tasks write as a whole: what is inside it is written with it. */
  #encodeWhole(value: object, owner: Tracked, blob = shareBlob): Stored {
    const take = (inner: object): number => {
      this.#takePart(inner, owner)
      return -1
    }
    return this.#encode(value, take, blob)
  }
}

const isContainer = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Array.prototype || prototype === Object.prototype || prototype === null
}

/** Whether a condition holds for something in an array or plain object, or in those inside it. */
function holds(
  value: object,
  entered: Set<object> | null,
  isWanted: (item: object) => boolean,
  orPrimitive = false,
): boolean {
  if (!isContainer(value)) return false
  for (const item of Object.values(value) as unknown[]) {
    if (typeof item !== 'object' || item === null) {
      if (orPrimitive && item !== null && item !== undefined) return true
      continue
    }
    if (isContainer(item)) {
      if (!orPrimitive && isWanted(item)) return true
      // Objects may hold themselves; a set is needed only where there is depth.
      const seen = entered ?? new Set([value])
      if (seen.has(item)) continue
      seen.add(item)
      if (holds(item, seen, isWanted, orPrimitive)) return true
    } else if (isWanted(item)) return true
  }
  return false
}

const isRepeated = (given: readonly unknown[], value: unknown): boolean =>
  given.length > 1 && given.indexOf(value) !== given.lastIndexOf(value)

const isSharedView = (value: object): value is ArrayBufferView =>
  ArrayBuffer.isView(value) && value.buffer instanceof SharedArrayBuffer

/** One slot per datum and call: several uses in one call are merged, the stronger one counts. */
function rejectUnshareable(value: unknown): void {
  if (value === undefined) return
  if (!(value instanceof Stored) || value.bytes[0] !== TAG.arrayBeside) {
    throw new MillraceError(
      'MR_DIRECTION',
      'CONCURRENT needs memory that tasks can share: a large typed array',
      {
        hint: 'Use shared(Float64Array, n), or COMMUTATIVE for other objects.',
      },
    )
  }
}

const mixed = (direction: Direction): MillraceError =>
  new MillraceError(
    'MR_DIRECTION',
    `${direction} got an object that holds futures or shared arrays beside other values, and what the task writes to those others would not come back`,
    { hint: 'Wait for the object first (waitOn), or pass the parts as arguments of their own.' },
  )

const frozen = (direction: Direction): MillraceError =>
  new MillraceError(
    'MR_DIRECTION',
    `${direction} needs an object that can be written, and got one that is frozen`,
    {
      hint: 'Pass a copy, such as {...object}, and use the copy from there on.',
    },
  )

const describePath = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value) : typeof value
