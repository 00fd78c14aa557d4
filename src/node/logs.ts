import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import type { Task } from '../core/tasks/task.ts'

/** Lines of a log that a failure keeps: errors are often at the beginning, the last word at the end. */
const FIRST = 8
const LAST = 12
/** Bytes that are read at each end for them. */
const PART = 8192
/** Lines of longer logs are not counted. */
const COUNTED = 1 << 20

export interface LogExcerpt {
  /** The first and the last lines, or all of a short log. */
  readonly text: string
  /** Lines of the whole log, and how many of `text` are from its beginning; absent where `text` is all of it. */
  readonly cut?: { readonly first: number; readonly lines: number | null }
}

export const logPath = (folder: string | null, task: Task): string | undefined =>
  folder === null ? undefined : `${folder}/${task.id}.${task.attempt}.log`

/** What a person who looks at a failure wants to see of its log. */
export async function excerptOf(path: string): Promise<LogExcerpt | undefined> {
  try {
    const file = await open(path, 'r')
    try {
      const { size } = await file.stat()
      if (size <= COUNTED) return excerptOfText(await read(file, 0, size))
      const first = linesOf(await read(file, 0, PART)).slice(0, FIRST)
      // The first line of the last part is cut in most cases.
      const last = linesOf(await read(file, size - PART, PART))
        .slice(1)
        .slice(-LAST)
      return { text: [...first, ...last].join('\n'), cut: { first: first.length, lines: null } }
    } finally {
      await file.close()
    }
  } catch {
    return undefined
  }
}

function excerptOfText(text: string): LogExcerpt {
  const lines = linesOf(text)
  if (lines.length <= FIRST + LAST) return { text: lines.join('\n') }
  const kept = [...lines.slice(0, FIRST), ...lines.slice(-LAST)]
  return { text: kept.join('\n'), cut: { first: FIRST, lines: lines.length } }
}

const linesOf = (text: string): string[] => text.trimEnd().split('\n')

async function read(file: FileHandle, from: number, length: number): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, from)
  return buffer.subarray(0, bytesRead).toString('utf8')
}
