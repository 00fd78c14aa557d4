/**
 * Millrace runs sequential TypeScript in parallel. Mark functions as tasks, call them, wait for what you need:
 *
 *     import { task, main, waitOn } from 'millrace'
 *
 *     export const square = task({}, (x: number) => x * x)
 *
 *     main(async () => {
 *       const squares = [1, 2, 3].map(x => square(x))
 *       console.log(await waitOn(squares))
 *     })
 */
import { hasHost, setHost } from './model/client.ts'
import { EmbeddedHost } from './runtime/host.ts'
import { isMainThread, workerData } from 'node:worker_threads'

export { task, command, implement } from './model/task.ts'
export type { Argv, CommandOptions, SeveralOptions, TaskFunction, TaskOptions } from './model/task.ts'
export {
  main,
  waitOn,
  waitOnFile,
  barrier,
  group,
  cancel,
  openFile,
  remove,
  removeFile,
} from './model/api.ts'
export { auto } from './model/bandwidth.ts'
export type { AutoBandwidth, BandwidthOption } from './model/bandwidth.ts'
export { shared } from './model/shared.ts'
export { Future } from './model/future.ts'
export {
  IN,
  OUT,
  INOUT,
  CONCURRENT,
  COMMUTATIVE,
  FILE_IN,
  FILE_OUT,
  FILE_INOUT,
  FILE_CONCURRENT,
  FILE_COMMUTATIVE,
  DIR_IN,
  DIR_OUT,
  DIR_INOUT,
} from './model/directions.ts'
export type { Direction } from './model/directions.ts'
export type { CommonOptions, Defaults } from './model/options.ts'
export type { Cost } from './model/cost.ts'
export { MillraceError } from './core/errors.ts'
export type { ErrorCode } from './core/errors.ts'
export { CancelledError, ExitError, TaskError } from './model/errors.ts'
export { fifo, fifoData, lifo } from './core/policy.ts'
export type { Policy, Situation } from './core/policy.ts'
export { usePolicy } from './runtime/host.ts'
export { configure } from './runtime/run-options.ts'
export type { RunOptions } from './runtime/run-options.ts'
export type { Observer, RunEvent } from './core/events.ts'

// A compute thread has a host of its own; everywhere else the runtime is embedded.
const inComputeThread =
  !isMainThread && typeof workerData === 'object' && workerData !== null && 'toThread' in workerData
// So it is where someone has set another host already, as the simulator does.
if (!inComputeThread && !hasHost()) setHost(new EmbeddedHost())
