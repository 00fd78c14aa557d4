import { readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { append } from '../../general/append.ts'
import type { FileTable } from './file-table.ts'
import type { RecordTable, TaskRecord } from './record-table.ts'

/**
 * The state of a workflow in one piece that is read without parsing: a line of JSON with the lengths of what
 * follows, padded to a multiple of 8; columns of numbers; the paths, separated by zero characters; a CRC-32 of all.
 */
const MAGIC = 'millrace-flow-2'

/** Without the times at which names or permissions have changed. */
const FIRST_MAGIC = 'millrace-flow-1'

interface Header {
  magic: string
  generation: number
  files: number
  records: number
  links: number
  paths: number
}

/** Only what counts is written: replaced records and files that nothing knows are left out. */
export function encodeSnapshot(files: FileTable, records: RecordTable, generation: number): Buffer {
  const live: TaskRecord[] = [...records.all()]
  const renumbered = new Int32Array(files.paths.length).fill(-1)
  const kept: number[] = []
  const take = (file: number): number => {
    if (file < 0) return file
    if (renumbered[file] === -1) renumbered[file] = kept.push(file) - 1
    return renumbered[file] as number
  }
  const links: number[] = []
  const stamps: number[] = []
  const start = new Int32Array(live.length + 1)
  for (const [i, record] of live.entries()) {
    for (const file of record.outputs) links.push(take(file))
    for (const file of record.inputs) links.push(take(file))
    append(stamps, record.outputStamps)
    append(stamps, record.inputStamps)
    start[i + 1] = links.length
  }
  const paths = Buffer.from(kept.map(file => files.path(file)).join('\0'), 'utf8')
  const header: Header = {
    magic: MAGIC,
    generation,
    files: kept.length,
    records: live.length,
    links: links.length,
    paths: paths.length,
  }
  const pick = (column: Float64Array): Float64Array => Float64Array.from(kept, file => column[file] as number)
  const head = JSON.stringify(header)
  const parts: (Buffer | Float64Array | Int32Array | Uint8Array)[] = [
    Buffer.from(`${head}${' '.repeat(7 - (head.length % 8))}\n`),
    pick(files.size),
    pick(files.mtime),
    pick(files.ctime),
    pick(files.ino),
    pick(files.stamp),
    Float64Array.from(live, record => record.text),
    Float64Array.from(stamps),
    start,
    Int32Array.from(live, record => record.outputs.length),
    Int32Array.from(links),
    Uint8Array.from(kept, file => files.racy[file] as number),
    paths,
  ]
  const body = Buffer.concat(parts.map(part => Buffer.from(part.buffer, part.byteOffset, part.byteLength)))
  const end = Buffer.alloc(4)
  end.writeUInt32LE(crc32(body))
  return Buffer.concat([body, end])
}

/** The first line of a snapshot, which may be cut after it. */
export function readHeader(bytes: Buffer): Header | null {
  const line = bytes.indexOf(10)
  if (line < 0 || (line + 1) % 8 !== 0) return null
  try {
    const header = JSON.parse(bytes.toString('utf8', 0, line)) as Header
    return header.magic === MAGIC || header.magic === FIRST_MAGIC ? header : null
  } catch {
    return null
  }
}

/** The first line of a snapshot, without the rest. */
export function readHeaderOf(file: number): Header | null {
  const start = Buffer.alloc(512)
  const length = readSync(file, start, 0, start.length, 0)
  return readHeader(start.subarray(0, length))
}

/** Fills empty tables; gives the generation, or null when this is not a whole snapshot. */
export function decodeSnapshot(bytes: Buffer, files: FileTable, records: RecordTable): number | null {
  const header = bytes.length < 12 ? null : readHeader(bytes)
  if (!header) return null
  const line = bytes.indexOf(10)
  const body = bytes.subarray(0, bytes.length - 4)
  if (bytes.readUInt32LE(bytes.length - 4) !== crc32(body)) return null
  // Columns are read where they lie, and have to lie on a multiple of 8.
  const { buffer, byteOffset } =
    bytes.byteOffset % 8 === 0 ? bytes : Buffer.from(new Uint8Array(bytes).buffer)
  let at = byteOffset + line + 1
  const floats = (length: number): Float64Array => {
    const column = new Float64Array(buffer, at, length)
    at += column.byteLength
    return column
  }
  const whole = (length: number): Int32Array => {
    const column = new Int32Array(buffer, at, length)
    at += column.byteLength
    return column
  }
  const size = floats(header.files)
  const mtime = floats(header.files)
  const ctime = header.magic === FIRST_MAGIC ? new Float64Array(header.files) : floats(header.files)
  const ino = floats(header.files)
  const stamp = floats(header.files)
  const text = floats(header.records)
  const stamps = floats(header.links)
  const start = whole(header.records + 1)
  const outputs = whole(header.records)
  const linked = whole(header.links)
  const racy = new Uint8Array(buffer, at, header.files)
  at += header.files
  const paths = Buffer.from(buffer, at, header.paths).toString('utf8')
  files.load(header.files === 0 ? [] : paths.split('\0'), { size, mtime, ctime, ino, stamp, racy })
  records.load({ text, start, outputs, files: linked, stamps })
  return header.generation
}
