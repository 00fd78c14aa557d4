import { posix } from 'node:path'
import { MillraceError } from '../../core/errors.ts'

/*
 * As paths are compared as text, there is one way to write each: relative to the folder of the workflow where it is
 * inside. That folder is the working directory.
 */

export function workflowPath(given: string): string {
  const path = simplified(given)
  const short = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  if (short === '' || short.includes('\0')) {
    throw new MillraceError('MR_FLOW_RULE', `${JSON.stringify(given)} is not the path of a file`)
  }
  return short
}

/** What stands before the first wildcard of a pattern: the folders in it, and the beginning of a name. */
export function workflowStart(given: string): string {
  const name = given.lastIndexOf('/') + 1
  if (name === 0) return given
  const folder = simplified(given.slice(0, name))
  return folder === './' ? given.slice(name) : folder + given.slice(name)
}

function simplified(given: string): string {
  let path = given
  while (path.startsWith('./')) path = path.slice(2).replace(/^\/+/, '')
  if (path.includes('//')) path = path.replaceAll(/\/\/+/g, '/')
  if (path.includes('/.')) path = posix.normalize(path)
  if (!path.startsWith('/') && !path.startsWith('../')) return path
  const here = process.cwd()
  const whole = path.startsWith('/') ? path : posix.join(here, path)
  if (whole === here) return '.'
  return whole.startsWith(`${here}/`) ? whole.slice(here.length + 1) : path
}
