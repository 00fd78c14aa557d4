import { accessSync, constants, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { dirname, extname, resolve } from 'node:path'
import { MillraceError } from '../core/errors.ts'
import { EXTENSIONS } from './run/program.ts'
import { valueOf } from './spec.ts'
import type { Given } from './spec.ts'

/** Options that name a file which is made from the journal. */
export const EXPORTS = ['trace', 'graph', 'picture', 'paraver'] as const

/** The files that these options are to write can be written. Better now than after hours of computing. */
export function checkTargets(given: Given): void {
  const names = new Map<string, string>()
  for (const name of EXPORTS) {
    const path = valueOf(given, name)
    if (path === undefined) continue
    checkTarget(`--${name}`, path)
    const other = names.get(resolve(path))
    if (other) throw wrong(`--${other} and --${name} name the same file`, 'Give each a file of its own.')
    names.set(resolve(path), name)
  }
}

/** Refuses a file that cannot be written, before anything is done for it. */
export function checkTarget(option: string, path: string): void {
  const refused = (why: string, hint: string): MillraceError =>
    wrong(`${option} ${path} cannot be written: ${why}`, hint)
  const look = (at: string): Stats | undefined => {
    try {
      return statSync(at, { throwIfNoEntry: false })
    } catch (error) {
      throw refused((error as Error).message, 'Name another file.')
    }
  }
  const folder = dirname(resolve(path))
  if (!look(folder)?.isDirectory()) throw refused(`there is no folder ${folder}`, 'Make the folder first.')
  const stats = look(path)
  if (stats?.isDirectory()) throw refused('it is a folder', 'Name a file.')
  try {
    accessSync(stats ? path : folder, constants.W_OK)
  } catch (error) {
    throw refused((error as Error).message, 'Name a file in a folder that can be written.')
  }
  // Never meant: a word was left out, or two were swapped.
  if (stats?.isFile() && EXTENSIONS.includes(extname(path))) {
    throw refused('it is a program, which would be lost', 'Name a file that is not there yet.')
  }
}

const wrong = (message: string, hint: string): MillraceError =>
  new MillraceError('MR_OPTION', message, { hint })
