import { builtAddon, loadAddon } from '../native/addon.ts'
import type { Addon } from '../native/addon.ts'

let addon: Addon | null | undefined

/** Node cannot read extended attributes. Where the add-on is not there, because there is no compiler, they are lost. */
function loaded(): Addon | null {
  if (addon !== undefined) return addon
  try {
    const path = builtAddon()
    addon = path === null ? null : loadAddon(path)
  } catch {
    addon = null
  }
  return addon
}

/** Gives a file the extended attributes of the one in whose place it comes, but for those that it has; whether there were any. */
export const copyAttributes = (from: string, to: string): boolean =>
  (loaded()?.copyAttributes(from, to) ?? 0) > 0
