import { readdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, extname, join, relative, resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { nearest } from '../../general/nearest.ts'

export const EXTENSIONS = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx']

/** The real path of the program: tasks are found by it again, and threads see through links. */
export function findProgram(given: string): string {
  if (given === '') throw usage('the name of the program is empty', 'Usage: millrace run PROGRAM.')
  const path = resolve(given)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) throw missing(given, path)
  if (stats.isDirectory()) {
    const [first] = programsIn(path)
    throw usage(
      `${given} is a folder`,
      first ? `Did you mean ${join(given, first)}?` : 'Name a program in it.',
    )
  }
  if (!EXTENSIONS.includes(extname(path))) {
    throw usage(
      `${given} is not a program that Millrace can run`,
      `It must end with ${EXTENSIONS.join(', ')}.`,
    )
  }
  return realpathSync(path)
}

function missing(given: string, path: string): MillraceError {
  const folder = dirname(path)
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    return usage(`there is no file ${given}: its folder does not exist`, `This is ${process.cwd()}.`)
  }
  const name = basename(path)
  const programs = programsIn(folder)
  const stem = (file: string): string => file.slice(0, file.length - extname(file).length)
  const same = programs.find(file => stem(file) === name || stem(file) === stem(name))
  const close = same ?? nearest(name, programs)
  if (close) {
    const shown = relative(process.cwd(), join(folder, close))
    return usage(`there is no file ${given}; did you mean ${shown}?`, `Try: millrace run ${shown}`)
  }
  const hint =
    programs.length > 0
      ? `Programs in ${folder}: ${programs.slice(0, 8).join(', ')}.`
      : `There is no program in ${folder}.`
  return usage(`there is no file ${given}`, hint)
}

function programsIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter(file => EXTENSIONS.includes(extname(file)) && !file.endsWith('.d.ts'))
      .sort()
  } catch {
    return []
  }
}

const usage = (message: string, hint: string): MillraceError =>
  new MillraceError('MR_OPTION', message, { hint })
