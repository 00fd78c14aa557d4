import { createReadStream, createWriteStream } from 'node:fs'
import { once } from 'node:events'

/** FASTQ files: made here from a random reference, and read in batches of whole reads. */

export const LENGTH = 120
const LETTERS = 'ACGT'

export function makeReference(length: number): string {
  const random = generator(3)
  return Array.from({ length }, () => LETTERS[Math.floor(random() * 4)]).join('')
}

/** About `bytes` of reads, each from somewhere in the reference, with errors. */
export async function writeReads(path: string, reference: string, bytes: number): Promise<number> {
  const random = generator(11)
  const file = createWriteStream(path)
  const quality = 'I'.repeat(LENGTH)
  let written = 0
  let count = 0
  while (written < bytes) {
    const lines: string[] = []
    for (let i = 0; i < 2000; i++) {
      const at = Math.floor(random() * (reference.length - LENGTH))
      const bases = reference.slice(at, at + LENGTH).split('')
      for (let e = 0; e < 3; e++)
        bases[Math.floor(random() * LENGTH)] = LETTERS[Math.floor(random() * 4)] as string
      lines.push(`@read-${++count}-from-${at}\n${bases.join('')}\n+\n${quality}\n`)
    }
    const text = lines.join('')
    written += text.length
    if (!file.write(text)) await once(file, 'drain')
  }
  file.end()
  await once(file, 'close')
  return count
}

/** Batches of reads as they lie in the file, each of about `size` bytes, from byte `from` on up to `to`. */
export async function* batches(
  path: string,
  size: number,
  from = 0,
  to = Infinity,
): AsyncGenerator<Uint8Array> {
  let rest: Buffer = Buffer.alloc(0)
  let at = 0
  for await (const chunk of createReadStream(path, { highWaterMark: size }) as AsyncIterable<Buffer>) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const end = endOfRead(rest)
    if (end > 0) {
      if (at >= from && at < to) yield new Uint8Array(rest.subarray(0, end))
      at += end
      rest = rest.subarray(end)
      if (at >= to) return
    }
  }
  if (rest.length > 0 && at >= from && at < to) yield new Uint8Array(rest)
}

/** Where the last whole read of the text ends: before a line that begins with @ and has + two lines below. */
function endOfRead(text: Buffer): number {
  for (let at = text.lastIndexOf('\n@'); at > 0; at = text.lastIndexOf('\n@', at - 1)) {
    const second = text.indexOf('\n', at + 1)
    const third = second < 0 ? -1 : text.indexOf('\n', second + 1)
    if (third > 0 && text[third + 1] === 0x2b) return at + 1
  }
  return 0
}

function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
