import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import {
  chmod,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  rm,
  symlink,
  utimes,
} from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import type { BigIntStats } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { STAGING } from '../../core/data/staging-name.ts'

/**
 * A file, or a directory with all that is in it, as a stream of bytes: records of a header, a name and a content. The first
 * record is that of the path itself, with an empty name. The stream ends with a record of its own, so that one that was cut
 * off is never taken for a whole one.
 */
export const FILE = 1
export const FOLDER = 2
export const LINK = 3
export const END = 4
/** The sender could not go on; its name says why. */
const TROUBLE = 5
/** Nothing is at the path. */
const MISSING = 6

/** The other side had nothing at the path. */
export class NotThere extends Error {}

const HEADER = 32
const PIECE = 1 << 20
const LONGEST_NAME = 1 << 16

/** What tells one content of a path from another without reading it. For a directory, of all that is in it. */
export async function stampOf(path: string): Promise<string | null> {
  const real = await realpath(path).catch(() => null)
  const found = real === null ? null : await lstat(real, { bigint: true }).catch(() => null)
  if (real === null || !found) return null
  if (!found.isDirectory()) return stampText(found)
  const hash = createHash('sha256')
  for await (const { name, facts } of walk(real)) hash.update(`${name}\0${stampText(facts)}\0`)
  return `d${hash.digest('hex')}`
}

const stampText = (facts: BigIntStats): string =>
  facts.isDirectory() ? 'd' : `${facts.dev}.${facts.ino}.${facts.size}.${facts.mtimeNs}`

interface Found {
  /** Below the path that is sent. */
  readonly name: string
  readonly facts: BigIntStats
}

export async function* walk(path: string, name = ''): AsyncGenerator<Found> {
  const at = join(path, name)
  const facts = await lstat(at, { bigint: true })
  yield { name, facts }
  if (!facts.isDirectory()) return
  // Their order is that of the disk.
  for (const inner of (await readdir(at)).sort()) if (inner !== STAGING) yield* walk(path, join(name, inner))
}

export function header(type: number, name: string, mode: number, modified: number, size: number): Buffer {
  const text = Buffer.from(name)
  const bytes = Buffer.alloc(HEADER + text.length)
  bytes.writeUInt32LE(type, 0)
  bytes.writeUInt32LE(text.length, 4)
  bytes.writeUInt32LE(mode, 8)
  bytes.writeDoubleLE(modified, 16)
  bytes.writeDoubleLE(size, 24)
  text.copy(bytes, HEADER)
  return bytes
}

