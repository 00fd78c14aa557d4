import { MillraceError } from '../../core/errors.ts'
import { OWN_ERRORS } from '../errors.ts'
import type { Graph } from './identity.ts'
import { ERROR_TYPES, TAG } from './tags.ts'
import { makeView } from './typed-arrays.ts'

/** Where the name was read first, its length in front. */
interface Name {
  readonly from: number
  readonly text: string
}

/** Names that are looked for, and the number from which on that pays. */
const NAMES = 61
const FEW_NAMES = 16

export interface DecodeHooks {
  /** The class that a module exports under a name, or null when it does not. */
  findClass(module: string, name: string): Function | null
  slot(index: number): unknown
  /** The values of a generator task; only compute threads meet them. */
  stream?(id: number, memory: ArrayBufferLike): unknown
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength)

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)

/** Reads what `Encoder` wrote. */
export class Decoder {
  at = 0
  readonly #bytes: Uint8Array
  /** Made when they are needed: most values are small, and there are many. */
  #view: DataView | null = null
  #buffer: Buffer | null = null
  #blobs: readonly ArrayBufferLike[] = []
  #blobBase = 0
  hooks: DecodeHooks
  #seen: object[] = []
  #origins: number[] | null = null
  #regions: ArrayBuffer[] | null = null
  /** Names of properties of the value that is being read: most occur in many objects. */
  #names: (Name | undefined)[] | null = null
  #namesRead = 0

  constructor(bytes: Uint8Array, hooks: DecodeHooks) {
    this.#bytes = bytes
    this.hooks = hooks
  }

