import { constants } from 'node:fs'
import { copyFile, cp, link, lstat, mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import type { Access, Version } from '../core/data/datum.ts'
import type { Locations } from './location.ts'
import { isStaging } from './staging.ts'

/** Whether what has the second path lies in the folder that has the first. */
export const isInside = (folder: string, path: string): boolean => path.startsWith(`${folder}/`)

/** What a task that uses a folder as a whole waits for: files in it that were parameters of tasks before. */
export function versionsInside(folder: string, accesses: readonly Access[]): Version[] {
  const inside: Version[] = []
  for (const { read } of accesses) {
    if (read && isInside(folder, read.datum.path ?? '')) inside.push(read)
  }
  return inside
}

/** Those that are kept elsewhere, while something else, or nothing, is at their paths. */
export function elsewhere(versions: readonly Version[], locations: Locations): Version[] {
  return versions.filter(version => {
    const location = locations.of(version)
    return version.value === location && location.isAside && locations.file(version.datum).inPlace !== version
  })
}

/** A version of these files, be it an older one, that tasks still write or read; `own` are not counted. */
export function usedInside(
  inside: readonly Version[],
  own: readonly Access[],
  locations: Locations,
): Version | null {
  const isUsed = (version: Version): boolean => {
    const isOwn = ({ read }: Access): boolean => read === version
    return !version.settled || version.readers > own.filter(isOwn).length
  }
  for (const version of inside) {
    const { inPlace, written } = locations.file(version.datum)
    for (const one of [version, ...(inPlace ? [inPlace] : []), ...written]) if (isUsed(one)) return one
  }
  return null
}

/** The folder as it is, without staging folders, under another path: files are linked where that is possible. */
export async function linkFolder(from: string, to: string, root = from): Promise<void> {
  await mkdir(to)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (isStaging(entry.name)) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await linkFolder(source, target, root)
    else if (entry.isSymbolicLink()) await copyLink(source, target, root)
    else await link(source, target).catch(() => copyFile(source, target, constants.COPYFILE_FICLONE))
  }
}

/** A link that leads out of the folder leads to the same place from its copy. */
async function copyLink(source: string, target: string, root: string): Promise<void> {
  const to = await readlink(source)
  const full = resolve(dirname(source), to)
  await symlink(isAbsolute(to) || isInside(root, full) ? to : full, target)
}

/** Puts versions that were elsewhere when the folder was copied into the copy. They may have come to their places meanwhile. */
export async function overlay(
  copy: string,
  folder: string,
  late: readonly Version[],
  locations: Locations,
): Promise<void> {
  for (const version of late) {
    const location = locations.of(version)
    const target = join(copy, relative(folder, location.home))
    await mkdir(dirname(target), { recursive: true })
    for (let path = location.path; ; path = location.path) {
      await rm(target, { recursive: true, force: true })
      try {
        await copyOver(path, target)
        break
      } catch (error) {
        if (path === location.path) throw error
      }
    }
  }
}

async function copyOver(path: string, target: string): Promise<void> {
  if (!(await lstat(path)).isDirectory()) return copyFile(path, target, constants.COPYFILE_FICLONE)
  const filter = (inner: string): boolean => !isStaging(basename(inner))
  await cp(path, target, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter })
}
