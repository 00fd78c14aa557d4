import { accessSync, constants, createWriteStream, realpathSync, statSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import type { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/**
 * Writes a text beside the file and then puts it in its place: what was there before is there until then, and stays
 * when the disk is full or someone ends us.
 */
export async function writeWhole(
  path: string,
  text: Iterable<string> | AsyncIterable<string>,
  packer?: Transform,
): Promise<void> {
  const place = placeOf(path)
  const target = createWriteStream(place.part ?? path)
  const source = Readable.from(text, { objectMode: false })
  try {
    if (packer) await pipeline(source, packer, target)
    else await pipeline(source, target)
    if (place.part) await rename(place.part, place.file)
  } catch (error) {
    if (place.part) await rm(place.part, { force: true })
    throw error
  }
}

/** Where a file is written before it is whole; null where it can only be written in its place: pipes, devices, closed folders. */
export const partOf = (path: string): string | null => placeOf(path).part

function placeOf(path: string): { file: string; part: string | null } {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats && !stats.isFile()) return { file: path, part: null }
  const file = stats ? realpathSync(path) : path
  try {
    accessSync(dirname(file), constants.W_OK)
  } catch {
    return { file, part: null }
  }
  return { file, part: join(dirname(file), `.millrace-part-${process.pid}`) }
}
