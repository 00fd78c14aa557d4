import { printable } from '../report/text.ts'
import { messageOf, textFieldOf } from '../general/thrown.ts'
import { USAGE_CODES } from '../runtime/run-options.ts'

/**
 * Errors differ by their code and not by their class: a program may have a copy of Millrace of its
 * own, and its errors then are of another class of the same name.
 */
export function codeOf(error: unknown): string | null {
  return textFieldOf(error, 'code') ?? null
}

export const isOurs = (error: unknown): boolean => codeOf(error)?.startsWith('MR_') === true

/** Wrong usage is 2, and so is a run or task that does not exist; all else that can go wrong is 1. */
export function exitCodeOf(error: unknown): number {
  const usage: readonly (string | null)[] = [
    ...USAGE_CODES,
    'MR_JOURNAL',
    'MR_FLOW_FILE',
    'MR_FLOW_PARAM',
    'MR_STREAM_CONFIG',
    'MR_STREAM_STEPS',
  ]
  return usage.includes(codeOf(error)) ? 2 : 1
}

/** The system has run out of something: not a fault of Millrace or of the program. */
const WAYS_OUT = new Map([
  ['EMFILE', 'Raise the limit of open files, for instance with ulimit -n 4096.'],
  ['ENFILE', 'Too many files are open on this machine: end what is not needed.'],
  ['ENOMEM', 'There is not enough memory: end what is not needed, or raise the limit.'],
  ['EAGAIN', 'There are too many processes or threads: end some, or raise the limit (ulimit -u).'],
  ['ENOSPC', 'The disk is full (df), or has no inodes for more files (df -i): make room.'],
  ['EDQUOT', 'Your share of the disk is used up: make room.'],
  ['EROFS', 'It cannot be written there: start it in another folder.'],
])

/** What a person should read; a stack only for what was not foreseen. */
export const explain = (error: unknown): string => printable(explanation(error))

function explanation(error: unknown): string {
  if (isOurs(error)) return `millrace: ${(error as Error).message}\n`
  const way = WAYS_OUT.get(codeOf(error) ?? '')
  if (way !== undefined) return `millrace: ${(error as Error).message}\n  ${way}\n`
  const detail = textFieldOf(error, 'stack') ?? messageOf(error)
  return `millrace: ${detail}\n  This is a fault of Millrace itself. Please report it. [MR_INTERNAL]\n`
}
