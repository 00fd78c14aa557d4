import type { Digest } from '../../store/digest.ts'
import { KEY_BYTES } from '../../store/format.ts'
import { roomFor } from './room.ts'

/** The digest of a smaller value is made where it is needed: most are read by no task, and to hold it costs more; bytes. */
export const SMALL = 4096

/** In its place. */
export const NO_DIGEST: Digest = Buffer.alloc(KEY_BYTES)

/** One output of a task as it is kept. */
export type Output =
  /** Nothing was made, or it is not asked for. */
  | { readonly type: 'none' }
  /** Without its digest, if it is small and not of a stream. */
  | { readonly type: 'value'; readonly digest: Digest; readonly hasClasses: boolean; readonly bytes: Buffer }
  /** The same, as an object of the store. */
  | { readonly type: 'large'; readonly digest: Digest; readonly hasClasses: boolean; readonly object: Digest }
  | { readonly type: 'file'; readonly digest: Digest; readonly size: number; readonly isExecutable: boolean }
  /** `list` is the object with the names; the files are objects too. */
  | { readonly type: 'directory'; readonly digest: Digest; readonly list: Digest }
  | { readonly type: 'link'; readonly target: string }

/** What is kept of a task, or of a rule of a workflow. */
export interface Record {
  /** Its definition, for `--explain`. */
  readonly kind: Digest
  /** Which call of its kind it was. */
  readonly ordinal: number
  readonly code: Digest
  readonly args: Digest
  readonly inputs: readonly Digest[]
  /** It failed, and that was ignored. */
  readonly isIgnored: boolean
  /** The outputs are the values that a generator gave. */
  readonly isStream: boolean
  readonly outputs: readonly Output[]
}

const FIXED = 2 + 4 + 3 * KEY_BYTES + 2 + 4
const TYPES: readonly Output['type'][] = ['none', 'value', 'large', 'file', 'directory', 'link']
const CLASSES = 0x80

export function writeRecord(record: Record): Buffer {
  const { inputs, outputs } = record
  const bytes = roomFor(
    outputs.reduce((sum, output) => sum + sizeOf(output), FIXED + inputs.length * KEY_BYTES),
  )
  bytes[0] = (record.isIgnored ? 1 : 0) | (record.isStream ? 2 : 0)
  bytes[1] = 0
  bytes.writeUInt32LE(record.ordinal, 2)
  bytes.set(record.kind, 6)
  bytes.set(record.code, 6 + KEY_BYTES)
  bytes.set(record.args, 6 + 2 * KEY_BYTES)
  let at = 6 + 3 * KEY_BYTES
  bytes.writeUInt16LE(inputs.length, at)
  bytes.writeUInt32LE(outputs.length, at + 2)
  at += 6
  for (const input of inputs) {
    bytes.set(input, at)
    at += KEY_BYTES
  }
  for (const output of outputs) at = writeOutput(output, bytes, at)
  return bytes
}

function sizeOf(output: Output): number {
  switch (output.type) {
    case 'none':
      return 1
    case 'value':
      return 1 + KEY_BYTES + 4 + output.bytes.length
    case 'file':
      return 1 + KEY_BYTES + 7
    case 'large':
    case 'directory':
      return 1 + 2 * KEY_BYTES
    case 'link':
      return 1 + 4 + Buffer.byteLength(output.target)
  }
}

/** Returns where the next one begins. */
function writeOutput(output: Output, bytes: Buffer, from: number): number {
  const hasClasses = (output.type === 'value' || output.type === 'large') && output.hasClasses
  let at = from
  bytes[at++] = TYPES.indexOf(output.type) | (hasClasses ? CLASSES : 0)
  if ('digest' in output) {
    bytes.set(output.digest, at)
    at += KEY_BYTES
  }
  switch (output.type) {
    case 'none':
      return at
    case 'value':
      bytes.writeUInt32LE(output.bytes.length, at)
      bytes.set(output.bytes, at + 4)
      return at + 4 + output.bytes.length
    case 'large':
      bytes.set(output.object, at)
      return at + KEY_BYTES
    case 'file':
      bytes.writeUIntLE(output.size, at, 6)
      bytes[at + 6] = output.isExecutable ? 1 : 0
      return at + 7
    case 'directory':
      bytes.set(output.list, at)
      return at + KEY_BYTES
    case 'link': {
      const length = bytes.write(output.target, at + 4)
      bytes.writeUInt32LE(length, at)
      return at + 4 + length
    }
  }
}

