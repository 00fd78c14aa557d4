import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { millrace } from '../cli/folder.ts'
import type { Ended } from '../cli/folder.ts'

/** `millrace make` that has to go well. */
export async function make(folder: string, args: readonly string[] = []): Promise<Ended> {
  const ended = await millrace(folder, ['make', ...args], { MILLRACE_PROGRESS: 'plain' })
  assert.equal(ended.code, 0, ended.stderr)
  return ended
}

export const read = (folder: string, path: string): string => readFileSync(join(folder, path), 'utf8')
