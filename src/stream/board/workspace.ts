/** The managed directory of a workflow: where it is, what was in it before, and how it is left. */
import { randomUUID } from 'node:crypto'
import {
  access,
  copyFile,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  statfs,
  symlink,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { constants, existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { NameIndex } from '../language/names.ts'
import { compilePattern, matches, type Pattern } from '../language/pattern.ts'
import { LONGEST } from './plan-lines.ts'
import { placePlan } from './place-plan.ts'
import type { Plan } from './plan.ts'
import { nameOfBytes, rawPath } from './raw-names.ts'
import { StreamError } from '../stream-error.ts'

export interface Workspace {
  /** The managed directory. */
  dir: string
  /** Where permanent files belong, and where inputs come from. The managed directory itself when it was named. */
  place: string
  /** A folder of ours on disk, for what finds no room in memory. */
  layer: string | undefined
  /** Ours to remove, with all that is left in it. */
  own: boolean
  /** Files and directories that were there before: whatever happens, they are not removed. */
  before: Set<string>
}

const TMPFS = 0x01021994
/** Where runs keep their journals and logs: no step reads or writes it, also when it is in the managed directory. */
const OWN_FOLDER = '.millrace'
const MOST = 100_000
const SHM = '/dev/shm'
const user = (): number => process.getuid?.() ?? 0

export const isTmpfs = async (dir: string): Promise<boolean> => (await statfs(dir)).type === TMPFS

export interface OpenOptions {
  /** Files may move out of the directory. */
  hasLayer?: boolean
  /** Hears what will be made before anything is: should this process be killed, something else has to remove it. */
  announce?: (opened: Opened) => Promise<void>
}

export interface Opened {
  plan: Plan
  workspace: Workspace
}

/** A directory in memory when there is one, else among the temporary files. */
export async function openWorkspace(
  checked: Plan,
  named: string | undefined,
  place: string,
  { hasLayer = true, announce = async () => {} }: OpenOptions = {},
): Promise<Opened> {
  if (named === undefined) {
    const base = existsSync(SHM) ? SHM : tmpdir()
    const root = await privateName(base, 'dir')
    const real = await realpath(place)
    const dir = join(root, 'files')
    const layer = await layerName(base, real)
    const workspace: Workspace = { dir, place: real, layer, own: true, before: new Set() }
    const plan = placePlan(checked, dir)
    await announce({ plan, workspace })
    try {
      await makePrivate(root).catch((error: unknown) => {
        throw new StreamError(
          'MR_STREAM_DIR',
          `no directory can be made in ${base}: ${text(error)}`,
          `${base} must be writable: what programs say of their files is kept there, too`,
        )
      })
      if (workspace.layer !== undefined) workspace.layer = await makeLayer(workspace.layer)
      await mkdir(dir)
      await linkInputs(plan, workspace)
      return { plan, workspace }
    } catch (error) {
      await removeOwn(workspace)
      throw error
    }
  }
  const dir = resolve(named)
  await mkdir(dir, { recursive: true }).catch((error: unknown) => {
    throw new StreamError(
      'MR_STREAM_DIR',
      `${dir} cannot be the managed directory: ${text(error)}`,
      'name another directory',
    )
  })
  const real = await realpath(dir)
  const placed = placePlan(checked, real, dir)
  const plan = { ...placed, exclude: [...placed.exclude, compilePattern(OWN_FOLDER)] }
  const workspace: Workspace = {
    dir: real,
    place: real,
    layer: hasLayer ? await layerName(real) : undefined,
    own: false,
    before: new Set(await outputsIn(plan, real)),
  }
  await announce({ plan, workspace })
  if (workspace.layer !== undefined) workspace.layer = await makeLayer(workspace.layer)
  return { plan, workspace }
}

/** A new folder that the next run removes when this process is killed. */
export async function privateFolder(base: string, kind: Kind): Promise<string> {
  const folder = await privateName(base, kind)
  await makePrivate(folder)
  return folder
}

const privateName = async (base: string, kind: Kind): Promise<string> =>
  join(
    base,
    `millrace-${kind}.${user()}.${process.pid}.${await startTime(process.pid)}.${randomUUID().slice(0, 8)}`,
  )

const makePrivate = (folder: string): Promise<unknown> => mkdir(folder, { mode: 0o700 })

type Kind = 'dir' | 'streams' | 'layer'

/** A new folder below memory: among the temporary files. Undefined where `dir` is on disk, or where there is no room for one. */
export async function layerFor(dir: string): Promise<string | undefined> {
  const layer = await layerName(dir)
  return layer === undefined ? undefined : makeLayer(layer)
}

/** Where a folder below memory can be: among the temporary files, or in the place of the results when those are in memory too. */
async function layerName(dir: string, place?: string): Promise<string | undefined> {
  if (!(await isTmpfs(dir))) return undefined
  for (const base of [tmpdir(), '/var/tmp', ...(place === undefined ? [] : [place])]) {
    const isUsable = await Promise.all([isTmpfs(base), access(base, constants.W_OK)]).then(
      ([isMemory]) => !isMemory,
      () => false,
    )
    if (isUsable && Buffer.byteLength(base) <= LONGEST - 60) return privateName(base, 'layer')
  }
  return undefined
}

const makeLayer = (layer: string): Promise<string | undefined> =>
  makePrivate(layer).then(
    () => layer,
    () => undefined,
  )

/** Steps run inside the managed directory, so the files that they start from must be seen there. */
async function linkInputs(plan: Plan, { dir, place }: Workspace): Promise<void> {
  const written = outputIndex(plan)
  const inputs = plan.steps.flatMap(step => step.inputs).filter(name => !isAbsolute(name))
  const wanted = inputs.map(compilePattern)
  for (const pattern of wanted.filter(input => written.touchingTree(input).length === 0)) {
    for (const name of await namesOf(pattern, place)) {
      await mkdir(rawPath(dirname(join(dir, name))), { recursive: true })
      await symlink(rawPath(join(place, name)), rawPath(join(dir, name))).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error
      })
    }
  }
}

