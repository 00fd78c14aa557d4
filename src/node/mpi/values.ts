import { Decoder } from '../../model/encoding/decode.ts'
import type { DecodeHooks } from '../../model/encoding/decode.ts'
import { Encoder } from '../../model/encoding/encode.ts'
import type { ClassNames } from '../../model/encoding/instance-class.ts'

/** Values as one piece of bytes: the number of buffers and of bytes, the sizes of the buffers, the bytes, the buffers. */
export class Values {
  readonly #classes: ClassNames
  readonly #hooks: DecodeHooks

  constructor(classes: ClassNames, hooks: DecodeHooks) {
    this.#classes = classes
    this.#hooks = hooks
  }

  pack(value: unknown): Uint8Array {
    const encoder = new Encoder()
    encoder.value(value, {
      classes: this.#classes,
      blob: view => ({ buffer: view.buffer, offset: view.byteOffset }),
    })
    const { blobs } = encoder
    const head = new Float64Array([blobs.length, encoder.length, ...blobs.map(blob => blob.byteLength)])
    const parts = [new Uint8Array(head.buffer), encoder.copy(), ...blobs.map(blob => new Uint8Array(blob))]
    return Buffer.concat(parts)
  }

  unpack(packed: Uint8Array): unknown {
    const bytes = new Uint8Array(packed)
    const [count = 0, length = 0] = new Float64Array(bytes.buffer, 0, 2)
    const sizes = new Float64Array(bytes.buffer, 16, count)
    let at = 16 + 8 * count
    const decoder = new Decoder(bytes.subarray(at, at + length), this.#hooks)
    at += length
    const blobs = Array.from(sizes, size => bytes.slice(at, (at += size)).buffer)
    decoder.beside(blobs)
    return decoder.value()
  }
}