  get #asView(): DataView {
    return this.#view ?? (this.#view = viewOf(this.#bytes))
  }

  get #asBuffer(): Buffer {
    return this.#buffer ?? (this.#buffer = bufferOf(this.#bytes))
  }

  get length(): number {
    return this.#bytes.length
  }

  get done(): boolean {
    return this.at >= this.#bytes.length
  }

  /** The buffers beside the next values; their indices count from `base`. */
  beside(blobs: readonly ArrayBufferLike[], base = 0): void {
    this.#blobs = blobs
    this.#blobBase = base
  }

  value(): unknown {
    this.#seen = []
    this.#origins = null
    this.#regions = null
    this.#names = null
    this.#namesRead = 0
    return this.#bytes[this.at] === TAG.graph ? this.#graph() : this.#any()
  }

  /** The objects of the value that was read last. */
  get graph(): Graph {
    return { objects: this.#seen, origins: this.#origins }
  }

  #graph(): unknown {
    this.at++
    const origins: number[] = []
    for (let left = this.varint(); left > 0; left--) origins.push(this.varint() - 1)
    const gone = this.varint()
    const value = this.#any()
    for (let i = 0; i < gone; i++) this.#any()
    this.#origins = origins
    return value
  }

  /** The byte that comes next. */
  peek(): number {
    return this.#bytes[this.at] as number
  }

  byte(): number {
    return this.#bytes[this.at++] as number
  }

  varint(): number {
    let value = 0
    let factor = 1
    for (;;) {
      const byte = this.#bytes[this.at++] as number
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
      factor *= 0x80
    }
  }

  double(): number {
    const value = this.#asView.getFloat64(this.at, true)
    this.at += 8
    return value
  }

  /** Four bytes. */
  word(): number {
    const value = this.#asView.getUint32(this.at, true)
    this.at += 4
    return value
  }

  raw(length: number): Uint8Array {
    const bytes = this.#bytes.subarray(this.at, this.at + length)
    this.at += length
    return bytes
  }

  text(): string {
    const head = this.varint()
    if (head & 1) {
      const size = (head - 1) / 2
      const text = this.#asBuffer.toString('utf16le', this.at, this.at + size)
      this.at += size
      return text
    }
    const size = head / 2
    const end = this.at + size
    if (size < 12) {
      let text = ''
      let i = this.at
      for (; i < end; i++) {
        const unit = this.#bytes[i] as number
        if (unit >= 0x80) break
        text += String.fromCharCode(unit)
      }
      if (i === end) {
        this.at = end
        return text
      }
    }
    const text = this.#asBuffer.toString('utf8', this.at, end)
    this.at = end
    return text
  }

  #any(): unknown {
    const tag = this.byte()
    switch (tag) {
      case TAG.undefined:
        return undefined
      case TAG.null:
        return null
      case TAG.true:
        return true
      case TAG.false:
        return false
      case TAG.integer:
        return this.varint()
      case TAG.negative:
        return -this.varint()
      case TAG.double:
        return this.double()
      case TAG.string:
        return this.text()
      case TAG.bigint:
        return parseHex(this.text())
      case TAG.seen:
        return this.#seen[this.varint()]
      case TAG.slot:
        return this.hooks.slot(this.varint())
      case TAG.stream: {
        const id = this.varint()
        return this.hooks.stream?.(id, this.#blob())
      }
      default:
        return this.#object(tag)
    }
  }

  #object(tag: number): unknown {
    switch (tag) {
      case TAG.array:
        return this.#array()
      case TAG.namedArray:
        return this.#properties(this.#keep(emptyArray(this.varint())))
      case TAG.object:
        return this.#properties(this.#keep({}))
      case TAG.bareObject:
        return this.#properties(this.#keep(Object.create(null) as object))
      case TAG.arrayView: {
        const code = this.byte()
        const bytes = this.raw(this.varint())
        return this.#keep(makeView(code, bytes.slice().buffer, 0, bytes.length))
      }
      case TAG.arrayBeside: {
        const code = this.byte()
        const buffer = this.#blob()
        const offset = this.varint()
        return this.#keep(makeView(code, buffer, offset, this.varint()))
      }
      case TAG.zeros: {
        const code = this.byte()
        const length = this.varint()
        return this.#keep(makeView(code, new ArrayBuffer(length), 0, length))
      }
      case TAG.arrayBuffer:
        return this.#keep(this.raw(this.varint()).slice().buffer)
      case TAG.bufferBeside:
        return this.#keep(this.#blob())
      case TAG.regionView: {
        const buffer = this.#region()
        const code = this.byte()
        const offset = this.varint()
        return this.#keep(makeView(code, buffer, offset, this.varint()))
      }
      case TAG.regionBuffer:
        return this.#keep(this.#region())
      case TAG.map:
        return this.#map()
      case TAG.set:
        return this.#set()
      case TAG.date:
        return this.#keep(new Date(this.double()))
      case TAG.regexp:
        return this.#regexp()
      case TAG.error:
        return this.#error()
      case TAG.instance:
        return this.#instance()
      default:
        throw new MillraceError('MR_INTERNAL', `an encoded value begins with ${tag}, which is no known tag`)
    }
  }

  /** Memory that several objects have in common: the first of them brings it. */
  #region(): ArrayBuffer {
    const regions = (this.#regions ??= [])
    const number = this.varint()
    return (regions[number] ??= this.raw(this.varint()).slice().buffer as ArrayBuffer)
  }

  #regexp(): RegExp {
    const value = this.#keep(new RegExp(this.text(), this.text()))
    value.lastIndex = this.#any() as number
    return value
  }

  #keep<T extends object>(value: T): T {
    this.#seen.push(value)
    return value
  }

  #blob(): ArrayBufferLike {
    return this.#blobs[this.#blobBase + this.varint()] as ArrayBufferLike
  }

  #array(): unknown[] {
    const length = this.varint()
    const value: unknown[] = this.#keep([])
    value.length = length
    for (let i = 0; i < length; i++) {
      if (this.#bytes[this.at] === TAG.hole) this.at++
      else value[i] = this.#any()
    }
    return value
  }

  #properties(value: object): object {
    const count = this.varint()
    for (let i = 0; i < count; i++) {
      const key = this.#name()
      const item = this.#any()
      if (key === '__proto__') {
        Object.defineProperty(value, key, {
          value: item,
          writable: true,
          enumerable: true,
          configurable: true,
        })
      } else (value as Record<string, unknown>)[key] = item
    }
    return value
  }

  /** Names are compared as bytes: to make a text of each takes longer than all else in an object. */
  #name(): string {
    const from = this.at
    const head = this.#bytes[from] as number
    const isShort = head > 0 && head < 0x80 && (head & 1) === 0
    if (!isShort || ++this.#namesRead < FEW_NAMES) return this.text()
    const names = (this.#names ??= [])
    const to = from + 1 + head / 2
    const place = (head + (this.#bytes[from + 1] as number) + 3 * (this.#bytes[to - 1] as number)) % NAMES
    const known = names[place]
    if (known && this.#isSame(known.from, from, to - from)) {
      this.at = to
      return known.text
    }
    const text = this.text()
    names[place] = { from, text }
    return text
  }

  #isSame(one: number, other: number, length: number): boolean {
    const bytes = this.#bytes
    for (let i = 0; i < length; i++) if (bytes[one + i] !== bytes[other + i]) return false
    return true
  }

  #map(): Map<unknown, unknown> {
    const size = this.varint()
    const value = this.#keep(new Map<unknown, unknown>())
    for (let i = 0; i < size; i++) {
      const key = this.#any()
      value.set(key, this.#any())
    }
    return value
  }

  #set(): Set<unknown> {
    const size = this.varint()
    const value = this.#keep(new Set<unknown>())
    for (let i = 0; i < size; i++) value.add(this.#any())
    return value
  }

  #error(): Error {
    const type = ERROR_TYPES[this.byte()] ?? Error
    const error = newError(type)
    this.#keep(error)
    const found = this.byte() === 1 ? this.#errorClass(this.text(), this.text()) : null
    if (found) Object.setPrototypeOf(error, found.prototype as object)
    const hidden = (key: string, value: unknown): void => {
      Object.defineProperty(error, key, { value, writable: true, enumerable: false, configurable: true })
    }
    const name = this.text()
    if (name !== error.name) hidden('name', name)
    hidden('message', this.text())
    hidden('stack', this.text())
    const cause = this.#any()
    if (cause !== undefined) hidden('cause', cause)
    const errors = this.#any()
    if (errors !== undefined) hidden('errors', errors)
    const extra = this.varint()
    for (let i = 0; i < extra; i++) {
      const key = this.text()
      ;(error as unknown as Record<string, unknown>)[key] = this.#any()
    }
    return error
  }

  /** An error gets through also where its class is not known. */
  #errorClass(module: string, name: string): Function | null {
    if (module === '') return OWN_ERRORS.find(type => type.name === name) ?? null
    const found = this.hooks.findClass(module, name)
    return found?.prototype instanceof Error ? found : null
  }

  #instance(): object {
    const module = this.text()
    const name = this.text()
    const constructor = this.hooks.findClass(module, name)
    if (!constructor) {
      throw new MillraceError('MR_NOT_CLONEABLE', `class ${name} is not exported by ${module} here`)
    }
    return this.#properties(this.#keep(Object.create(constructor.prototype as object) as object))
  }
}

/** A real error, which others recognise as one; its stack will be that of the original. */
function newError(type: (typeof ERROR_TYPES)[number]): Error {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return type === AggregateError ? new AggregateError([]) : new (type as ErrorConstructor)()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function parseHex(text: string): bigint {
  return text.startsWith('-') ? -BigInt(`0x${text.slice(1)}`) : BigInt(`0x${text}`)
}

/** As long as it was, with holes where it had some. */
function emptyArray(length: number): unknown[] {
  const array: unknown[] = []
  array.length = length
  return array
}
