/** The public names that mean the same in the program and in its compute threads. */
export { task, command, implement } from './model/task.ts'
export type {
  Argv,
  CommandOptions,
  SeveralOptions,
  SingleOptions,
  TaskFunction,
  TaskOptions,
} from './model/task.ts'
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
  ready,
  committed,
} from './model/api.ts'
export { auto } from './model/bandwidth.ts'
export type { AutoBandwidth, BandwidthOption } from './model/bandwidth.ts'
export { shared } from './model/shared.ts'
export { stream, StreamFile } from './model/stream.ts'
export type { StreamOptions } from './model/stream.ts'
export { Future } from './model/future.ts'
export { Stream } from './model/value-stream.ts'
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
