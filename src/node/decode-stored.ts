import { Decoder } from '../model/encoding/decode.ts'
import type { Stored } from '../model/encoding/stored.ts'
import type { TaskModules } from './threads/modules.ts'

/** The value itself; `slots` are the values that it refers to. */
export function decodeStored(stored: Stored, slots: readonly unknown[], modules: TaskModules): unknown {
  const decoder = new Decoder(stored.bytes, {
    findClass: (module, name) => modules.findClass(module, name),
    slot: index => slots[index],
  })
  decoder.beside(stored.blobs)
  return decoder.value()
}
