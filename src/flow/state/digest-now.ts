import { hash } from 'node:crypto'
import { closeSync, openSync, readSync, readdirSync, readlinkSync } from 'node:fs'
import { isOwnName } from './file-table.ts'
import { CHUNK } from './stamp.ts'

const buffer = Buffer.allocUnsafeSlow(CHUNK)

/** As `digestPath` of a folder, without a pause: for a thread that has nothing else to do. */
export function digestFolderNow(folder: string): string {
  const lines: string[] = []
  const walk = (path: string, name: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true }).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )) {
      if (isOwnName(entry.name)) continue
      const inner = `${path}/${entry.name}`
      const shown = `${name}/${entry.name}`
      if (entry.isDirectory()) {
        lines.push(`${JSON.stringify(shown)}/`)
        walk(inner, shown)
      } else if (entry.isSymbolicLink()) {
        lines.push(`${JSON.stringify(shown)} -> ${JSON.stringify(readlinkSync(inner))}`)
      } else lines.push(`${JSON.stringify(shown)} ${entry.isFile() ? digestFileNow(inner) : 'special'}`)
    }
  }
  walk(folder, '')
  return hash('sha256', lines.join('\n'))
}

/** As `digestFile`. */
function digestFileNow(path: string): string {
  const file = openSync(path, 'r')
  try {
    const parts: string[] = []
    for (;;) {
      let filled = 0
      for (let size = -1; size !== 0 && filled < CHUNK; filled += size) {
        size = readSync(file, buffer, filled, CHUNK - filled, null)
      }
      if (filled > 0 || parts.length === 0) parts.push(hash('sha256', buffer.subarray(0, filled)))
      if (filled < CHUNK) break
    }
    return parts.length === 1 ? (parts[0] as string) : hash('sha256', Buffer.from(parts.join(''), 'hex'))
  } finally {
    closeSync(file)
  }
}