/** Gives the stream of a path. What changes while it is read is found out, unless `mayChange`. */
export async function* readTree(path: string, mayChange = false): AsyncGenerator<Uint8Array> {
  try {
    // What the user calls a file may be a link to it; links inside a folder are sent as links.
    const real = await realpath(path)
    for await (const { name, facts } of walk(real)) {
      const at = join(real, name)
      const mode = Number(facts.mode) & 0o7777
      const modified = Number(facts.mtimeNs) / 1e9
      if (facts.isDirectory()) yield header(FOLDER, name, mode, modified, 0)
      else if (facts.isSymbolicLink()) {
        const target = Buffer.from(await readlink(at))
        yield header(LINK, name, mode, modified, target.length)
        yield target
      } else if (facts.isFile()) yield* readFile(at, name, mayChange)
      else throw new Error(`${at} is neither a file nor a folder`)
    }
    yield header(END, '', 0, 0, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') yield header(MISSING, path, 0, 0, 0)
    yield header(TROUBLE, (error as Error).message.slice(0, 1000), 0, 0, 0)
  }
}

async function* readFile(at: string, name: string, mayChange: boolean): AsyncGenerator<Uint8Array> {
  const file = await open(at, constants.O_RDONLY)
  try {
    const before = await file.stat({ bigint: true })
    const size = Number(before.size)
    yield header(FILE, name, Number(before.mode) & 0o7777, Number(before.mtimeNs) / 1e9, size)
    yield* pieces(file, at, size)
    const after = await file.stat({ bigint: true })
    if (!mayChange && stampText(after) !== stampText(before)) throw changed(at)
  } finally {
    await file.close()
  }
}

/** Reads exactly this many bytes of a file. */
export async function* pieces(file: FileHandle, at: string, size: number): AsyncGenerator<Uint8Array> {
  for (let done = 0; done < size;) {
    const piece = Buffer.allocUnsafeSlow(Math.min(PIECE, size - done))
    const { bytesRead } = await file.read(piece, 0, piece.length, done)
    if (bytesRead === 0) throw changed(at)
    done += bytesRead
    yield piece.subarray(0, bytesRead)
  }
}

const changed = (path: string): Error => new Error(`${path} was changed while it was being sent`)

/** Writes a stream where it belongs: whole, or not at all. Pieces are given one after the other. */
export class TreeWriter {
  readonly #path: string
  readonly #aside: string
  #rest: Buffer = Buffer.alloc(0)
  #file: { readonly handle: FileHandle; readonly at: string; readonly modified: number } | null = null
  /** Of the content of the record. */
  #left = 0
  #link: { readonly at: string; parts: Buffer[] } | null = null
  readonly #folders: { at: string; mode: number; modified: number }[] = []
  #isOver = false
  bytes = 0

  constructor(path: string, number: number) {
    this.#path = path
    this.#aside = `${path}.${process.pid}-${number}.part`
  }

  /** Throws what the other side could not read, and what cannot be written here. */
  async push(chunk: Uint8Array): Promise<void> {
    let bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    while (bytes.length > 0 || (this.#left === 0 && (this.#file || this.#link))) {
      if (this.#file || this.#link) {
        const part = bytes.subarray(0, this.#left)
        if (this.#file && part.length > 0) await writeAll(this.#file.handle, part)
        this.#link?.parts.push(part)
        this.#left -= part.length
        this.bytes += part.length
        bytes = bytes.subarray(part.length)
        if (this.#left > 0) return
        await this.#closeRecord()
        continue
      }
      const joined = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes
      const length = joined.length < HEADER ? Infinity : HEADER + joined.readUInt32LE(4)
      if (length > HEADER + LONGEST_NAME && joined.length >= HEADER) throw new Error('it is not a tree')
      if (joined.length < length) {
        this.#rest = Buffer.from(joined)
        return
      }
      this.#rest = Buffer.alloc(0)
      await this.#record(joined.subarray(0, length))
      bytes = joined.subarray(length)
    }
  }

  /** To be called behind the last piece: puts what came in its place. */
  async end(): Promise<void> {
    if (!this.#isOver) throw new Error('it was cut off')
    for (const { at, mode, modified } of this.#folders.reverse()) {
      await chmod(at, mode)
      await utimes(at, modified, modified)
    }
    const before = await lstat(this.#path).catch(() => null)
    if (before?.isDirectory()) await rm(this.#path, { recursive: true, force: true })
    await rename(this.#aside, this.#path)
  }

  /** What came so far goes. */
  async abandon(): Promise<void> {
    await this.#file?.handle.close().catch(() => undefined)
    this.#file = null
    await rm(this.#aside, { recursive: true, force: true }).catch(() => undefined)
  }

  async #record(bytes: Buffer): Promise<void> {
    const type = bytes.readUInt32LE(0)
    const mode = bytes.readUInt32LE(8)
    const modified = bytes.readDoubleLE(16)
    const size = bytes.readDoubleLE(24)
    const name = bytes.toString('utf8', HEADER)
    if (type === MISSING) throw new NotThere(`there is no ${name}`)
    if (type === TROUBLE) throw new MillraceError('MR_TRANSFER', name)
    if (name.split(sep).includes('..')) throw new Error(`a name leads out of the folder: ${name}`)
    const at = join(this.#aside, name)
    if (name === '') await mkdir(dirname(this.#path), { recursive: true })
    switch (type) {
      case END:
        this.#isOver = true
        return
      case FOLDER:
        await mkdir(at, { recursive: true })
        this.#folders.push({ at, mode, modified })
        return
      case LINK:
        await mkdir(dirname(at), { recursive: true })
        this.#link = { at, parts: [] }
        this.#left = size
        return
      case FILE:
        await mkdir(dirname(at), { recursive: true })
        this.#file = { handle: await open(at, 'wx', mode), at, modified }
        await this.#file.handle.chmod(mode)
        this.#left = size
        return
      default:
        throw new Error('it is not a tree')
    }
  }

  async #closeRecord(): Promise<void> {
    if (this.#link) await symlink(Buffer.concat(this.#link.parts).toString(), this.#link.at)
    this.#link = null
    if (!this.#file) return
    const { handle, modified } = this.#file
    this.#file = null
    await handle.utimes(modified, modified)
    await handle.close()
  }
}

async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, at, bytes.length - at)
    at += bytesWritten
  }
}
