import { modulePath, taskModules } from '../../model/definition.ts'
import { LaneThread } from './lane-thread.ts'
import type { OpenThread } from './threads.ts'

/** What threads of this process know about the run. */
export interface LocalThreadOptions {
  readonly run: string
  readonly logs: string | null
  /** The program's own module. */
  readonly entry: string | null
  /** When the run began, on the clock that all threads share. */
  readonly startedAt: number
}

/** Opens threads of this process. */
export function localThreads({ run, logs, entry, startedAt }: LocalThreadOptions): OpenThread {
  return (lane, io, events) => {
    const modules = [...taskModules()]
    const all = entry ? [...modules, entry] : modules
    const throughTsx = process.execArgv.some(argument => /[\\/]tsx[\\/]|^tsx\b/.test(argument))
    const typescript = throughTsx || all.some(module => /\.[cm]?tsx?$/.test(modulePath(module)))
    return new LaneThread({ typescript, modules, entry, logs, startedAt, run, lane, io }, events)
  }
}
