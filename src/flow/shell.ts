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
  return [...shell, text]
}
