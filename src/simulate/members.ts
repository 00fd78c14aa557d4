import type { Members } from './failures.ts'
import { coreNode } from './machine/platform.ts'
import type { Simulation } from './simulation.ts'

/** What losing and joining does in a simulation: the core gets the same stimuli as in a real run. */
export const membersOf = (simulation: Simulation): Members => ({
  get now() {
    return simulation.clock.now
  },
  get ended() {
    return simulation.ended - (simulation.lineage?.remade ?? 0)
  },
  after: (delay, then) => simulation.clock.aside(delay, then),
  present: () => simulation.engine.nodes.flatMap(({ isLost, index }) => (isLost ? [] : [index])),
  lose: (index, reason, isLost) => {
    const { engine, clock, lineage } = simulation
    const node = engine.nodes[index]
    if (!node) return
    engine.observer?.({ type: 'node-left', at: clock.now, node: index, isLost, reason })
    engine.membership.lost(index, clock.now)
    simulation.cutOff(node, reason)
    lineage?.lose(index, clock.now)
  },
  limit: (index, until) => simulation.engine.membership.changed(index, false, until),
  drain: (index, until) => {
    const { engine, lineage } = simulation
    if (engine.nodes[index]?.isLost !== false) return
    engine.membership.changed(index, true, until)
    lineage?.leave(index)
  },
  join: model => {
    const { engine, clock, stores } = simulation
    stores.join(model)
    const { index, name, cpus, memory } = engine.membership.joined(coreNode(model))
    engine.observer?.({ type: 'node-joined', at: clock.now, node: index, name, cpus, memory })
    return index
  },
  closed: () => simulation.engine.membership.close(simulation.clock.now),
})
