import type { Simulation } from './simulation.ts'

/** What came of a simulated run, in numbers. */
export interface SimulatedOutcome {
  /** Seconds from the beginning until all has been done: the last task has ended, and data are where they should be. */
  makespan: number
  /** Seconds until the last task had ended. */
  tasksEnded: number
  tasks: number
  /** Share of the CPUs' time that tasks held them. */
  cpuUse: number
  devices: DeviceOutcome[]
  /** Bytes that were read from page caches, and that had to come from elsewhere. */
  cacheHits: number
  cacheMisses: number
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
}

export function outcomeOf(simulation: Simulation): SimulatedOutcome {
  const { stores, clock, ended, cpuTime, engine } = simulation
  const devices = new Map<string, DeviceOutcome>()
  for (const device of stores.devices) {
    const { name } = device.model
    const sum = devices.get(name) ?? { name, read: 0, written: 0, reading: 0, writing: 0 }
    sum.read += device.moved.read
    sum.written += device.moved.write
    sum.reading = Math.max(sum.reading, device.busy('read') / 1000)
    sum.writing = Math.max(sum.writing, device.busy('write') / 1000)
    devices.set(name, sum)
  }
  const cpus = engine.nodes.reduce((all, node) => all + node.cpus, 0)
  return {
    makespan: clock.now / 1000,
    tasksEnded: simulation.lastEnd / 1000,
    tasks: ended,
    cpuUse: clock.now > 0 ? cpuTime / (cpus * clock.now) : 0,
    devices: [...devices.values()],
    cacheHits: stores.nodes.reduce((all, { cache }) => all + cache.hits, 0),
    cacheMisses: stores.nodes.reduce((all, { cache }) => all + cache.misses, 0),
  }
}
