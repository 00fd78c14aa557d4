import type { Datum } from '../../core/data/datum.ts'
import type { Simulation } from '../simulation.ts'

/** Something that can be simulated: it brings its tasks in, at once or as time goes on. */
export interface Workload {
  readonly name: string
  begin(simulation: Simulation): void | Promise<void>
}

/** A file that was there before the run; on the shared file system, or else on the nodes in turn. */
export function inputFile(simulation: Simulation, datum: Datum, bytes: number, node: number): Datum {
  const { stores, engine } = simulation
  const device = stores.placeFor(datum.path, node % stores.nodes.length)
  const { id } = datum.current
  datum.current.value = bytes
  engine.observer?.({ type: 'found', at: simulation.clock.now, version: id, bytes })
  if (!device) return datum
  stores.put(datum.current.id, device)
  const known = engine.io.devices[stores.devices.indexOf(device)]
  if (known) engine.io.locate(datum.current, known, bytes)
  return datum
}
