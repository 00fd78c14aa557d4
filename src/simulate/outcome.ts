import type { ModelDevice, Way } from './machine/device.ts'
import type { Simulation } from './simulation.ts'

/** What came of a simulated run, in numbers. */
export interface SimulatedOutcome {
  /** Seconds from the beginning until all has been done: the last task has ended, and data are where they should be. */
  makespan: number
  /** Seconds until the last task had ended. */
  tasksEnded: number
  tasks: number
  /** Share of the CPUs' time that tasks held them, and that these computed: the rest they waited for bytes. */
  cpuUse: number
  computing: number
  devices: DeviceOutcome[]
  /** Bytes that were read from page caches, and that had to come from elsewhere. */
  cacheHits: number
  cacheMisses: number
  /** Bytes that went from one node to another. */
  between: number
  /** Nodes that were lost or ended, tasks that were run again because what they had made was lost, and CPU seconds of attempts that were cut off. */
  nodesLost: number
  remade: number
  lostTime: number
}

/** Devices of one name, of all nodes together. */
export interface DeviceOutcome {
  name: string
  /** Bytes. */
  read: number
  written: number
  /** Seconds during which bytes were written, and read; the longest among the devices of this name. */
  reading: number
  writing: number
  /** Share of its bandwidth that was used in that time, of the one that was busy longest; null where it has none. */
  readUse: number | null
  writeUse: number | null
}

export function outcomeOf(simulation: Simulation): SimulatedOutcome {
  const { stores, clock, ended, cpuTime, computeTime, engine } = simulation
  const devices = new Map<string, DeviceOutcome>()
  for (const device of stores.devices) {
    const { name } = device.model
    const sum = devices.get(name) ?? { name, ...UNUSED }
    sum.read += device.moved.read
    sum.written += device.moved.write
    const reading = device.busy('read') / 1000
    const writing = device.busy('write') / 1000
    if (reading > sum.reading) Object.assign(sum, { reading, readUse: useOf(device, 'read') })
    if (writing > sum.writing) Object.assign(sum, { writing, writeUse: useOf(device, 'write') })
    devices.set(name, sum)
  }
  const cpus = engine.nodes.reduce((all, node) => all + node.cpus, 0)
  const capacity = stores.nodes.reduce((all, { capacity: one }) => all + one, 0)
  return {
    makespan: clock.now / 1000,
    tasksEnded: simulation.lastEnd / 1000,
    tasks: ended - (simulation.lineage?.remade ?? 0),
    nodesLost: engine.nodes.filter(({ isLost }) => isLost).length,
    remade: simulation.lineage?.remade ?? 0,
    lostTime: simulation.lostTime / 1000,
    cpuUse: clock.now > 0 ? cpuTime / (cpus * clock.now) : 0,
    computing: clock.now > 0 ? computeTime / (capacity * clock.now) : 0,
    devices: [...devices.values()],
    between: stores.between,
    cacheHits: stores.nodes.reduce((all, { cache }) => all + cache.hits, 0),
    cacheMisses: stores.nodes.reduce((all, { cache }) => all + cache.misses, 0),
  }
}

const UNUSED = { read: 0, written: 0, reading: 0, writing: 0, readUse: null, writeUse: null }

function useOf(device: ModelDevice, way: Way): number | null {
  const { actual, ...described } = device.model
  const bandwidth = (actual ?? described)[way]
  const busy = device.busy(way) / 1000
  return bandwidth === null || busy === 0 ? null : device.moved[way] / (bandwidth * busy)
}

/** Of all CPUs, and of all devices, what was at work for the largest part of the time. */
export interface Busiest {
  /** The name of a device; null: the CPUs. */
  device: string | null
  way: Way | null
  /** Of the time. */
  share: number
  /** Of its bandwidth, while it was at work. */
  use: number | null
}

export function busiestOf({ makespan, computing, devices }: SimulatedOutcome): Busiest {
  let busiest: Busiest = { device: null, way: null, share: computing, use: null }
  const look = (device: string, way: Way, seconds: number, use: number | null): void => {
    const share = makespan > 0 ? seconds / makespan : 0
    if (share > busiest.share) busiest = { device, way, share, use }
  }
  for (const { name, reading, readUse, writing, writeUse } of devices) {
    look(name, 'write', writing, writeUse)
    look(name, 'read', reading, readUse)
  }
  return busiest
}
