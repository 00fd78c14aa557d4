import { MillraceError } from '../../core/errors.ts'
import { ByteWriter } from './byte-writer.ts'
import { bytesOf, codeOf } from './typed-arrays.ts'
import { hasSymbols, isDetached, isNamed, isSparse } from '../capture/looks.ts'
import { errorClass, instanceClass } from './instance-class.ts'
import type { ClassName, ClassNames } from './instance-class.ts'
import { Regions } from './regions.ts'
import type { Region } from './regions.ts'
import { isSameOrder, originsOf } from './identity.ts'
import type { Graph } from './identity.ts'
import { ERROR_TYPES, TAG } from './tags.ts'

/**
 * Values as bytes. One encoding serves all ways that a value can go: to a compute thread, back, into a
 * file, to another node. It keeps cycles and shared references, and refuses what it cannot keep, with the
 * path to it. Large arrays are not copied into the bytes: they go beside them as buffers (`blobs`).
 */

export interface EncodeHooks {
  classes: ClassNames | null
  /** The slot of a value that is sent on its own (a future, a tracked object), or -1. */
  slot?(value: object): number
  /**
   * What to do with a large array: the buffer to send beside the bytes and the view's offset in it. `place` is that
   * of the buffer among those of the value.
   */
  blob(view: ArrayBufferView, place: number): { buffer: ArrayBufferLike; offset: number }
  /** For thrown errors: what cannot be kept becomes text, because an error must always get through. */
  lenient?: boolean
}

/** Arrays from this size on go beside the bytes. */
export const BLOB_SIZE = 32 * 1024

export class Encoder extends ByteWriter {
  /** Buffers of all values so far; each value counts its own from `base`. */
  blobs: ArrayBufferLike[] = []
  base = 0
  #seen: Map<object, number> | null = null
  #count = 0
  #hooks: EncodeHooks | null = null
  #path: (string | number)[] = []
  readonly #regions = new Regions()

  reset(): void {
    this.length = 0
    this.blobs = []
    this.base = 0
  }

  /** One self-contained value: references to objects already seen do not reach across values. */
  value(value: unknown, hooks: EncodeHooks): void {
    if (typeof value !== 'object' && typeof value !== 'function' && typeof value !== 'symbol') {
      this.base = this.blobs.length
      return this.#any(value)
    }
    this.#passes(value, hooks, null)
    this.#seen = null
  }

  /**
   * A value that tasks write: gives its objects in their order, by which they are known from here on. `known` are
   * those that it had when it was read; the bytes say what has become of them.
   */
  whole(value: unknown, hooks: EncodeHooks, known: Graph | null): object[] {
    this.#passes(value, hooks, known)
    const objects = [...(this.#seen?.keys() ?? [])]
    this.#seen = null
    return objects
  }

  #passes(value: unknown, hooks: EncodeHooks, known: Graph | null): void {
    this.base = this.blobs.length
    const start = this.length
    try {
      this.#pass(value, hooks, known, start)
      if (!this.#regions.found()) return
      // Only now it is known what has memory in common.
      this.length = start
      this.blobs.length = this.base
      this.#pass(value, hooks, known, start)
    } catch (error) {
      this.#seen = null
      if (!(error instanceof RangeError)) throw error
      // The stack, or memory, is at its end.
      throw new MillraceError('MR_NOT_CLONEABLE', `the value is too deep or too large: ${error.message}`, {
        hint: 'Pass a flat structure, such as an array, instead of a long chain of objects.',
        cause: error,
      })
    } finally {
      this.#hooks = null
      this.#regions.clear()
    }
  }

  #pass(value: unknown, hooks: EncodeHooks, known: Graph | null, start: number): void {
    this.#hooks = hooks
    this.#seen = null
    this.#count = 0
    this.#path.length = 0
    this.#any(value)
    const seen = this.#seen as Map<object, number> | null
    if (known && seen && !isSameOrder(seen, known)) this.#graph(seen, known, start)
  }

  /** Which objects are which, in front of the value; behind it what is in it no longer, but may have been changed. */
  #graph(seen: Map<object, number>, known: Graph, start: number): void {
    const numbers = originsOf(known)
    let gone = 0
    for (const object of numbers.keys()) {
      if (seen.has(object)) continue
      this.#any(object)
      gone++
    }
    const body = this.length
    this.byte(TAG.graph)
    this.varint(seen.size)
    for (const object of seen.keys()) this.varint((numbers.get(object) ?? -1) + 1)
    this.varint(gone)
    const head = this.copy(body)
    this.bytes.copyWithin(start + head.length, start, body)
    this.bytes.set(head, start)
  }

