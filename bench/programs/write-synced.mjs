import { open } from 'node:fs/promises'

/** Writes a file that is on its device when this ends, not in memory only. */
export async function writeSynced(data, path) {
  const file = await open(path, 'w')
  try {
    await file.write(data)
    await file.sync()
  } finally {
    await file.close()
  }
}
