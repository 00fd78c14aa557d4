import { deserialize, serialize } from 'node:v8'

/**
 * Messages as threads exchange them, with the buffers in them beside, so that memory goes once and by number. Messages are
 * made of plain objects, lists, bytes and primitives.
 */

class BufferReference {
  readonly beside: number

  constructor(index: number) {
    this.beside = index
  }
}

const isPlain = (value: unknown): value is Record<string, unknown> | unknown[] =>
  typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)

const isBuffer = (value: unknown): value is ArrayBufferLike =>
  value instanceof SharedArrayBuffer || value instanceof ArrayBuffer

/** A copy in which values are replaced. Objects may contain themselves. */
function replaced(
  value: unknown,
  replace: (value: unknown) => unknown,
  seen = new Map<object, unknown>(),
): unknown {
  const other = replace(value)
  if (other !== value || !isPlain(value)) return other
  const known = seen.get(value)
  if (known !== undefined) return known
  if (Array.isArray(value)) {
    const list: unknown[] = []
    seen.set(value, list)
    for (const one of value) list.push(replaced(one, replace, seen))
    return list
  }
  const copy: Record<string, unknown> = {}
  seen.set(value, copy)
  for (const [key, one] of Object.entries(value)) copy[key] = replaced(one, replace, seen)
  return copy
}

export function pack(message: unknown): { bytes: Buffer; buffers: ArrayBufferLike[] } {
  const buffers: ArrayBufferLike[] = []
  const content = replaced(message, value => {
    if (!isBuffer(value)) return value
    const known = buffers.indexOf(value)
    return new BufferReference(known >= 0 ? known : buffers.push(value) - 1)
  })
  return { bytes: serialize(content), buffers }
}

export function unpack(bytes: Uint8Array, buffers: readonly ArrayBufferLike[] = []): unknown {
  return replaced(deserialize(bytes), value => {
    // Bytes lie in the chunk that they came with, which must not be kept alive by them.
    if (value instanceof Uint8Array) return new Uint8Array(value)
    return isPlain(value) && 'beside' in value ? buffers[value['beside'] as number] : value
  })
}