async function namesOf(pattern: Pattern, place: string): Promise<string[]> {
  if (pattern.literal !== undefined) return existsSync(join(place, pattern.literal)) ? [pattern.literal] : []
  const fixed = /^[^*?[\\]*/.exec(pattern.text)![0]
  const folder = fixed.slice(0, Math.max(0, fixed.lastIndexOf('/')))
  const found: string[] = []
  for await (const { path } of walk(place, folder, MOST)) if (matches(pattern, path)) found.push(path)
  return found
}

/** Files below `folder`, relative to `root`; links are not followed. `most`: where a home folder may be searched by mistake. */
export async function* walk(
  root: string,
  folder = '',
  most = Infinity,
): AsyncGenerator<{ path: string; directory: boolean; link: boolean; file: boolean }> {
  const waiting = [folder]
  let seen = 0
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const options = { withFileTypes: true, encoding: 'latin1' } as const
    const entries = await readdir(rawPath(join(root, at)), options).catch(() => [])
    for (const entry of entries) {
      if (++seen > most) {
        const message = `more than ${most.toLocaleString('en')} files in ${root}`
        throw new StreamError(
          'MR_STREAM_DIR',
          message,
          'use a directory that holds only this workflow, or name files without *',
        )
      }
      const name = nameOfBytes(entry.name)
      if (at === '' && name === OWN_FOLDER) continue
      const path = at === '' ? name : `${at}/${name}`
      if (entry.isDirectory()) waiting.push(path)
      yield {
        path,
        directory: entry.isDirectory(),
        link: entry.isSymbolicLink(),
        file: entry.isFile(),
      }
    }
  }
}

export const outputIndex = (plan: Plan): NameIndex<true> =>
  new NameIndex([
    ...plan.steps.flatMap(step => step.outputs).map(name => [compilePattern(name), true] as const),
    ...plan.rules.map(rule => [rule.pattern, true] as const),
  ])

const indexOf = (patterns: Pattern[]): NameIndex<true> =>
  new NameIndex(patterns.map(pattern => [pattern, true] as const))

