import { constants } from 'node:fs'
import { open, rm, statfs } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'

export interface Measured {
  /** Bytes per second. */
  read: number
  write: number
}

/** Not among the types of Node. */
declare const WebAssembly: { Memory: new (size: { initial: number }) => { buffer: ArrayBuffer } }

/** Bytes of one write: the more the better, but on a slow device one must not take all the time there is. */
const CHUNK = { least: 256 * 2 ** 10, most: 4 * 2 ** 20, milliseconds: 25 }
/** What is written before it is timed: first writes to fresh blocks are slower than all later ones. */
const FILE = 32 * 2 ** 20
/** Writing it, and then each direction, takes so long, or until so much has gone through. */
const MILLISECONDS = 500
const MOST = 512 * 2 ** 20

/**
 * How fast the device behind a folder is. Writes go past the page cache where the file system lets them, and are on
 * the device when the clock is stopped. Takes a second or two, and up to 32 MiB for a moment.
 */
export async function measureFolder(folder: string): Promise<Measured> {
  const path = join(folder, `.millrace-measure-${process.pid}`)
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize < 2 * FILE) throw new Error(`there is too little room in ${folder} to measure`)
  // Memory of WebAssembly begins at a page, as writes past the cache must.
  const memory = new Uint8Array(new WebAssembly.Memory({ initial: CHUNK.most / 65_536 }).buffer)
  memory.fill(0xa5)
  try {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC
    const file = await open(path, flags | constants.O_DIRECT).catch(() => open(path, flags))
    try {
      const isDirect = await file.write(memory, 0, CHUNK.least, 0).then(
        () => true,
        () => false,
      )
      if (isDirect) return await measure(file, memory)
    } finally {
      await file.close()
    }
    const buffered = await open(path, flags)
    try {
      return await measure(buffered, memory)
    } finally {
      await buffered.close()
    }
  } finally {
    await rm(path, { force: true })
  }
}

async function measure(file: FileHandle, memory: Uint8Array): Promise<Measured> {
  const { chunk, size } = await prepare(file, memory)
  const write = await rate(
    bytes => file.write(memory, 0, chunk, bytes % size),
    () => file.sync(),
  )
  const read = await rate(
    bytes => file.read(memory, 0, chunk, bytes % size),
    () => Promise.resolve(),
  )
  return { read, write }

  async function rate(step: (at: number) => Promise<unknown>, end: () => Promise<unknown>): Promise<number> {
    const began = performance.now()
    let bytes = 0
    for (; bytes < MOST && performance.now() - began < MILLISECONDS; bytes += chunk) await step(bytes)
    await end()
    return Math.round((bytes / (performance.now() - began)) * 1000)
  }
}

/** Writes the file, as far as there is time for it; says in what pieces, and how large it is: a multiple of them. */
async function prepare(file: FileHandle, memory: Uint8Array): Promise<{ chunk: number; size: number }> {
  const began = performance.now()
  let chunk = CHUNK.least
  let size = 0
  while (size < FILE && performance.now() - began < MILLISECONDS) {
    const before = performance.now()
    await file.write(memory, 0, chunk, size)
    size += chunk
    // What is written so far is as large as the piece, so that doubling it leaves a multiple.
    const isQuick = performance.now() - before < CHUNK.milliseconds
    if (isQuick && size % (2 * chunk) === 0) chunk = Math.min(CHUNK.most, 2 * chunk)
  }
  await file.sync()
  return { chunk, size }
}
