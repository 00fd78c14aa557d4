import { PARTS_FROM } from '../../model/capture/call.ts'
import { MillraceError } from '../../core/errors.ts'
import type { DecodeHooks, Decoder } from '../../model/encoding/decode.ts'
import type { Graph } from '../../model/encoding/identity.ts'
import type { Definition } from '../../model/definition.ts'
import { noteMemory } from '../../model/encoding/memory.ts'
import { memoryOf } from '../../model/encoding/typed-arrays.ts'
import { readGrant } from './grants.ts'
import type { TaskGrant } from './grants.ts'
import { readEarly } from './early-wire.ts'
import { KeptLists } from './kept-lists.ts'
import type { FlatBase } from './flat-lists.ts'
import type { EncodedBase } from './kept-lists.ts'
import type { KeptMemory } from './kept-memory.ts'
import type { EarlyStart } from './early-wire.ts'
import { ARGUMENT, FLAG, SHARE } from './protocol.ts'

export interface KnownKind {
  key: string
  module: string
  definition: Definition | null
}

export interface TaskHeader {
  task: number
  attempt: number
  kind: KnownKind
  variant: number
  partial: boolean
  hasEarly: boolean
  /** Its buffers are in a list at its end. */
  hasMemory: boolean
  /** Its steps are measured. */
  hasSteps: boolean
  grant: TaskGrant | null
}

/** A slot whose value goes back when the task ends. */
export interface WrittenSlot {
  value: unknown
  inPlace: boolean
  /** A copy to put back when the attempt fails. */
  backup: Uint8Array | null
  /** The objects that it had when it came. */
  graph: Graph | null
  /** A list as it came, when the task may give back what it has added. */
  base: FlatBase | EncodedBase | null
}

/** What holds data of their own; which ones is not for the task to change. */
export interface Collection {
  value: unknown
  /** As it came. */
  bytes: Uint8Array
  slots: readonly unknown[]
  /** Its own, without its elements, as they came. */
  objects: readonly object[]
}

export interface ReceivedTask {
  id: number
  attempt: number
  definition: Definition
  variant: number
  grant: TaskGrant | null
  /** Outputs are wanted even if it fails. */
  partial: boolean
  args: unknown[]
  written: WrittenSlot[]
  /** Arguments to be written whose elements are data of their own. */
  collections: Collection[] | null
  /** Buffers that have to go back to their owner. */
  lent: ArrayBuffer[]
  published: { slot: number; blobs: SharedArrayBuffer[] }[]
  /** Generators, and attempts after one that released values. */
  early: EarlyStart | null
  /** Returned values that this attempt has released. */
  released: Set<number> | null
  /** Some of them went as messages, so the result must not overtake them through the ring. */
  hasPosted: boolean
  ended: boolean
  /** Null where they are not measured. */
  steps: TaskSteps | null
}

/** Milliseconds, on the clock of the thread. */
export interface TaskSteps {
  /** When decoding began. */
  readonly from: number
  /** Since when it waits for tasks that it called, if it does. */
  blockedAt: number
  /** How long it has done so before. */
  waited: number
}

type HooksFor = (slots: unknown[] | null) => DecodeHooks

/** Reads task records; see protocol.ts for their layout. */
export class TaskReader {
  readonly lists = new KeptLists()
  readonly #memory: KeptMemory
  readonly #isOwn: boolean
  /** The objects of slots whose parts are arguments, of the task that is read. */
  #graphs: Map<number, Graph> | null = null

  /** `isOwn`: the memory that comes with tasks is theirs, also where they were to write a copy. */
  constructor(memory: KeptMemory, isOwn = false) {
    this.#memory = memory
    this.#isOwn = isOwn
  }

  /** Whether the record at the decoder's place is of a kind that is loaded; the place does not change. */
  peekKind(decoder: Decoder, kinds: ReadonlyMap<number, KnownKind>): boolean {
    const { at } = decoder
    decoder.word()
    decoder.varint()
    decoder.varint()
    const kind = decoder.varint()
    decoder.at = at
    return kinds.get(kind)?.definition != null
  }

