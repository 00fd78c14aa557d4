import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import type { Tier } from './tier-folders.ts'

const WORDS: Record<string, string> = {
  ENOSPC: 'is full',
  EDQUOT: 'is full: the quota is used up',
  EROFS: 'is read-only',
  EACCES: 'may not be written by this user',
  EPERM: 'may not be written by this user',
  EIO: 'reports errors',
  ENODEV: 'is not there any more',
  ENXIO: 'is not there any more',
  ESTALE: 'is not there any more',
  ENOTCONN: 'is not there any more',
  EREMOTEIO: 'reports errors',
}

/** With less than this, a device that was written to may well be full; bytes. */
const HARDLY_ANY = 2 ** 20

/** Why the device cannot be written; null if it can. Making a folder there fails with words that say something else. */
export async function refusalOf({ path }: Tier): Promise<string | null> {
  const error = await access(path, constants.W_OK).catch((failed: NodeJS.ErrnoException) => failed)
  return error ? `${WORDS[error.code ?? ''] ?? 'cannot be written'} (${error.code})` : null
}

/** What is wrong with the device behind a failure, in words; null if the failure is not the device's. */
export async function troubleWith(tier: Tier, error: unknown): Promise<string | null> {
  const { code, path, cause } = (error ?? {}) as NodeJS.ErrnoException & { cause?: unknown }
  if (typeof code === 'string' && code.startsWith('MR_') && cause) return troubleWith(tier, cause)
  const room = await statfs(tier.path).catch((failed: NodeJS.ErrnoException) => failed)
  if (room instanceof Error) return `is not there any more (${room.code})`
  const refusal = await refusalOf(tier)
  if (refusal !== null) return refusal
  const words = code === undefined ? undefined : WORDS[code]
  const isElsewhere = path !== undefined && !path.startsWith(tier.path)
  if (words && code !== 'ENOSPC') return isElsewhere ? null : `${words} (${code})`
  // Programs do not say why they failed, and a write does not say where.
  if (!isElsewhere && room.files > 0 && room.ffree === 0) return 'has no inodes left for more files'
  return !isElsewhere && room.bavail * room.bsize < HARDLY_ANY ? 'is full' : null
}
