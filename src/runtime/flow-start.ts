import { lifoHrf } from '../core/policy.ts'
import type { FlowState } from '../flow/run-state.ts'
import { currentClient, currentHost, setHost } from '../model/client.ts'
import { globalState } from '../model/global-state.ts'
import { FlowTasks } from './flow-tasks.ts'
import { EmbeddedHost, preferPolicy } from './host.ts'
import type { Runtime } from './runtime.ts'

/** Starts the runtime for a workflow; ends with it. */
export function startTasks(
  state: FlowState,
  keepGoing: boolean,
  body: (tasks: FlowTasks) => Promise<void>,
): Promise<void> {
  preferPolicy(lifoHrf)
  // A workflow that uses no tasks of the library has not started it.
  if (!globalState.host) setHost(new EmbeddedHost())
  return currentHost().main(() => body(new FlowTasks(currentClient() as Runtime, state, keepGoing)))
}
