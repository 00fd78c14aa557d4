import { Decoder } from '../../model/encoding/decode.ts'
import { Encoder } from '../../model/encoding/encode.ts'
import { NOTHING, Stored, isPrimitive, shareBlob } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import type { TaskModules } from '../threads/modules.ts'
import type { EndHeader, ReleasedHeader } from './frames.ts'
import type { Gang } from './gang.ts'
import type { Fetched } from './pool.ts'

/** What a rank sent, from behind the number of the task on, with its buffers. */
export function recordOf(
  gang: Gang,
  { blobs, record }: EndHeader | ReleasedHeader,
  bytes: Buffer,
  fetched: Fetched,
  modules: TaskModules,
): { decoder: Decoder; buffers: ArrayBufferLike[] } {
  let at = record
  const buffers = blobs.map(blob => {
    const there = fetched.get(blob)
    if (there) return there
    const size = 'given' in blob ? (gang.sizes[blob.given] as number) : blob.size
    const memory = new SharedArrayBuffer(size)
    const into = new Uint8Array(memory)
    if ('given' in blob) {
      const path = gang.paths[blob.given] as string
      // What ranks on several machines wrote is brought together where rank 0 is.
      if (path === '') into.set(new Uint8Array(gang.blobs[blob.given] as ArrayBufferLike))
      else gang.late.push(() => gang.pool.read(gang.ranks[0] as number, path, 0, into))
    } else into.set(bytes.subarray(at, (at += size)))
    return memory
  })
  const decoder = new Decoder(new Uint8Array(bytes.subarray(0, record)), {
    findClass: (module, name) => modules.findClass(module, name),
    slot: () => undefined,
  })
  decoder.varint()
  return { decoder, buffers }
}

/** The list of what the ranks returned. */
export function gathered(returned: readonly Kept[], modules: TaskModules): Kept {
  const values = returned.map(kept => decoded(kept, modules))
  const encoder = new Encoder()
  encoder.value(values, { classes: modules, blob: shareBlob })
  return new Stored(encoder.copy(), encoder.blobs)
}

function decoded(kept: Kept, modules: TaskModules): unknown {
  if (!(kept instanceof Stored)) return kept === NOTHING ? undefined : kept
  const decoder = new Decoder(kept.bytes, {
    findClass: (module, name) => modules.findClass(module, name),
    slot: () => undefined,
  })
  decoder.beside(kept.blobs)
  return decoder.value()
}

/** What a rank threw, with the number of the rank. */
export function rankError(error: unknown, rank: number, size: number): unknown {
  if (isPrimitive(error) || !(error instanceof Error)) return error
  const where = `rank ${rank} of ${size}: `
  const own = error as Error & { shortMessage?: string; rank?: number }
  try {
    if (own.message.startsWith(where)) return error
    own.message = where + own.message
    if (typeof own.shortMessage === 'string') {
      Object.defineProperty(own, 'shortMessage', { value: where + own.shortMessage })
    }
    own.rank = rank
  } catch {
    // A frozen error says nothing of its rank.
  }
  return error
}
