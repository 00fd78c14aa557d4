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
import { setObservable } from './runtime/observers.ts'
import { isMainThread, workerData } from 'node:worker_threads'

export * from './names.ts'
export { usePolicy } from './runtime/host.ts'
export { configure } from './runtime/run-options.ts'
export type { RunOptions } from './runtime/run-options.ts'
export { observe } from './runtime/observers.ts'
export type { EventHandlers } from './runtime/observers.ts'
export type { Observer, RunEvent } from './core/events.ts'

// A compute thread has a host of its own; everywhere else the runtime is embedded.
const inComputeThread =
  !isMainThread && typeof workerData === 'object' && workerData !== null && 'toThread' in workerData
// So it is where someone has set another host already, as the simulator does.
if (!inComputeThread && !hasHost()) {
  const host = new EmbeddedHost()
  setHost(host)
  setObservable(host)
}
