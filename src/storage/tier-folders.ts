import { mkdir, readFile, readdir, rename, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { FileThreads } from './file-threads.ts'
import { hasEnded, thisProcess } from './owner.ts'
import type { Owner } from './owner.ts'

/**
 * What a run has on a device:
 *
 *     .millrace-new/N/NAME        being written by a task (staging.ts)
 *     .millrace-kept-RUN/N/NAME   committed; NAME is what the user called it
 *     .millrace-kept-RUN/N/.millrace-target   where it is to go in the end, and which version it is
 *     .millrace-kept-RUN/owner    the process that it belongs to
 *
 * N is one number per version and run. Renaming N from the first folder to the second is the commit: a whole
 * file with its target, or nothing. Whatever has no target is rubbish, so deleting begins with the target. A copy
 * on the way to another device is N.part there, and renamed when it is complete and on the disk. Thus a run that
 * is killed at any moment leaves each committed version whole at least once, and `recover` finds it.
 */

export const TARGET = '.millrace-target'
export const PART = '.part'
const OWNER = 'owner'

/** A device, as far as folders on it are concerned. */
export interface Tier {
  readonly name: string
  readonly path: string
}

export interface TargetFacts {
  path: string
  version: number
}

export class TierFolders {
  readonly #run: string
  readonly #threads: FileThreads
  readonly #prepared = new Map<string, Promise<void>>()

  constructor(run: string, threads: FileThreads) {
    this.#run = run
    this.#threads = threads
  }

  kept({ path }: Tier): string {
    return join(path, `.millrace-kept-${this.#run}`)
  }

  /** All folders with committed data that were made. */
  get all(): string[] {
    return [...this.#prepared.keys()]
  }

  /** Says, beside a file that is to be written, where it will belong. */
  async mark(staged: string, facts: TargetFacts): Promise<void> {
    await writeFile(join(dirname(staged), TARGET), JSON.stringify(facts))
  }

  /** Commits what lies in a staging folder; returns its path from now on. */
  async keep(staged: string, tier: Tier): Promise<string> {
    const place = join(await this.prepare(tier), basename(dirname(staged)))
    await rename(dirname(staged), place)
    return join(place, basename(staged))
  }

  /** Makes the folder for committed data, with the name of its owner. */
  async prepare(tier: Tier): Promise<string> {
    const folder = this.kept(tier)
    let made = this.#prepared.get(folder)
    if (!made) this.#prepared.set(folder, (made = makeKept(folder)))
    await made
    return folder
  }

  /** Not to be brought to its target any more. */
  async unmark(path: string): Promise<void> {
    await unlink(join(dirname(path), TARGET)).catch(() => undefined)
  }

  async drop(path: string): Promise<void> {
    await this.unmark(path)
    await this.#threads.call('remove', dirname(path))
  }
}

export const isKept = (path: string): boolean =>
  basename(dirname(dirname(path))).startsWith('.millrace-kept-')

const NEW = '.new'
/** By then a folder has its owner's name, or never will. Milliseconds. */
const LONG_AGO = 60_000

/** Its owner is known from the start, or it would never be cleared away. */
async function makeKept(folder: string): Promise<void> {
  const aside = folder + NEW
  try {
    await mkdir(aside, { recursive: true, mode: 0o700 })
    await writeFile(join(aside, OWNER), JSON.stringify(thisProcess()))
    await rename(aside, folder)
  } catch (error) {
    // Where the device is full there is no room for the name.
    await rm(aside, { recursive: true, force: true }).catch(() => undefined)
    throw error
  }
}

/** Whether it is a folder that a run began to make and did not get to use: there is nothing in it. */
export async function isUnfinished(folder: string): Promise<boolean> {
  if (!folder.endsWith(NEW)) return false
  const facts = await stat(folder).catch(() => null)
  return facts !== null && Date.now() - facts.mtimeMs > LONG_AGO
}

/** All of it, but for what is needed. The owner goes last, for the same reason. */
export async function removeKept(
  folder: string,
  isNeeded = (_name: string): boolean => false,
): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  let isEmpty = true
  for (const name of names) {
    if (isNeeded(name)) isEmpty = false
    else if (name !== OWNER) await rm(join(folder, name), { recursive: true, force: true })
  }
  if (isEmpty) await rm(folder, { recursive: true, force: true })
}

/** Whether the run that owns the folder has ended; unknown owners and other hosts count as alive. */
export async function isOrphan(folder: string): Promise<boolean> {
  try {
    const owner = JSON.parse(await readFile(join(folder, OWNER), 'utf8')) as Owner
    return hasEnded(owner)
  } catch {
    return false
  }
}
