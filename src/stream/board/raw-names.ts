/**
 * Names of files are bytes, and not always UTF-8. Bytes that are not become half a surrogate pair each (0xff is
 * U+DCFF), in what the board says as well: such a name can be told, compared, and turned back into what it was.
 */
import { isUtf8 } from 'node:buffer'

/** A name as `readdir` gives it with the encoding latin1: one character per byte. */
export function nameOfBytes(latin1: string): string {
  if (!/[\x80-\xff]/.test(latin1)) return latin1
  const bytes = Buffer.from(latin1, 'latin1')
  if (isUtf8(bytes)) return bytes.toString()
  let name = ''
  for (let at = 0; at < bytes.length;) {
    const length = lengthOf(bytes[at]!)
    const part = bytes.subarray(at, at + length)
    const whole = part.length === length && isUtf8(part)
    name += whole ? part.toString() : String.fromCharCode(0xdc00 + bytes[at]!)
    at += whole ? length : 1
  }
  return name
}

const lengthOf = (first: number): number => (first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4)

const HALF = /(?<![\ud800-\udbff])[\udc80-\udcff]/

/** What the system calls take for such a path. */
export function rawPath(path: string): string | Buffer {
  if (!HALF.test(path)) return path
  const parts: Buffer[] = []
  for (let rest = path; rest !== '';) {
    const at = HALF.exec(rest)?.index ?? rest.length
    parts.push(Buffer.from(rest.slice(0, at)))
    if (at < rest.length) parts.push(Buffer.from([rest.charCodeAt(at) - 0xdc00]))
    rest = rest.slice(at + 1)
  }
  return Buffer.concat(parts)
}
