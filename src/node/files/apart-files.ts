import { resolve } from 'node:path'
import { pathIn, source } from '../../core/data/datum.ts'
import type { Access } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import type { FileStore } from '../../storage/file-store.ts'
import { attemptOf, jobOf } from '../job.ts'

/** A file or directory of a task, by its path on this machine, and what the task does with it. */
export interface ApartFile {
  readonly path: string
  /** `join`: several tasks write it together. */
  readonly use: 'read' | 'write' | 'change' | 'join'
  readonly isDirectory: boolean
  /** What is to be changed is a copy of this one. */
  readonly from: string | null
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
  drop(files: readonly ApartFile[]): void
  /** Brings what is at a path here. */
  bring(path: string): Promise<void>
  /** Brings one file that tasks do not know of, such as a log; nothing if it is not there. */
  fetch(path: string): Promise<void>
}

/** The files of tasks on such a node: the coordinator has them as for its own tasks, and they travel. */
export class ApartFiles {
  readonly folder: ApartFolder
  readonly #store: FileStore

  constructor(folder: ApartFolder, store: FileStore) {
    this.folder = folder
    this.#store = store
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
    if (apart && !wasHere) await this.folder.take(apart)
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
    return paths.flatMap((path, i): ApartFile[] => {
      const access = task.accesses[i] as Access
      if (path === null || pathIn(access) === null) return []
      const { mode, write } = access
      const isDirectory = slots[i]?.kind === 'directory'
      const common = { path: resolve(path), isDirectory, from: null }
      if (!write) return [{ ...common, use: 'read' }]
      if (mode === 'concurrent') return [{ ...common, use: 'join' }]
      const from = mode === 'out' ? null : source(access)
      return [
        from ? { ...common, use: 'change', from: this.#store.pathOf(from) } : { ...common, use: 'write' },
      ]
    })
  }
}
