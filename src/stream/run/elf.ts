/**
 * Whether the library can intercept a program at all. It is loaded by the dynamic linker, so a static program
 * never sees it, a set-uid one refuses it, and one written in Go makes its system calls without libc.
 */
import { accessSync, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { basename, isAbsolute, join, resolve } from 'node:path'

export interface Program {
  path: string
  /** Why it is not intercepted, as the end of a sentence; undefined when all is well. */
  fault?: string
}

const PT_INTERP = 3
const PT_NOTE = 4
const GO_BUILD_ID = 4

/** The file that a command word starts, looked up as `execvp` does. */
export function findProgram(word: string, cwd: string, path = process.env['PATH'] ?? ''): string | undefined {
  const places = word.includes('/')
    ? [resolve(cwd, word)]
    : path.split(':').map(dir => join(resolve(cwd, dir), word))
  return places.find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    const fd = openSync(path, 'r')
    try {
      return fstatSync(fd).isFile()
    } finally {
      closeSync(fd)
    }
  } catch {
    return false
  }
}

/** Looks into the program, and for a script into its interpreter. */
export function inspectProgram(path: string, depth = 0): Program {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch {
    return { path } // Executable but not readable: nothing can be said.
  }
  try {
    const { mode, uid, gid } = fstatSync(fd)
    const foreign =
      ((mode & 0o4000) !== 0 && uid !== process.getuid?.()) ||
      ((mode & 0o2000) !== 0 && gid !== process.getgid?.())
    if (foreign) return { path, fault: 'runs with the rights of another user (set-uid)' }
    const head = Buffer.alloc(4096)
    const length = readSync(fd, head, 0, head.length, 0)
    if (head.toString('latin1', 0, 2) === '#!')
      return inspectScript(path, head.toString('utf8', 2, length), depth)
    if (length < 52 || head.readUInt32BE(0) !== 0x7f454c46) return { path }
    const fault = inspectElf(fd, head)
    return fault === undefined ? { path } : { path, fault }
  } finally {
    closeSync(fd)
  }
}

function inspectScript(path: string, text: string, depth: number): Program {
  const words = text.split('\n', 1)[0]!.trim().split(/\s+/)
  const viaEnv = basename(words[0] ?? '') === 'env'
  const word = viaEnv ? words.slice(1).find(part => !part.startsWith('-') && !part.includes('=')) : words[0]
  const interpreter =
    word === undefined ? undefined : viaEnv || isAbsolute(word) ? findProgram(word, '/') : undefined
  if (interpreter === undefined || depth >= 4) return { path }
  const { fault } = inspectProgram(interpreter, depth + 1)
  return fault === undefined ? { path } : { path, fault: `is run by ${interpreter}, which ${fault}` }
}

function inspectElf(fd: number, head: Buffer): string | undefined {
  const wide = head[4] === 2
  if (!wide && process.arch.endsWith('64')) return 'is a 32-bit program'
  if (head[5] !== 1) return undefined // Big-endian: not a machine that we know.
  const offset = wide ? Number(head.readBigUInt64LE(32)) : head.readUInt32LE(28)
  const size = head.readUInt16LE(wide ? 54 : 42)
  const count = head.readUInt16LE(wide ? 56 : 44)
  const table = readAt(fd, offset, size * Math.min(count, 200))
  let interpreter: string | undefined
  let go = false
  for (let at = 0; at + size <= table.length && size > 0; at += size) {
    const type = table.readUInt32LE(at)
    if (type !== PT_INTERP && type !== PT_NOTE) continue
    const from = wide ? Number(table.readBigUInt64LE(at + 8)) : table.readUInt32LE(at + 4)
    const bytes = wide ? Number(table.readBigUInt64LE(at + 32)) : table.readUInt32LE(at + 16)
    const content = readAt(fd, from, Math.min(bytes, 65536))
    if (type === PT_INTERP) interpreter = content.toString('utf8').replace(/\0.*$/s, '')
    else go ||= hasGoNote(content)
  }
  if (go) return 'is written in Go, which makes its system calls itself'
  if (interpreter === undefined) return 'is statically linked'
  if (basename(interpreter).includes('musl')) return 'uses musl, not the C library that ours is made for'
  return undefined
}

function hasGoNote(notes: Buffer): boolean {
  for (let at = 0; at + 12 <= notes.length;) {
    const [name, content, type] = [
      notes.readUInt32LE(at),
      notes.readUInt32LE(at + 4),
      notes.readUInt32LE(at + 8),
    ]
    if (type === GO_BUILD_ID && notes.toString('latin1', at + 12, at + 14) === 'Go') return true
    at += 12 + ((name + 3) & ~3) + ((content + 3) & ~3)
  }
  return false
}

function readAt(fd: number, position: number, length: number): Buffer {
  // A header may say anything, and no file is longer. Node 26 refuses such a position.
  if (!Number.isSafeInteger(position)) return Buffer.alloc(0)
  const buffer = Buffer.alloc(length)
  return buffer.subarray(0, readSync(fd, buffer, 0, length, position))
}

/**
 * The programs that a command starts, as far as its text shows: the program of an argument vector, or the first
 * word of each simple command of a shell line.
 */
export function programsOf(command: string | readonly string[], cwd: string): Program[] {
  const words = typeof command === 'string' ? ['sh', ...firstWords(command)] : command.slice(0, 1)
  const paths = words.flatMap(word => findProgram(word, cwd) ?? [])
  return [...new Set(paths)].map(path => inspectProgram(path))
}

function firstWords(line: string): string[] {
  const bare = line.replace(/'[^']*'|"(?:[^"\\]|\\.)*"/g, quoted =>
    quoted.slice(1, -1).replace(/[\s;|&]/g, '_'),
  )
  return bare.split(/\|\|?|&&?|;|\n|\bdo\b|\bthen\b|\belse\b|[({]/).flatMap(part => {
    const word = part
      .trim()
      .split(/\s+/)
      .find(text => !/^\w+=/.test(text) && !/^(exec|time|nice|!)$/.test(text))
    return word === undefined || word === '' || /[$`<>*]/.test(word) ? [] : [word]
  })
}
