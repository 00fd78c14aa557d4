import { resolve } from 'node:path'
import { pathIn, source } from '../../core/data/datum.ts'
import type { Access } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import type { Away } from '../../storage/away.ts'
import { attemptOf, jobOf } from '../job.ts'
import type { NodeHost } from '../node.ts'
import type { NodeFiles } from './node-files.ts'

/** A file or directory of a task, by its path on this machine, and what the task does with it. */
export interface ApartFile {
  readonly path: string
  /** `join`: several tasks write it together. */
  readonly use: 'read' | 'write' | 'change' | 'join'
  readonly isDirectory: boolean
  /** What is to be changed is a copy of this one. */
  readonly from: string | null
  /** What is read, or to be changed, is on nodes only. */
  readonly away: Away | null
}

/** The folder of a node that does not see the folders of this machine. */
export interface ApartFolder {
  /** Where the node has what is at a path here, and the other way round. */
  there(path: string): string
  here(path: string): string
  /** Brings what is read and changed, and makes room for what is written. They stay there until `letGo`. */
  give(files: readonly ApartFile[]): Promise<void>
  letGo(files: readonly ApartFile[]): void
  /** Brings what was written and changed to its path here. What is not there is removed here, too. */
  take(files: readonly ApartFile[]): Promise<void>
  /** How large what was written there is; null where something of it is missing. Bytes. */
  look(files: readonly ApartFile[]): Promise<readonly number[] | null>
  /** Leaves what was written where it is, and takes note of it. */
  leave(file: ApartFile, bytes: number): Away
  drop(files: readonly ApartFile[]): void
  /** Brings what is at a path here. */
  bring(path: string): Promise<void>
  /** Brings one file that tasks do not know of, such as a log; nothing if it is not there. */
  fetch(path: string): Promise<void>
}

/** The files of tasks on such a node: the coordinator has them as for its own tasks, and they travel. */
export class ApartFiles {
  readonly folder: ApartFolder
  readonly #files: Pick<NodeFiles, 'store' | 'streaming'>
  readonly #host: NodeHost

  constructor(folder: ApartFolder, files: Pick<NodeFiles, 'store' | 'streaming'>, host: NodeHost) {
    this.folder = folder
    this.#files = files
    this.#host = host
  }

  /** To be called when the files of an attempt are ready here. */
  async give(task: Task): Promise<void> {
    const attempt = attemptOf(task)
    const { paths } = attempt
    if (!paths) return
    // Names without a folder are found in the working folder there, too.
    attempt.seen = paths.map(path => (path?.startsWith('/') ? this.folder.there(path) : path))
    attempt.apart = this.#filesOf(task, paths)
    await this.folder.give(attempt.apart)
  }

  async take(task: Task): Promise<void> {
    const { apart, program } = attemptOf(task)
    // What a function of a workflow has made, it has made here.
    const wasHere = jobOf(task).definition.command && !program?.line
    if (apart && !wasHere && !(await this.#leave(task, apart))) await this.folder.take(apart)
  }

  /** Leaves what the task has made on its node, if it may stay there. */
  async #leave(task: Task, apart: readonly ApartFile[]): Promise<boolean> {
    const made = apart.filter(({ use }) => use === 'write')
    if (made.length === 0 || !this.#host.filesStay(task, Infinity)) return false
    const sizes = await this.folder.look(made)
    // A missing output is told where all others are.
    if (!sizes || !this.#host.filesStay(task, sum(sizes))) return false
    const stayed = made.map((file, i) => [file.path, this.folder.leave(file, sizes[i] as number)] as const)
    attemptOf(task).stayed = new Map(stayed)
    return true
  }

  drop(task: Task): void {
    const { apart } = attemptOf(task)
    if (apart) this.folder.drop(apart)
  }

  letGo(task: Task): void {
    const attempt = attemptOf(task)
    if (attempt.apart) this.folder.letGo(attempt.apart)
    attempt.apart = null
  }

  #filesOf(task: Task, paths: readonly (string | null)[]): ApartFile[] {
    const { slots } = jobOf(task)
    const { aways } = attemptOf(task)
    return paths.flatMap((path, i): ApartFile[] => {
      const access = task.accesses[i] as Access
      // Growing files go there by themselves.
      if (path === null || pathIn(access) === null || this.#files.streaming.isOurs(path)) return []
      const { mode, write } = access
      const isDirectory = slots[i]?.kind === 'directory'
      const common = { path: resolve(path), isDirectory, from: null, away: null }
      const away = aways?.get(i) ?? null
      if (!write) return [{ ...common, use: 'read', away }]
      if (mode === 'concurrent') return [{ ...common, use: 'join' }]
      const from = mode === 'out' ? null : source(access)
      if (!from) return [{ ...common, use: 'write' }]
      return [{ ...common, use: 'change', from: this.#files.store.pathOf(from), away }]
    })
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)
