import { lifoHrf } from '../../core/schedule/policy.ts'
import { flowState } from '../../flow/language/registry.ts'
import type { FlowState } from '../../flow/run/run-state.ts'
import { currentClient, currentHost, setHost } from '../../model/client.ts'
import { globalState } from '../../model/global-state.ts'
import { FlowTasks } from './tasks.ts'
import { EmbeddedHost, preferPolicy } from '../host.ts'
import { ruleAsksFor } from '../known-devices.ts'
import type { Runtime } from '../runtime.ts'

/** Starts the runtime for a workflow; ends with it. */
export function startTasks(
  state: FlowState,
  keepGoing: boolean,
  body: (tasks: FlowTasks) => Promise<void>,
): Promise<void> {
  preferPolicy(lifoHrf)
  for (const { options } of flowState.registry.rules) {
    if (options.bandwidth !== undefined) ruleAsksFor(options.bandwidth)
  }
  // A workflow that uses no tasks of the library has not started it.
  if (!globalState.host) setHost(new EmbeddedHost())
  return currentHost().main(() => body(new FlowTasks(currentClient() as Runtime, state, keepGoing)))
}
