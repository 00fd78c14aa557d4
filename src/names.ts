/** The public names that mean the same in the program and in its compute threads. */
export { task, taskMethods, command, implement } from './model/task.ts'
export type { MethodOptions, TaskDecorator, TaskMethod } from './model/methods.ts'
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
  snapshot,
} from './model/api.ts'
export { mpi } from './model/mpi/mpi.ts'
export type { MpiBody, MpiEachOptions, MpiListOptions, MpiOneOptions, MpiOptions } from './model/mpi/mpi.ts'
export type { ProcessRange } from './model/mpi/processes.ts'
export type { MpiProgram } from './model/task.ts'
export type { Layout } from './model/mpi/form.ts'
export type {
  Comm,
  MpiArray,
  Hdf5Block,
  Hdf5Dataset,
  Hdf5File,
  MpiFile,
  MpiFileOptions,
  MpiView,
  Received,
  ReduceOp,
  Request,
} from './model/mpi/comm.ts'
export { granted } from './model/granted.ts'
export type { Granted } from './model/granted.ts'
export type { GroupOptions } from './model/api.ts'
export { reduce } from './model/reduce.ts'
export { ref } from './model/ref.ts'
export type { Ref } from './model/ref.ts'
export { auto } from './model/options/bandwidth.ts'
export type { AutoBandwidth, BandwidthOption } from './model/options/bandwidth.ts'
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
  FILES_IN,
  FILES_INOUT,
  FILES_OUT,
  DIR_IN,
  DIR_OUT,
  DIR_INOUT,
} from './model/options/directions.ts'
export type { Direction } from './model/options/directions.ts'
export type { CommonOptions, Defaults } from './model/options/options.ts'
export type { Cost } from './model/options/cost.ts'
export { MillraceError } from './core/errors.ts'
export type { ErrorCode } from './core/errors.ts'
export { CancelledError, ExitError, TaskError } from './model/errors.ts'
export { fifo, fifoData, lifo } from './core/schedule/policy.ts'
export type { Place, Policy, Situation } from './core/schedule/policy.ts'
