/**
 * Where data live while a workflow runs: permanent files are copied to their place as soon as they are
 * complete, and complete files move to another layer when `storage` asks for it or memory runs short. A moved
 * file leaves a link under its name; readers that have it open keep the old copy and notice nothing.
 */
import { lstat, mkdtemp, readdir, readFile, readlink, rename, rm, statfs, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Plan } from './plan.ts'
import { NameIndex } from '../language/names.ts'
import { rawPath } from './raw-names.ts'
import type { FileLine, Snapshot } from './snapshot.ts'
import { codeOf, copyWhole, isTmpfs, keeps, outputIndex, walk, type Workspace } from './workspace.ts'

export interface Kept {
  /** Permanent files that are now whole in their place. */
  kept: string[]
  /** Permanent files that were never completed. Where the managed directory is the user's own they are removed. */
  incomplete: string[]
  /** Permanent files that were there before, and that a step began to write again and did not complete. */
  damaged: string[]
  /** Permanent files that are complete but could not be brought to their place: they must not be removed. */
  stuck: { path: string; reason: string }[]
  /** Permanent files that steps on several nodes wrote, each on its own node: what is in their place is of one of them. */
  contested?: { path: string; nodes: string[] }[]
  /** Complete files that were moved to another layer while the workflow ran. */
  moved: number
}

type Layer = 'memory' | 'fs'

export interface KeeperOptions {
  /** Bytes that are to stay free in memory; a twentieth of it when not given. */
  reserve?: number
  /** Moves files that still grow; how many bytes that freed. */
  relieve?: (bytes: number) => Promise<number>
  /** False for files that were made on another node, which keeps them. */
  isHere?: (path: string) => boolean
}

export class Keeper {
  private readonly workspace: Workspace
  private readonly warn: (text: string) => void
  private readonly options: KeeperOptions
  private readonly permanent: (path: string) => boolean
  private readonly written: (path: string) => boolean
  private readonly wanted: NameIndex<Layer>
  private readonly placed = new Map<string, string>()
  private readonly movedTo = new Map<string, string>()
  private readonly given = new Set<string>()
  private readonly layers = new Map<Layer, string>()
  private home: Layer | undefined
  private side: string | undefined
  private busy: Promise<void> | undefined
  private complained = false

  constructor(plan: Plan, workspace: Workspace, warn: (text: string) => void, options: KeeperOptions = {}) {
    this.workspace = workspace
    this.warn = warn
    this.options = options
    const { permanent } = keeps(plan)
    this.permanent = path => permanent(path) && (options.isHere?.(path) ?? true)
    const outputs = outputIndex(plan)
    this.written = path => outputs.covering(path).length > 0
    this.wanted = new NameIndex<Layer>([
      ...plan.memory.map(pattern => [pattern, 'memory'] as const),
      ...plan.fs.map(pattern => [pattern, 'fs'] as const),
    ])
  }

  /** Takes care of what has become complete. Calls while it is at work are passed over: the next will do. */
  look(snapshot: Snapshot): void {
    this.busy ??= this.work(snapshot)
      .catch((error: unknown) => this.complain(reasonOf(error)))
      .finally(() => (this.busy = undefined))
  }

  /** Once: the same trouble would come with every look, and the end says what it has led to. */
  private complain(reason: string): void {
    if (!this.complained) this.warn(`warning: files cannot be moved yet: ${reason}\n`)
    this.complained = true
  }

  /** After the last step. `all`: everything counts as complete, because every step ended well. `leave`: nothing is removed. */
  async finish(snapshot: Snapshot | undefined, all: boolean, leave = false): Promise<Kept> {
    await this.busy
    const states = new Map(snapshot?.files.map(file => [file.path, file.state]))
    const kept: string[] = []
    const incomplete: string[] = []
    const damaged: string[] = []
    const stuck: Kept['stuck'] = []
    for await (const { path, link, file } of walk(this.workspace.dir)) {
      if (!(file || link) || !this.permanent(path)) continue // a pipe holds nothing that could be kept
      const source = join(this.workspace.dir, path)
      const state = states.get(path)
      const complete = state === 'committed' || (all && state !== 'failed' && state !== 'growing')
      if (link && (await this.below(path)) === undefined && (await this.isInput(source))) continue
      if (complete) {
        const reason = await this.place(path).then(found => (found ? undefined : 'it is not there'), reasonOf)
        if (reason === undefined) kept.push(path)
        else stuck.push({ path, reason })
      } else if (!this.workspace.before.has(path)) incomplete.push(path)
      else if (state === 'growing' || state === 'failed') damaged.push(path)
    }
    // Half a file under the name of a result would be taken for one. Without the board nothing is known of any.
    if (!this.workspace.own && !leave && snapshot !== undefined)
      for (const path of incomplete.filter(this.written))
        await rm(rawPath(join(this.workspace.dir, path)), { force: true })
    // Layers hold the only copy of what was moved to them.
    const moved = await this.movedCount()
    const folders = [...this.layers.values(), this.side, this.workspace.layer]
    for (const folder of leave || stuck.length > 0 ? [] : folders) {
      if (folder !== undefined) await rm(folder, { recursive: true, force: true })
    }
    return {
      kept: kept.toSorted(),
      incomplete: incomplete.toSorted(),
      damaged: damaged.toSorted(),
      stuck,
      moved,
    }
  }

