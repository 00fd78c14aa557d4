/** The array types that cross between threads as bytes, in the order of their codes in the encoding. */
export const ARRAY_TYPES = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  Buffer,
  DataView,
] as const

export type ArrayView = InstanceType<(typeof ARRAY_TYPES)[number]>

const codes = new Map<unknown, number>(ARRAY_TYPES.map((type, code) => [type.prototype, code]))

/** The code of the view's type; -1 for subclasses that are none of ours. */
export const codeOf = (view: ArrayBufferView): number => codes.get(Object.getPrototypeOf(view)) ?? -1

const BUFFER = ARRAY_TYPES.indexOf(Buffer)

export function makeView(
  code: number,
  buffer: ArrayBufferLike,
  offset: number,
  byteLength: number,
): ArrayView {
  if (code === BUFFER) return Buffer.from(buffer as ArrayBuffer, offset, byteLength)
  const type = ARRAY_TYPES[code] as Uint8ArrayConstructor
  return new type(buffer as ArrayBuffer, offset, byteLength / (type.BYTES_PER_ELEMENT ?? 1))
}

export const elementSize = (view: ArrayBufferView): number =>
  (view as Partial<Uint8Array>).BYTES_PER_ELEMENT ?? 1

/** All bytes of a view, or of a buffer. */
export const memoryOf = (value: ArrayBufferView | ArrayBufferLike): Uint8Array =>
  ArrayBuffer.isView(value) ? bytesOf(value) : new Uint8Array(value)

export const bytesOf = (view: ArrayBufferView): Uint8Array =>
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
