import { join } from 'node:path'
import { buildPart, builtPart, sourcesOf } from './build.ts'

const FILE = 'millrace.node'

const part = () => ({ name: 'addon', sources: sourcesOf('native/addon'), makes: [FILE] })

/** What threads can only do in C. */
export interface Addon {
  /** The calling thread, and those that it starts, run on these CPUs only. Returns '' or why not. */
  bind(cpus: readonly number[]): string
  /** The CPUs that the calling thread may run on. */
  affinity(): number[]
  /** Gives the second file those extended attributes of the first that it lacks; how many that were. */
  copyAttributes(from: string, to: string): number
}

/** Where the add-on is, if it has been built. */
export function builtAddon(): string | null {
  try {
    const folder = builtPart(part())
    return folder === null ? null : join(folder, FILE)
  } catch {
    return null
  }
}

/** The same, built if it is not there. */
export const addonPath = async (): Promise<string> => join(await buildPart(part()), FILE)

/** Loads it in this thread. */
export function loadAddon(path: string): Addon {
  const module = { exports: {} }
  process.dlopen(module, path)
  return module.exports as Addon
}
