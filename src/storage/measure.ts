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

const CHUNK = 4 * 2 ** 20
/** What is written before it is timed: first writes to fresh blocks are slower than all later ones. */
const FILE = 32 * 2 ** 20
/** Each direction is measured for so long, or until so much has gone through. */
const MILLISECONDS = 500
const MOST = 512 * 2 ** 20

/**
 * How fast the device behind a folder is. Writes go past the page cache where the file system lets them, and are on
 * the device when the clock is stopped. Takes about a second and 32 MiB for a moment.
 */
export async function measureFolder(folder: string): Promise<Measured> {
  const path = join(folder, `.millrace-measure-${process.pid}`)
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize < 2 * FILE) throw new Error(`there is too little room in ${folder} to measure`)
  // Memory of WebAssembly begins at a page, as writes past the cache must.
  const memory = new Uint8Array(new WebAssembly.Memory({ initial: CHUNK / 65_536 }).buffer)
  memory.fill(0xa5)
  try {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC
    const file = await open(path, flags | constants.O_DIRECT).catch(() => open(path, flags))
    try {
      const isDirect = await file.write(memory, 0, CHUNK, 0).then(
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
  for (let at = 0; at < FILE; at += CHUNK) await file.write(memory, 0, CHUNK, at)
  await file.sync()
  const write = await rate(
    at => file.write(memory, 0, CHUNK, at),
    () => file.sync(),
  )
  const read = await rate(
    at => file.read(memory, 0, CHUNK, at),
    () => Promise.resolve(),
  )
  return { read, write }
}

async function rate(step: (at: number) => Promise<unknown>, end: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  let bytes = 0
  while (bytes < MOST && performance.now() - began < MILLISECONDS) {
    await step(bytes % FILE)
    bytes += CHUNK
  }
  await end()
  return Math.round((bytes / (performance.now() - began)) * 1000)
}
