import type { Definition } from './definition.ts'
import { MillraceError } from '../core/errors.ts'
import type { Granted } from './granted.ts'
import type { Future } from './future.ts'
import { globalState } from './global-state.ts'
import type { Stream } from './value-stream.ts'

/**
 * Who carries out what a program asks for: in the coordinator the runtime itself, in a compute thread a
 * client that sends it there. The model only knows this interface.
 */
export interface Client {
  /** Returns the futures of the call. */
  call(definition: Definition, args: readonly unknown[]): unknown
  /** Each call counts by itself, also of `map`: in a simulation each has its own cost. */
  readonly callsOneByOne?: boolean
  waitOn(value: unknown): Promise<unknown>
  /** `toWrite`: the program is about to change it, so that those who read it have to be done. */
  waitOnFile(path: string, toWrite?: boolean): Promise<string>
  barrier(): Promise<void>
  group<T>(name: string, body: () => T | Promise<T>, isCheckpoint?: boolean): Promise<T>
  /** Resolves when the results of all tasks that have ended are kept. */
  snapshot(): Promise<void>
  cancel(name: string): Promise<void>
  remove(value: unknown): void
  removeFile(path: string): Promise<void>
  /** The values of a stream, as futures. */
  iterate(stream: Stream<unknown>): AsyncIterator<Future<unknown>, undefined, void>
  ready(index: number, value: unknown): void
  committed(path: string): Promise<void>
  granted(): Granted
}

export interface Host {
  /** The client of this thread; starts the embedded runtime where there is none. */
  client(): Client
  main(body: () => unknown): Promise<void>
}

export function setHost(next: Host): void {
  globalState.host = next
}

export const hasHost = (): boolean => globalState.host !== null

export function currentHost(): Host {
  const { host } = globalState
  if (!host) throw new MillraceError('MR_INTERNAL', 'no host is set')
  return host
}

export const currentClient = (): Client => currentHost().client()
