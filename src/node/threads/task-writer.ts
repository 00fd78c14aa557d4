import { source } from '../../core/data/datum.ts'
import type { Access, Version } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import type { Task } from '../../core/tasks/task.ts'
import { SlotArgument } from '../../model/capture/call.ts'
import type { Holds, KeptSlot } from '../../model/capture/call.ts'
import { Decoder } from '../../model/encoding/decode.ts'
import type { DecodeHooks } from '../../model/encoding/decode.ts'
import { Encoder } from '../../model/encoding/encode.ts'
import type { EncodeHooks } from '../../model/encoding/encode.ts'
import { GrownList } from '../../model/encoding/grown-list.ts'
import { NOTHING, Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import { writeGrant } from './grants.ts'
import type { TaskGrant } from './grants.ts'
import { writeEarly } from './early-wire.ts'
import { ARGUMENT, FLAG, SHARE } from './protocol.ts'
import { attemptOf, jobOf } from '../job.ts'
import { plainBuffers, shareHere } from './buffer-ownership.ts'
import type { BufferOwnership } from './buffer-ownership.ts'
import { isLongList } from './sent-lists.ts'
import type { SentList, SentLists } from './sent-lists.ts'
import type { MemoryMessage, SentMemory } from './sent-memory.ts'
import type { PlacedMemory } from './thread-port.ts'

const primitives: EncodeHooks = {
  classes: null,
  blob: view => ({ buffer: view.buffer, offset: view.byteOffset }),
}

// Most tasks have none, and there are many.
const NO_BUFFERS: readonly ArrayBuffer[] = []
const NO_VALUES: readonly Stored[] = []
const NO_PLACES: readonly PlacedMemory[] = []

/** Writes task records (see protocol.ts), deciding for each slot who may do what with its memory. */
export class TaskWriter {
  readonly encoder = new Encoder()
  /** Buffers that move to the thread with this record. */
  transfer: readonly ArrayBuffer[] = NO_BUFFERS
  /** Values whose buffers are lent with this record, in order. */
  lent: readonly Stored[] = NO_VALUES
  /** Values whose buffers the thread will put into shared memory. */
  published: readonly Stored[] = NO_VALUES
  /** The task was given memory that will not be what it was when the task ends. */
  consumed = false
  /** Memory that is written in place, for a thread on another machine. */
  placed: readonly PlacedMemory[] = NO_PLACES
  /** Lists of which the thread may have the beginning. */
  sentLists: SentList[] | null = null
  /** What the thread has to have before the record. */
  message: MemoryMessage | null = null
  #before = 0
  #flags = 0
  readonly #isMeasured: (task: Task) => boolean
  #isRemote = false
  #lane = -1
  /** Values that the task writes, so far. */
  #written = 0
  readonly #lists: SentLists | null
  readonly #buffers: BufferOwnership
  readonly #isAlone: (task: Task) => boolean
  readonly #grant: (task: Task) => TaskGrant | null

  /** `isAlone`: no other task can end the thread under it. `isMeasured`: its steps are. */
  constructor(
    buffers: BufferOwnership,
    lists: SentLists | null,
    isAlone: (task: Task) => boolean,
    grant: (task: Task) => TaskGrant | null,
    isMeasured: (task: Task) => boolean = () => false,
  ) {
    this.#isMeasured = isMeasured
    this.#lists = lists
    this.#grant = grant
    this.#buffers = buffers
    this.#isAlone = isAlone
  }

  /** The last record took memory with it, which the caller has to track. */
  get hasObligations(): boolean {
    return this.consumed || this.lent.length > 0 || this.published.length > 0
  }

  /** A value that is away must come back before the task can be written; null when nothing is missing. */
  missing(task: Task): Stored | null {
    const { slots } = jobOf(task)
    for (let i = 0; i < slots.length; i++) {
      const kept = this.#version(task, i)?.value
      if (kept instanceof Stored && this.#buffers.isAway(kept)) return kept
    }
    return null
  }

  /**
   * Whether memory that exists once goes with it: such tasks are sent when their turn has come, while it can still
   * be lent or moved. Others can be taken back.
   */
  hasOwnMemory(task: Task): boolean {
    const { args, slots } = jobOf(task)
    for (const argument of args) if (argument instanceof Stored && argument.exclusive) return true
    for (let i = 0; i < slots.length; i++) {
      const version = this.#version(task, i)
      const kept = slots[i]?.initial ?? version?.value
      if (!(kept instanceof Stored) || kept.blobs.length === 0) continue
      const isShared = (task.accesses[i] as Access).mode === 'in' || version?.datum.inPlace
      if (kept.exclusive || !isShared) return true
    }
    return false
  }

  /** The shared memory of a task that can be taken back. */
  sharedMemory(task: Task): SharedArrayBuffer[] {
    const { args, slots } = jobOf(task)
    const values = [...args, ...slots.map((_, i) => this.#version(task, i)?.value)]
    return values.flatMap(value => (value instanceof Stored ? value.blobs.filter(isShared) : []))
  }

  /**
   * `before`: how many messages the thread has to have seen. `isRemote`: it is on another machine, which gets copies, so
   * that nothing is lost with it. `lane`: the thread, when it keeps lists.
   */
  write(task: Task, before: number, isRemote = false, lane = -1): void {
    const { args, slots } = jobOf(task)
    const { encoder } = this
    encoder.reset()
    this.#before = before
    this.#isRemote = isRemote
    this.placed = NO_PLACES
    this.transfer = NO_BUFFERS
    this.lent = NO_VALUES
    this.published = NO_VALUES
    this.consumed = false
    this.sentLists = null
    this.#lane = lane
    this.#written = 0
    encoder.word(before)
    encoder.varint(task.id)
    encoder.varint(task.attempt)
    encoder.varint(task.kind.id)
    const { early } = attemptOf(task)
    this.#flags = encoder.length
    const grant = this.#grant(task)
    encoder.byte(
      (this.#isMeasured(task) ? FLAG.steps : 0) |
        (task.onFailure === 'ignore' ? FLAG.partial : 0) |
        (early ? FLAG.early : 0) |
        (grant ? FLAG.granted : 0),
    )
    encoder.varint(Math.max(0, task.kind.implementations.indexOf(task.implementation)))
    if (grant) writeGrant(encoder, grant)
    encoder.varint(slots.length)
    for (let i = 0; i < slots.length; i++) this.#slot(task, i, slots[i] as KeptSlot)
    encoder.varint(args.length)
    for (const argument of args) {
      if (argument instanceof SlotArgument) {
        const { slot, within, part } = argument
        encoder.byte(part >= 0 ? ARGUMENT.part : within === null ? ARGUMENT.slot : ARGUMENT.inside)
        encoder.varint(slot)
        if (part >= 0) encoder.varint(part)
        else if (within !== null) encoder.text(within)
      } else {
        encoder.byte(ARGUMENT.value)
        encoder.varint(encoder.blobs.length)
        if (argument instanceof Stored) {
          encoder.raw(argument.bytes)
          encoder.blobs.push(...argument.blobs)
        } else encoder.value(argument, primitives)
      }
    }
    if (early) writeEarly(encoder, early)
  }

  /**
   * Ends the record with the list of its buffers, if all of them are shared, so that it can go through the ring.
   * Returns whether it can; what the thread has to be sent for it is in `message`.
   */
  listMemory(sent: SentMemory, lane: number): boolean {
    this.message = null
    const { encoder } = this
    if (encoder.blobs.length === 0) return true
    if (!encoder.blobs.every(isShared)) return false
    const start = encoder.length
    this.message = sent.write(encoder, encoder.blobs, lane)
    encoder.word(encoder.length + 4 - start)
    // A message that goes with it counts too.
    if (this.message) encoder.setWord(0, this.#before + 1)
    encoder.bytes[this.#flags] = (encoder.bytes[this.#flags] as number) | FLAG.memory
    return true
  }

  #version(task: Task, index: number): Version | null {
    return source(task.accesses[index] as Access)
  }

  #slot(task: Task, index: number, slot: KeptSlot): void {
    const { encoder } = this
    if (slot.kind !== 'value') {
      encoder.byte(SHARE.path)
      const { seen, paths } = attemptOf(task)
      return encoder.text((seen ?? paths)?.[index] ?? '')
    }
    const access = task.accesses[index] as Access
    const output = access.mode === 'in' ? -1 : this.#written++
    if (slot.holds) this.#holds(slot.holds)
    if (slot.initial && !access.read) return this.#kept(this.#isRemote ? SHARE.copy : SHARE.own, slot.initial)
    const version = this.#version(task, index) as Version
    let kept = version.value as Kept | undefined
    if (kept === undefined || (kept instanceof Stored && this.#buffers.isLost(kept))) {
      throw new MillraceError('MR_DATA_LOST', `a value that ${task.name} reads is gone`)
    }
    const share = this.#isRemote
      ? this.#remoteShare(access, version, kept)
      : this.#share(task, access, version, kept)
    // A team may have been given memory of its own just now.
    kept = (source(access) as Version).value as Kept
    if (slot.hasParts) encoder.byte(SHARE.parts)
    else if (kept instanceof Stored && this.#isList(share, kept)) return this.#list(kept, output)
    this.#kept(share, kept)
    if (!(kept instanceof Stored) || kept.blobs.length === 0) return
    if (this.#isRemote) return this.#place(access, version, kept, share)
    if (share === SHARE.own) {
      // From now on the memory belongs to the task, which will write it.
      this.transfer = [...this.transfer, ...plainBuffers(kept)]
      version.value = undefined
      this.consumed = true
    } else if (share === SHARE.lend || share === SHARE.publish) {
      this.transfer = [...this.transfer, ...this.#buffers.lend(kept)]
      if (share === SHARE.lend) this.lent = [...this.lent, kept]
      else this.published = [...this.published, kept]
    }
  }

  #holds({ slots, parts }: Holds): void {
    this.encoder.byte(SHARE.holds)
    this.encoder.varint(slots.length)
    for (const { slot, from, size } of slots) {
      this.encoder.varint(slot)
      this.encoder.varint(from)
      this.encoder.varint(size)
    }
    this.encoder.varint(parts.length)
    for (const { slot, number } of parts) {
      this.encoder.varint(slot)
      this.encoder.varint(number)
    }
  }

  #kept(share: number, kept: Kept): void {
    const { encoder } = this
    encoder.byte(share)
    encoder.varint(encoder.blobs.length)
    if (kept instanceof Stored) {
      encoder.varint(kept.blobs.length)
      encoder.raw(kept.bytes)
      encoder.blobs.push(...kept.blobs)
    } else {
      encoder.varint(0)
      encoder.value(kept === NOTHING ? undefined : kept, primitives)
    }
  }

  #isList(share: number, kept: Stored): boolean {
    if (this.#lane < 0 || !this.#lists) return false
    return share === SHARE.read ? kept instanceof GrownList : share === SHARE.own && isLongList(kept)
  }

  #list(kept: Stored, output: number): void {
    this.encoder.byte(output < 0 ? SHARE.readList : SHARE.list)
    ;(this.sentLists ??= []).push((this.#lists as SentLists).write(this.encoder, kept, output, this.#lane))
  }

  #share(task: Task, access: Access, version: Version, kept: Kept): number {
    const again = task.attempt <= task.retries
    const exclusive = kept instanceof Stored && kept.exclusive
    if (access.mode === 'in') {
      if (!exclusive) return SHARE.read
      // A thread that is stopped, by a timeout or by a cancelled group, would take with it what it was lent.
      const mayBeStopped = task.timed || task.group.parent !== null || !this.#isAlone(task)
      const mayLend = version.readers === 1 && !version.watched && !again && !mayBeStopped
      return mayLend ? SHARE.lend : SHARE.publish
    }
    // Putting back a copy would undo what others of the team have written meanwhile.
    if (version.datum.inPlace) return again && access.mode !== 'concurrent' ? SHARE.guarded : SHARE.inPlace
    if (!(kept instanceof Stored) || kept.blobs.length === 0) {
      if (access.mode === 'concurrent') throw unshareable()
      return SHARE.own
    }
    if (access.mode === 'concurrent') return this.#concurrent(access, version, kept)
    // An ignored failure goes on with what was there: that has to outlive a thread that ends under the task.
    const mayMove = !again && task.onFailure !== 'ignore' && this.#isAlone(task)
    if (version.readers <= 1 && !version.watched && mayMove) return SHARE.own
    if (access.write?.team && version === access.write && mayMove) return SHARE.own
    if (exclusive) shareHere(kept)
    return SHARE.copy
  }

  /** What another machine is given is a copy in any case: the task may write it, and it need not come back when it is lost. */
  #remoteShare(access: Access, version: Version, kept: Kept): number {
    if (access.mode === 'in') return SHARE.read
    if (version.datum.inPlace) return SHARE.inPlace
    if (kept instanceof Stored && kept.blobs.length > 0) {
      return access.mode === 'concurrent' ? this.#concurrent(access, version, kept) : SHARE.copy
    }
    if (access.mode === 'concurrent') throw unshareable()
    return SHARE.own
  }

  /** The buffers of the value are the last of the record so far. */
  #place({ mode }: Access, { datum }: Version, { bytes, blobs }: Stored, share: number): void {
    if (!datum.inPlace && share !== SHARE.inPlace) return
    const first = this.encoder.blobs.length - blobs.length
    const isWritten = share === SHARE.inPlace
    const isShared = mode === 'concurrent'
    const view = datum.inPlace ? viewOf(bytes, blobs) : null
    const places = blobs.map((blob, i) => ({
      blob: first + i,
      offset: view?.byteOffset ?? 0,
      length: view?.byteLength ?? blob.byteLength,
      isWritten,
      isShared,
    }))
    this.placed = [...this.placed, ...places]
  }

  /** Members of a team write the same memory; the first gives the team memory of its own, if others read the base. */
  #concurrent(access: Access, version: Version, kept: Stored): number {
    const write = access.write as Version
    if (version !== write) {
      const team = write.team
      const alone = version.readers <= (team?.live ?? 0)
      const own = alone ? kept : new Stored(kept.bytes, kept.blobs)
      if (!alone || kept.exclusive) {
        own.blobs = own.blobs.map(blob => blob.slice(0) as ArrayBufferLike)
        shareHere(own)
      }
      write.value = own
      version.value = alone ? own : kept
    }
    return SHARE.inPlace
  }
}

const noHooks: DecodeHooks = { findClass: () => null, slot: () => undefined }

/** Shared memory is an array in a buffer. */
function viewOf(bytes: Uint8Array, blobs: readonly ArrayBufferLike[]): ArrayBufferView {
  const decoder = new Decoder(bytes, noHooks)
  decoder.beside(blobs)
  return decoder.value() as ArrayBufferView
}

const isShared = (buffer: ArrayBufferLike): buffer is SharedArrayBuffer => buffer instanceof SharedArrayBuffer

/** What a future turned out to be: members of a team would each write a copy, and all but one be lost. */
const unshareable = (): MillraceError =>
  new MillraceError('MR_DIRECTION', 'CONCURRENT needs memory that tasks can share, and got a small value', {
    hint: 'Use shared(Float64Array, n), or COMMUTATIVE for other objects.',
  })