  #any(value: unknown): void {
    switch (typeof value) {
      case 'undefined':
        return this.byte(TAG.undefined)
      case 'boolean':
        return this.byte(value ? TAG.true : TAG.false)
      case 'number':
        return this.#number(value)
      case 'string':
        this.byte(TAG.string)
        return this.text(value)
      case 'bigint':
        this.byte(TAG.bigint)
        return this.text(value.toString(16))
      case 'object':
        return value === null ? this.byte(TAG.null) : this.#object(value)
      case 'function':
      case 'symbol':
        return this.#refuse(value, typeof value === 'function' ? `a function${named(value)}` : 'a symbol')
      default:
        return this.#refuse(value, typeof value)
    }
  }

  #number(value: number): void {
    if (Number.isInteger(value) && Math.abs(value) < 2 ** 31 && !Object.is(value, -0)) {
      this.byte(value < 0 ? TAG.negative : TAG.integer)
      this.varint(Math.abs(value))
    } else {
      this.byte(TAG.double)
      this.double(value)
    }
  }

  #object(value: object): void {
    const slot = this.#hooks?.slot?.(value) ?? -1
    if (slot >= 0) {
      this.byte(TAG.slot)
      return this.varint(slot)
    }
    const seen = this.#seen?.get(value)
    if (seen !== undefined) {
      this.byte(TAG.seen)
      return this.varint(seen)
    }
    ;(this.#seen ??= new Map()).set(value, this.#count++)
    if (Array.isArray(value) && Object.getPrototypeOf(value) === Array.prototype) return this.#array(value)
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === null) {
      this.byte(prototype === null ? TAG.bareObject : TAG.object)
      return this.#properties(value)
    }
    if (ArrayBuffer.isView(value)) return this.#arrayView(value)
    if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return this.#arrayBuffer(value)
    this.#special(value, prototype as object)
  }

  #array(value: unknown[]): void {
    const { length } = value
    if (hasSymbols(value) && !this.#hooks?.lenient) this.#refuse(value, 'an array with symbol keys')
    if (isSparse(value) || isNamed(value)) {
      this.byte(TAG.namedArray)
      this.varint(length)
      return this.#properties(value)
    }
    this.byte(TAG.array)
    this.varint(length)
    const depth = this.#path.length
    for (let i = 0; i < length; i++) {
      const item = value[i]
      if (item === undefined && !(i in value)) this.byte(TAG.hole)
      else {
        this.#path[depth] = i
        this.#any(item)
      }
    }
    this.#path.length = depth
  }

  #properties(value: object): void {
    if (hasSymbols(value) && !this.#hooks?.lenient) this.#refuse(value, 'an object with symbol keys')
    const keys = Object.keys(value)
    this.varint(keys.length)
    const depth = this.#path.length
    for (const key of keys) {
      this.#path[depth] = key
      this.text(key)
      this.#any((value as Record<string, unknown>)[key])
    }
    this.#path.length = depth
  }

  #arrayView(view: ArrayBufferView): void {
    const code = codeOf(view)
    if (view.byteLength === 0 && isDetached(view.buffer)) {
      return this.#refuse(view, 'an array whose memory was given away', 'Pass it before it is transferred.')
    }
    if (code < 0) return this.#refuse(view, `a ${view.constructor.name}, a subclass of a typed array`)
    const region = this.#regions.of(view)
    if (region) return this.#inRegion(region, view.buffer, code, view)
    if (view.byteLength >= BLOB_SIZE || view.buffer instanceof SharedArrayBuffer) {
      const { buffer, offset } = (this.#hooks as EncodeHooks).blob(view, this.blobs.length - this.base)
      return this.#beside(code, this.#blob(buffer), offset, view.byteLength)
    }
    this.byte(TAG.arrayView)
    this.byte(code)
    this.varint(view.byteLength)
    this.raw(bytesOf(view))
  }

  #beside(code: number, blob: number, offset: number, length: number): void {
    this.byte(TAG.arrayBeside)
    this.byte(code)
    this.varint(blob)
    this.varint(offset)
    this.varint(length)
  }

  #arrayBuffer(buffer: ArrayBufferLike): void {
    const all = new Uint8Array(buffer)
    const region = this.#regions.of(all, true)
    if (region) return this.#inRegion(region, buffer, -1, all)
    if (buffer.byteLength >= BLOB_SIZE || buffer instanceof SharedArrayBuffer) {
      const beside = (this.#hooks as EncodeHooks).blob(all, this.blobs.length - this.base).buffer
      this.byte(TAG.bufferBeside)
      return this.varint(this.#blob(beside))
    }
    this.byte(TAG.arrayBuffer)
    this.varint(buffer.byteLength)
    this.raw(all)
  }

  /** Memory that several have in common is sent once; those after the first refer to it. */
  #inRegion(region: Region, buffer: ArrayBufferLike, code: number, view: ArrayBufferView): void {
    const { start, end } = region
    const bytes = new Uint8Array(buffer, start, end - start)
    const offset = view.byteOffset - start
    if (bytes.length >= BLOB_SIZE) {
      region.beside ??= (this.#hooks as EncodeHooks).blob(bytes, this.blobs.length - this.base)
      const blob = this.#blob(region.beside.buffer)
      if (code >= 0) return this.#beside(code, blob, region.beside.offset + offset, view.byteLength)
      this.byte(TAG.bufferBeside)
      return this.varint(blob)
    }
    this.byte(code < 0 ? TAG.regionBuffer : TAG.regionView)
    const isFirst = region.number < 0
    if (isFirst) region.number = this.#regions.count++
    this.varint(region.number)
    if (isFirst) {
      this.varint(bytes.length)
      this.raw(bytes)
    }
    if (code < 0) return
    this.byte(code)
    this.varint(offset)
    this.varint(view.byteLength)
  }

  #blob(buffer: ArrayBufferLike): number {
    const at = this.blobs.indexOf(buffer, this.base)
    return (at >= 0 ? at : this.blobs.push(buffer) - 1) - this.base
  }

  #special(value: object, prototype: object): void {
    if (value instanceof Error) {
      const isUsual = ERROR_TYPES.some(type => type.prototype === prototype)
      const found = isUsual ? null : errorClass(prototype, this.#hooks?.classes ?? null)
      if (isUsual || found || this.#hooks?.lenient) return this.#error(value, found)
    }
    const isPlainBuiltIn = PLAIN_BUILT_IN.some(type => type.prototype === prototype)
    if (isPlainBuiltIn && Object.keys(value).length > 0) {
      return this.#refuse(
        value,
        `a ${prototype.constructor.name} with properties of its own`,
        'Put them into an object beside it.',
      )
    }
    if (prototype === Map.prototype) return this.#map(value as Map<unknown, unknown>)
    if (prototype === Set.prototype) return this.#set(value as Set<unknown>)
    if (prototype === Date.prototype) {
      this.byte(TAG.date)
      return this.double((value as Date).getTime())
    }
    if (prototype === RegExp.prototype) {
      this.byte(TAG.regexp)
      this.text((value as RegExp).source)
      this.text((value as RegExp).flags)
      // Any value may be assigned to it.
      return this.#any((value as RegExp).lastIndex)
    }
    this.#instance(value, prototype)
  }

  #map(value: Map<unknown, unknown>): void {
    this.byte(TAG.map)
    this.varint(value.size)
    const depth = this.#path.length
    for (const [key, item] of value) {
      this.#path[depth] = `(key ${typeof key === 'object' ? 'object' : String(key)})`
      this.#any(key)
      this.#any(item)
    }
    this.#path.length = depth
  }

  #set(value: Set<unknown>): void {
    this.byte(TAG.set)
    this.varint(value.size)
    const depth = this.#path.length
    for (const item of value) {
      this.#path[depth] = '(member)'
      this.#any(item)
    }
    this.#path.length = depth
  }

  #error(value: Error, found: ClassName | null): void {
    this.byte(TAG.error)
    const type = ERROR_TYPES.findIndex(one => one.prototype === Object.getPrototypeOf(value))
    this.byte(Math.max(type, 0))
    this.byte(found ? 1 : 0)
    if (found) {
      this.text(found.module)
      this.text(found.name)
    }
    this.text(String(value.name))
    this.text(String(value.message))
    this.text(typeof value.stack === 'string' ? value.stack : '')
    const { cause } = value
    const errors = value instanceof AggregateError ? value.errors : undefined
    this.#any(cause)
    this.#any(errors)
    const extra = Object.entries(value).filter(
      ([key]) => !['name', 'message', 'stack', 'cause', 'errors'].includes(key),
    )
    this.varint(extra.length)
    for (const [key, item] of extra) {
      this.text(key)
      this.#any(item)
    }
  }

  #instance(value: object, prototype: object): void {
    const classes = this.#hooks?.lenient ? null : (this.#hooks?.classes ?? null)
    const found = instanceClass(value, prototype, classes)
    if ('what' in found) return this.#refuse(value, found.what, found.hint)
    this.byte(TAG.instance)
    this.text(found.module)
    this.text(found.name)
    this.#properties(value)
  }

  #refuse(value: unknown, what: string, hint?: string): void {
    if (this.#hooks?.lenient) {
      this.byte(TAG.string)
      return this.text(describe(value))
    }
    const at = this.#path.map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
    throw new MillraceError(
      'MR_NOT_CLONEABLE',
      `${at === '' ? 'the value' : `the value at ${at}`} is ${what}`,
      hint === undefined ? {} : { hint },
    )
  }
}

const PLAIN_BUILT_IN = [Map, Set, Date, RegExp]

const named = (value: Function): string => (value.name ? ` (${value.name})` : '')

function describe(value: unknown): string {
  try {
    return String(value)
  } catch {
    return typeof value
  }
}