  private async work(snapshot: Snapshot): Promise<void> {
    const complete = snapshot.files.filter(file => file.kind === 'file' && file.state === 'committed')
    if (this.workspace.own)
      for (const file of complete) if (this.permanent(file.path)) await this.place(file.path)
    this.home ??= (await isTmpfs(this.workspace.dir)) ? 'memory' : 'fs'
    const still = complete.filter(
      file => file.writers === 0 && !this.movedTo.has(file.path) && !this.given.has(file.path),
    )
    for (const { path } of still) {
      const layer = this.wanted.covering(path)[0]
      if (layer !== undefined && layer !== this.home) await this.move(path, layer)
    }
    if (this.home === 'memory') await this.spill(still)
  }

  /** The largest first: few moves free the most. What is to stay in memory goes last. */
  private async spill(files: FileLine[]): Promise<void> {
    let missing = await this.shortage()
    if (missing <= 0) return
    const rank = (file: FileLine): number => (this.wanted.covering(file.path)[0] === 'memory' ? 0 : 1)
    const order = files.toSorted((a, b) => rank(b) - rank(a) || (b.size ?? 0) - (a.size ?? 0))
    for (const { path, size } of order) {
      if (missing <= 0) return
      if (this.movedTo.has(path)) continue
      if (await this.move(path, 'fs')) missing -= size ?? 0
    }
    if (missing > 0) await this.options.relieve?.(missing)
  }

  private async shortage(): Promise<number> {
    const { bavail, blocks, bsize } = await statfs(this.workspace.dir)
    const available = /MemAvailable:\s+(\d+)/.exec(
      await readFile('/proc/meminfo', 'utf8').catch(() => ''),
    )?.[1]
    const free = Math.min(bavail * bsize, available === undefined ? Infinity : Number(available) * 1024)
    return (this.options.reserve ?? (blocks * bsize) / 20) - free
  }

  /** To its place, whole; again when it has changed since. False when there is no such file. */
  private async place(path: string): Promise<boolean> {
    const source = join(this.workspace.dir, path)
    const layered = await this.below(path)
    if (!this.workspace.own) {
      if (layered !== undefined) await copyWhole(layered, source, this.side)
      return true
    }
    const info = await lstat(rawPath(layered ?? source)).catch(() => undefined)
    if (info === undefined || !(info.isFile() || info.isSymbolicLink())) return false
    const target = join(this.workspace.place, path)
    const stamp = `${info.ino} ${info.size} ${info.mtimeMs}`
    if (this.placed.get(path) === stamp) return true
    if (info.isSymbolicLink()) {
      await rm(rawPath(target), { force: true })
      await symlink(await readlink(rawPath(source), 'buffer'), rawPath(target))
    } else await copyWhole(layered ?? source, target)
    this.placed.set(path, stamp)
    return true
  }

  private async move(path: string, layer: Layer): Promise<boolean> {
    const source = join(this.workspace.dir, path)
    const before = await lstat(rawPath(source)).catch(() => undefined)
    const side = before?.isFile() === true ? await this.sideFolder() : undefined
    if (before === undefined || side === undefined) {
      this.given.add(path)
      return false
    }
    const target = join(await this.layerFolder(layer), String(this.movedTo.size))
    await copyWhole(source, target)
    const link = join(side, 'link')
    await rm(link, { force: true })
    await symlink(target, link)
    const after = await lstat(rawPath(source)).catch(() => undefined)
    if (
      after === undefined ||
      after.mtimeMs !== before.mtimeMs ||
      after.size !== before.size ||
      after.ino !== before.ino
    ) {
      await rm(target, { force: true })
      return false // A program still writes to it, against its rule: leave it alone.
    }
    await rename(link, rawPath(source))
    this.movedTo.set(path, target)
    return true
  }

  private async layerFolder(layer: Layer): Promise<string> {
    const known = this.layers.get(layer)
    if (known !== undefined) return known
    const made =
      (layer === 'fs' ? this.workspace.layer : undefined) ??
      (await mkdtemp(
        join(layer === 'memory' ? '/dev/shm' : this.workspace.place, `.millrace-layer.${process.pid}.`),
      ))
    this.layers.set(layer, made)
    return made
  }

  /** Where the bytes of a moved file are; a file that grew may have been moved by the program that wrote it. */
  private async below(path: string): Promise<string | undefined> {
    const known = this.movedTo.get(path)
    const { layer, dir } = this.workspace
    if (known !== undefined || layer === undefined) return known
    const target = await readlink(rawPath(join(dir, path))).catch(() => undefined)
    return target?.startsWith(`${layer}/`) === true ? target : undefined
  }

  private async movedCount(): Promise<number> {
    const { layer } = this.workspace
    const ours = [...this.movedTo.values()].filter(target => dirname(target) !== layer).length
    const there = layer === undefined ? [] : await readdir(layer).catch(() => [])
    return ours + there.filter(name => name !== 'keep').length
  }

  /** A folder on the file system of the managed directory, but outside, so that no step sees half-made links. */
  private async sideFolder(): Promise<string | undefined> {
    if (this.side !== undefined) return this.side
    const parent = dirname(this.workspace.dir)
    try {
      this.side = await mkdtemp(join(parent, '.millrace-side.'))
    } catch (error) {
      this.warn(`files stay where they are: ${parent} cannot be written (${codeOf(error)})\n`)
    }
    return this.side
  }

  /** A link that we made to an input is not something that a step wrote. */
  private async isInput(source: string): Promise<boolean> {
    const target = await readlink(rawPath(source)).catch(() => undefined)
    return target !== undefined && target.startsWith(`${this.workspace.place}/`) && this.workspace.own
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
