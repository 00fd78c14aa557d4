import { Decoder } from '../../model/encoding/decode.ts'
import { Encoder } from '../../model/encoding/encode.ts'
import { NOTHING, Stored, isPrimitive, shareBlob } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import type { TaskModules } from '../threads/modules.ts'

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
