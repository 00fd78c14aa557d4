import { constants } from 'node:fs'
import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { open } from 'node:fs/promises'
import { MillraceError } from '../core/errors.ts'
import { currentClient, currentHost } from './client.ts'
import { mappedList, removeMapped } from './map.ts'
import type { Resolved } from './types.ts'

export type { Stats }

/**
 * The program: runs in the coordinator only, after the module that calls it is loaded. Compute threads that
 * load the module for its tasks skip it.
 */
export function main(body: () => unknown): void {
  void currentHost().main(body)
}

/**
 * Waits for a future, for an object that tasks write, or for all futures in an array or object. Brings the
 * object itself up to date, in place, and returns it.
 */
export function waitOn<T>(value: T): Promise<Resolved<T>> {
  return (mappedList(value) ?? currentClient().waitOn(value)) as Promise<Resolved<T>>
}

/** Waits until the file or directory is there as the tasks so far leave it; returns its path. */
export function waitOnFile(path: string): Promise<string> {
  return currentClient().waitOnFile(path)
}

/** Waits for all tasks called so far. Throws the first failure that nothing has waited for. */
export function barrier(): Promise<void> {
  return currentClient().barrier()
}

export interface GroupOptions {
  /** The results of its tasks are kept, and written to the disk when all of them have ended. @default false */
  checkpoint?: boolean
}

/**
 * The tasks called in `body` form a group. Resolves when all have ended; throws when one failed, after
 * cancelling the rest of the group.
 */
export function group<T>(name: string, body: () => T | Promise<T>): Promise<T>
export function group<T>(name: string, options: GroupOptions, body: () => T | Promise<T>): Promise<T>
export function group<T>(
  name: string,
  given: GroupOptions | (() => T | Promise<T>),
  inner?: () => T | Promise<T>,
): Promise<T> {
  const isPlain = typeof given === 'function'
  const body = isPlain ? given : (inner as () => T | Promise<T>)
  if (typeof name !== 'string' || typeof body !== 'function') {
    const got = `${typeof name} and ${typeof body}`
    throw new MillraceError('MR_OPTION', `group needs a name and a function, and got ${got}`, {
      hint: "Write group('name', () => { … }).",
    })
  }
  return currentClient().group(name, body, !isPlain && given.checkpoint === true)
}

/** Waits until the results of all tasks that have ended so far are kept, and on the disk. */
export function snapshot(): Promise<void> {
  return currentClient().snapshot()
}

/** Cancels the tasks of a group: what waits never starts, what runs is stopped. */
export function cancel(name: string): Promise<void> {
  return currentClient().cancel(name)
}

/** Waits for a file and opens it; to write, also for the tasks called so far that read it. */
export async function openFile(path: string, flags: string | number = 'r'): Promise<FileHandle> {
  const isToRead = flags === 'r' || flags === 'rs' || flags === 'sr' || flags === constants.O_RDONLY
  return open(await currentClient().waitOnFile(path, !isToRead), flags)
}

/** The program will not use this value again; its memory is freed when the tasks that read it have ended. */
export function remove(value: unknown): void {
  if (!removeMapped(value)) currentClient().remove(value)
}

/** Deletes the file or directory when the tasks that read it have ended. */
export function removeFile(path: string): Promise<void> {
  return currentClient().removeFile(path)
}

/**
 * Inside a task with `returns: n`: releases a value before the task ends, so that tasks that wait for it can
 * start. It is captured at the call. Returns the value, for the array that the task returns in the end:
 * values that were released are not looked at there. A future of a task that was called here is released
 * when that task has ended.
 */
export function ready<T>(index: number, value: T): T {
  currentClient().ready(index, value)
  return value
}

/**
 * Inside a task: the output file or directory at this path is complete, and is put in its place now, so that
 * tasks that wait for it can start. The task must not write it any more.
 */
export function committed(path: string): Promise<void> {
  return currentClient().committed(path)
}
