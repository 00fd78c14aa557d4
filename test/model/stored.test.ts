import assert from 'node:assert/strict'
import test from 'node:test'
import { BLOB_SIZE, Encoder } from '../../src/model/encoding/encode.ts'
import type { EncodeHooks } from '../../src/model/encoding/encode.ts'
import { Stored, compareBlobs, sameStored, shareBlob } from '../../src/model/encoding/stored.ts'

function encode(value: unknown, blob: EncodeHooks['blob']): Stored {
  const encoder = new Encoder()
  encoder.value(value, { blob, findClass: () => null } as unknown as EncodeHooks)
  return new Stored(encoder.copy(), encoder.blobs)
}

test('a value with large arrays, shared ones among them, is the same as what was stored of it until one has changed', () => {
  const memory = new SharedArrayBuffer(2 * BLOB_SIZE)
  const plain = [new Uint8Array(BLOB_SIZE).fill(1), new Uint8Array(BLOB_SIZE).fill(2)] as const
  const value = {
    left: new Uint8Array(memory, BLOB_SIZE),
    first: plain[0],
    right: new Uint8Array(memory, 0, 8),
    second: plain[1],
  }
  const before = encode(value, shareBlob)
  const isSame = (): boolean => sameStored(before, encode(value, compareBlobs(before)))
  assert.equal(isSame(), true)
  for (const array of plain) {
    array[7] = 9
    assert.equal(isSame(), false)
    array[7] = array === plain[0] ? 1 : 2
    assert.equal(isSame(), true)
  }
})
