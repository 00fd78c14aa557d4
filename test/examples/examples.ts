import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../cli/folder.ts'

/** The examples as a user has them: in a folder of their own. */
export function copyOf(example: string): string {
  const from = join(import.meta.dirname, '../../examples', example)
  const files = readdirSync(from).filter(name => name.endsWith('.ts'))
  return makeFolder(Object.fromEntries(files.map(name => [name, readFileSync(join(from, name), 'utf8')])))
}

export const missing = (...programs: string[]): string | false => {
  const absent = programs.filter(program => spawnSync('which', [program]).status !== 0)
  return absent.length > 0 && `${absent.join(', ')} not installed`
}
