import { statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { parseBytes } from '../../general/units.ts'
import { evict } from '../../store/evict.ts'

/** How much a store may hold unless the user says otherwise. */
const USUAL_LIMIT = '20GB'
/** Without a limit of the user's, a store is looked through this often; milliseconds. */
const CHECK_PAUSE = 24 * 3600_000

/** What `keep` says, in bytes. */
export function limitOf(keep: string | number | undefined): number {
  const limit = parseBytes(keep ?? USUAL_LIMIT)
  if (limit !== null && limit > 0) return limit
  throw new MillraceError('MR_UNIT', `keep is '${String(keep)}', which is not a size such as 50GB`)
}

/** `PATH`, or `PATH:ro` for one that is only read. */
export function cacheOf(text: string): { path: string; isReadOnly: boolean } {
  const isReadOnly = text.endsWith(':ro')
  const path = resolve(text.replace(/:(?:ro|rw)$/, ''))
  if (isReadOnly && !statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new MillraceError('MR_STORE', `there is no store in ${path}`, {
      hint: 'Give the path without :ro to make one.',
    })
  return { path, isReadOnly }
}

/** Old results go when there are too many. Without a limit of the user's that is looked at once a day. */
export async function makeRoom(folder: string, limit: number, isAsked: boolean): Promise<void> {
  const mark = join(folder, 'checked')
  const age = Date.now() - (statSync(mark, { throwIfNoEntry: false })?.mtimeMs ?? 0)
  if (!isAsked && age < CHECK_PAUSE) return
  writeFileSync(mark, '')
  await evict(folder, limit)
}