/** The facts of a record without its outputs. */
export function readHead(bytes: Buffer): Omit<Record, 'outputs'> {
  const digestAt = (at: number): Digest => bytes.subarray(at, at + KEY_BYTES)
  const after = 6 + 3 * KEY_BYTES
  const count = bytes.readUInt16LE(after)
  const inputs = Array.from({ length: count }, (_, i) => digestAt(after + 6 + i * KEY_BYTES))
  const flags = bytes[0] as number
  return {
    isIgnored: (flags & 1) !== 0,
    isStream: (flags & 2) !== 0,
    ordinal: bytes.readUInt32LE(2),
    kind: digestAt(6),
    code: digestAt(6 + KEY_BYTES),
    args: digestAt(6 + 2 * KEY_BYTES),
    inputs,
  }
}

/** There may be a hundred thousand of them, and few are asked for their digests. */
class ValueOutput {
  readonly type = 'value'
  readonly hasClasses: boolean
  readonly #record: Buffer
  readonly #at: number
  readonly #length: number

  constructor(record: Buffer, at: number, length: number, hasClasses: boolean) {
    this.#record = record
    this.#at = at
    this.#length = length
    this.hasClasses = hasClasses
  }

  get digest(): Digest {
    return this.#record.subarray(this.#at, this.#at + KEY_BYTES)
  }

  get bytes(): Buffer {
    const from = this.#at + KEY_BYTES + 4
    return this.#record.subarray(from, from + this.#length)
  }
}

/** What an answer needs of a record. */
export function readRecord(bytes: Buffer): Pick<Record, 'isStream' | 'outputs'> {
  const isStream = ((bytes[0] as number) & 2) !== 0
  const after = 6 + 3 * KEY_BYTES
  const count = bytes.readUInt32LE(after + 2)
  const outputs: Output[] = []
  let at = FIXED + bytes.readUInt16LE(after) * KEY_BYTES
  const digest = (): Digest => bytes.subarray(at, (at += KEY_BYTES))
  for (let i = 0; i < count; i++) {
    const tag = bytes[at++] as number
    const hasClasses = (tag & CLASSES) !== 0
    switch (TYPES[tag & ~CLASSES]) {
      case 'value': {
        const length = bytes.readUInt32LE(at + KEY_BYTES)
        outputs.push(new ValueOutput(bytes, at, length, hasClasses))
        at += KEY_BYTES + 4 + length
        break
      }
      case 'large':
        outputs.push({ type: 'large', hasClasses, digest: digest(), object: digest() })
        break
      case 'file': {
        const sum = digest()
        outputs.push({
          type: 'file',
          digest: sum,
          size: bytes.readUIntLE(at, 6),
          isExecutable: bytes[at + 6] === 1,
        })
        at += 7
        break
      }
      case 'directory':
        outputs.push({ type: 'directory', digest: digest(), list: digest() })
        break
      case 'link': {
        const length = bytes.readUInt32LE(at)
        at += 4
        outputs.push({ type: 'link', target: bytes.toString('utf8', at, (at += length)) })
        break
      }
      case 'none':
      case undefined:
        outputs.push({ type: 'none' })
    }
  }
  return { isStream, outputs }
}

/** The objects of the store that a record needs. */
export function objectsIn(
  outputs: readonly Output[],
  inside: ReadonlyMap<Output, readonly Digest[]>,
): Digest[] {
  return outputs.flatMap(output => {
    switch (output.type) {
      case 'large':
        return [output.object]
      case 'file':
        return [output.digest]
      case 'directory':
        return [output.list, ...(inside.get(output) ?? [])]
      case 'link':
      case 'none':
      case 'value':
        return []
    }
  })
}