  header(decoder: Decoder, kinds: ReadonlyMap<number, KnownKind>): TaskHeader {
    decoder.word()
    const task = decoder.varint()
    const attempt = decoder.varint()
    const number = decoder.varint()
    const flags = decoder.byte()
    const kind = kinds.get(number)
    if (!kind) throw new Error(`kind ${number} is not known`)
    const partial = (flags & FLAG.partial) !== 0
    const hasEarly = (flags & FLAG.early) !== 0
    const hasMemory = (flags & FLAG.memory) !== 0
    const hasSteps = (flags & FLAG.steps) !== 0
    const variant = decoder.varint()
    const grant = (flags & FLAG.granted) !== 0 ? readGrant(decoder) : null
    return { task, attempt, kind, variant, partial, hasEarly, hasMemory, hasSteps, grant }
  }

  /** The buffers of a record that ends at `end`: those beside it, or those that it lists. */
  buffers(decoder: Decoder, end: number, beside: readonly ArrayBufferLike[], { hasMemory }: TaskHeader) {
    if (!hasMemory) return beside
    const { at } = decoder
    decoder.at = end - 4
    decoder.at = end - decoder.word()
    const buffers = this.#memory.take(decoder)
    decoder.at = at
    return buffers
  }

  /** Slots and arguments. The kind must be loaded by now. */
  rest(
    decoder: Decoder,
    blobs: readonly ArrayBufferLike[],
    header: TaskHeader,
    hooksFor: HooksFor,
  ): ReceivedTask {
    const task: ReceivedTask = {
      id: header.task,
      attempt: header.attempt,
      definition: header.kind.definition as Definition,
      variant: header.variant,
      grant: header.grant,
      partial: header.partial,
      args: [],
      written: [],
      collections: null,
      lent: [],
      published: [],
      early: null,
      released: null,
      hasPosted: false,
      ended: false,
      steps: header.hasSteps ? { from: performance.now(), blockedAt: 0, waited: 0 } : null,
    }
    for (const blob of blobs) noteMemory(blob, 'reader')
    const slots: unknown[] = []
    this.#graphs = null
    const count = decoder.varint()
    if (count > 0) {
      decoder.hooks = hooksFor(slots)
      for (let i = 0; i < count; i++) slots.push(this.#slot(decoder, blobs, task, i))
    }
    const length = decoder.varint()
    for (let i = 0; i < length; i++) {
      const tag = decoder.byte()
      if (tag === ARGUMENT.slot) task.args.push(slots[decoder.varint()])
      else if (tag === ARGUMENT.part) task.args.push(this.#part(decoder.varint(), decoder.varint()))
      else if (tag === ARGUMENT.inside) task.args.push(`${String(slots[decoder.varint()])}/${decoder.text()}`)
      else {
        decoder.beside(blobs, decoder.varint())
        const { at } = decoder
        const value = decoder.value()
        task.args.push(value)
        const direction = task.definition.params?.[i] ?? 'IN'
        const isOfValues = direction !== 'IN' && !direction.startsWith('FILES_')
        if (!isOfValues || count === 0 || typeof value !== 'object') continue
        const end = decoder.at
        const { objects } = decoder.graph
        decoder.at = at
        ;(task.collections ??= []).push({ value, bytes: decoder.raw(end - at).slice(), slots, objects })
      }
    }
    if (header.hasEarly) task.early = readEarly(decoder, blobs)
    return task
  }

  #part(slot: number, number: number): unknown {
    const graph = this.#graphs?.get(slot)
    if (!graph) throw new MillraceError('MR_INTERNAL', `slot ${slot} came without its objects`)
    const { objects, origins } = graph
    return objects[origins ? origins.indexOf(number) : number]
  }

  /** A value with those of other slots inside: the objects of all are its objects. */
  #holding(decoder: Decoder, blobs: readonly ArrayBufferLike[], task: ReceivedTask, index: number): unknown {
    const held: { slot: number; from: number; size: number }[] = []
    for (let left = decoder.varint(); left > 0; left--) {
      held.push({ slot: decoder.varint(), from: decoder.varint(), size: decoder.varint() })
    }
    const parts: unknown[] = []
    for (let left = decoder.varint(); left > 0; left--) {
      parts.push(this.#part(decoder.varint(), decoder.varint()))
    }
    const { hooks } = decoder
    const slot = (at: number): unknown => (at < PARTS_FROM ? hooks.slot(at) : parts[at - PARTS_FROM])
    decoder.hooks = { ...hooks, slot }
    const value = this.#slot(decoder, blobs, task, index)
    decoder.hooks = hooks
    const objects = [...decoder.graph.objects]
    const origins = objects.map((_, i) => i)
    for (const { slot: at, from, size } of held) {
      const inner = this.#graphs?.get(at)
      inner?.objects.forEach((object, i) => {
        const number = inner.origins ? (inner.origins[i] as number) : i
        objects.push(object)
        // Those behind are new.
        origins.push(number < size && number >= 0 ? from + number : -1)
      })
    }
    const graph = { objects, origins }
    const written = task.written.at(-1)
    if (written) written.graph = graph
    ;(this.#graphs ??= new Map()).set(index, graph)
    return value
  }

  #slot(decoder: Decoder, blobs: readonly ArrayBufferLike[], task: ReceivedTask, index: number): unknown {
    const share = decoder.byte()
    if (share === SHARE.holds) return this.#holding(decoder, blobs, task, index)
    if (share === SHARE.parts) {
      const value = this.#slot(decoder, blobs, task, index)
      ;(this.#graphs ??= new Map()).set(index, decoder.graph)
      return value
    }
    if (share === SHARE.path) return decoder.text()
    if (share === SHARE.list || share === SHARE.readList) {
      const slot = this.lists.read(decoder)
      if (share === SHARE.list) task.written.push(slot)
      return slot.value
    }
    const base = decoder.varint()
    const size = decoder.varint()
    let beside = blobs
    const own = blobs.slice(base, base + size)
    if (share === SHARE.copy && !this.#isOwn) beside = replaced(blobs, base, own.map(copyPlain))
    if (share === SHARE.publish) {
      const published = own.map(copyShared)
      task.published.push({ slot: index, blobs: published })
      beside = replaced(blobs, base, published)
    }
    if (share === SHARE.lend) {
      task.lent.push(...own.filter((blob): blob is ArrayBuffer => !(blob instanceof SharedArrayBuffer)))
    }
    decoder.beside(beside, base)
    const value = decoder.value()
    for (let at = base; at < base + size; at++) noteMemory(beside[at] as ArrayBufferLike, useOf(share))
    if (share === SHARE.own || share === SHARE.copy)
      task.written.push({ value, inPlace: false, backup: null, graph: decoder.graph, base: null })
    if (share === SHARE.inPlace)
      task.written.push({ value, inPlace: true, backup: null, graph: null, base: null })
    if (share === SHARE.guarded) {
      const bytes = memoryOf(value as Uint8Array)
      const backup = new Uint8Array(new SharedArrayBuffer(bytes.length))
      backup.set(bytes)
      task.written.push({ value, inPlace: true, backup, graph: null, base: null })
    }
    return value
  }
}

function useOf(share: number): 'writer' | 'reader' | null {
  if (share === SHARE.inPlace || share === SHARE.guarded) return null
  return share === SHARE.own || share === SHARE.copy ? 'writer' : 'reader'
}

const copyPlain = (blob: ArrayBufferLike): ArrayBufferLike => {
  const copy = new ArrayBuffer(blob.byteLength)
  new Uint8Array(copy).set(new Uint8Array(blob))
  return copy
}

const copyShared = (blob: ArrayBufferLike): SharedArrayBuffer => {
  const copy = new SharedArrayBuffer(blob.byteLength)
  new Uint8Array(copy).set(new Uint8Array(blob))
  return copy
}

function replaced(all: readonly ArrayBufferLike[], base: number, by: ArrayBufferLike[]): ArrayBufferLike[] {
  const copy = [...all]
  copy.splice(base, by.length, ...by)
  return copy
}

/** Puts back what a failed attempt wrote into memory that exists only once. */
export function restore({ written }: ReceivedTask): void {
  for (const { value, backup } of written) {
    if (backup) memoryOf(value as Uint8Array).set(backup)
  }
}