async function outputsIn(plan: Plan, dir: string): Promise<string[]> {
  const written = outputIndex(plan)
  const found: string[] = []
  for await (const { path, directory } of walk(dir)) {
    if (directory || written.covering(path).length > 0) found.push(path)
  }
  return found
}

/** What tells whether a file stays: by its name, relative to the managed directory. */
export function keeps(plan: Plan): {
  permanent: (path: string) => boolean
  excluded: (path: string) => boolean
} {
  const permanent = indexOf(plan.permanent)
  const excluded = indexOf(plan.exclude)
  return {
    permanent: path => permanent.covering(path).length > 0,
    excluded: path => excluded.covering(path).length > 0,
  }
}

/** Removes what the steps wrote and what was not asked to be kept, as far as it is ours. Returns the number of files removed. */
export async function removeTemporary(
  plan: Plan,
  workspace: Workspace,
  isOurs: (path: string) => boolean = () => true,
): Promise<number> {
  const { permanent, excluded } = keeps(plan)
  if (workspace.own) {
    let count = 0
    for await (const { path, directory, link } of walk(workspace.dir)) {
      if (!directory && !link && !permanent(path)) count++
    }
    await removeOwn(workspace)
    return count
  }
  const written = outputIndex(plan)
  const folders: string[] = []
  let count = 0
  for await (const { path, directory } of walk(workspace.dir)) {
    if (
      workspace.before.has(path) ||
      written.covering(path).length === 0 ||
      permanent(path) ||
      excluded(path) ||
      !isOurs(path)
    )
      continue
    if (directory) folders.push(path)
    else {
      await unlink(rawPath(join(workspace.dir, path))).catch(() => {})
      count++
    }
  }
  // Deepest first; one that still holds something stays, and that is right.
  for (const path of folders.toSorted((a, b) => b.length - a.length))
    await rmdir(rawPath(join(workspace.dir, path))).catch(() => {})
  return count
}

/** Keeps directories of ours, as far as they were made, from being taken for those of a run that was killed. */
export async function holdOn(workspace: Workspace): Promise<void> {
  const folders = [
    ...(workspace.own ? [dirname(workspace.dir)] : []),
    ...(workspace.layer ? [workspace.layer] : []),
  ]
  for (const folder of folders) if (existsSync(folder)) await writeFile(join(folder, 'keep'), '')
}

export async function removeOwn(workspace: Workspace): Promise<void> {
  if (workspace.own) await rm(dirname(workspace.dir), { recursive: true, force: true })
  if (workspace.layer !== undefined) await rm(workspace.layer, { recursive: true, force: true })
}

let parts = 0

/** A copy that appears whole or not at all, with the times of the original. */
export async function copyWhole(from: string, to: string, partFolder = dirname(to)): Promise<void> {
  await mkdir(rawPath(dirname(to)), { recursive: true })
  // Not named after the file, whose name may be as long as names can be.
  const part = rawPath(join(partFolder, `.millrace-part-${process.pid}-${parts++}`))
  try {
    await copyFile(rawPath(from), part, constants.COPYFILE_FICLONE)
    const handle = await open(part, 'r+').catch(() => undefined) // A read-only file cannot be opened so; it is whole.
    await handle?.sync()
    await handle?.close()
    const { atime, mtime } = await lstat(rawPath(from))
    await utimes(part, atime, mtime).catch(() => {})
    await rename(part, rawPath(to))
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

/** Removes folders of runs whose Millrace was killed, unless steps still live in them. */
export async function removeAbandoned(live: ReadonlySet<string>): Promise<void> {
  for (const base of [SHM, tmpdir(), '/var/tmp']) {
    const names = await readdir(base).catch(() => [])
    for (const name of names) {
      const [, owner, pid, start] = /^millrace-(?:dir|streams|layer)\.(\d+)\.(\d+)\.(\d+)\./.exec(name) ?? []
      if (owner !== String(user()) || (await startTime(Number(pid))) === start) continue
      const root = join(base, name)
      if (existsSync(join(root, 'keep')) || live.has(root) || live.has(join(root, 'files'))) continue
      await rm(root, { recursive: true, force: true }).catch(() => {})
    }
  }
}

/** Tells a process from a later one that got the same number. */
async function startTime(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '0'
}

export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))
