import { existsSync } from 'node:fs'
import type { ShellCommand } from './sh.ts'

let shell: readonly string[] | null = null

/**
 * How a shell command is started: without a shell when it is only words. A shell ends at the first command that
 * fails; where there is bash, also when a command inside a pipeline does.
 */
export function shellArgv({ text, words }: ShellCommand): readonly string[] {
  if (words) return words
  shell ??= existsSync('/bin/bash') ? ['/bin/bash', '-eo', 'pipefail', '-c'] : ['/bin/sh', '-e', '-c']
  return [...shell, ...(text.length < LONGEST_WORD ? [text] : inPieces(text))]
}

/** The system takes no word of 128 KiB or more, but many of them; a character has up to four bytes. */
const LONGEST_WORD = 30_000

/** A text as several words, which the shell puts together again. */
function inPieces(text: string): string[] {
  const pieces = text.match(new RegExp(`[^]{1,${LONGEST_WORD}}`, 'gu')) ?? []
  const whole = pieces.map((_, i) => `\${${i + 1}}`).join('')
  return [`millrace_text="${whole}"; set --; eval "$millrace_text"`, 'sh', ...pieces]
}
